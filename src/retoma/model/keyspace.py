"""Cutting a range of integer keys into slices."""

from __future__ import annotations


def split_evenly(low: int, high: int, parts: int) -> list[tuple[int, int]]:
    """At most ``parts`` adjoining ranges (above start, up to end) that cover (low, high] exactly."""
    width = high - low
    if width <= 0:
        return []
    parts = max(1, min(parts, width))
    ends = [low + width * n // parts for n in range(parts + 1)]
    return [(ends[n], ends[n + 1]) for n in range(parts)]
