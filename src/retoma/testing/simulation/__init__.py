"""Deterministic simulation: the real engine, store and workers in one thread, on a virtual clock.

One seed draws a small cluster, a job, and the faults that hit them; every statement is a point at
which the scheduler may let another process go on, or end or freeze the one that came there.
"""
