"""Cutting a range of integer keys into slices."""

from __future__ import annotations


def halve(start: object, end: object) -> int | None:
    """A key that cuts (start, end] in two; None if it holds one key, or its keys are no integers."""
    if not isinstance(start, int) or not isinstance(end, int) or end - start < 2:
        return None
    return (start + end) // 2


def split_evenly(low: int, high: int, parts: int) -> list[tuple[int, int]]:
    """At most ``parts`` adjoining ranges (above start, up to end) that cover (low, high] exactly."""
    width = high - low
    if width <= 0:
        return []
    parts = max(1, min(parts, width))
    ends = [low + width * n // parts for n in range(parts + 1)]
    return [(ends[n], ends[n + 1]) for n in range(parts)]
