"""Readers of statement files: byte-exact, streaming, restartable after any record."""
