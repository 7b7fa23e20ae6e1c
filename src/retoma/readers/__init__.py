"""Readers: slices of an input that can be taken up again."""
