"""Nouns and pure rules of batch work; no I/O."""
