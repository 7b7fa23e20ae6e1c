"""Policies decide; only the engine acts on them."""
