"""A range of keys is cut without a gap and without an overlap."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from retoma.model.keyspace import halve, split_evenly

KEYS = st.integers(-(2**62), 2**62)


@given(KEYS, st.integers(0, 2**62), st.integers(-3, 300))
def test_slices_adjoin_and_cover_the_range_exactly(low: int, width: int, parts: int) -> None:
    slices = split_evenly(low, low + width, parts)
    if width == 0:
        assert slices == []
        return
    assert slices[0][0] == low
    assert slices[-1][1] == low + width
    assert all(first[1] == second[0] for first, second in pairwise(slices))
    widths = [end - start for start, end in slices]
    assert min(widths) >= 1
    assert max(widths) - min(widths) <= 1
    assert len(slices) == min(max(parts, 1), width)


@given(KEYS, st.integers(0, 1_000))
def test_a_turned_range_has_no_slices(low: int, back: int) -> None:
    assert split_evenly(low, low - back, 4) == []


@given(KEYS, st.integers(0, 2**62))
def test_halves_are_both_smaller_or_there_are_none(start: int, width: int) -> None:
    middle = halve(start, start + width)
    assert (middle is None) is (width < 2)
    if middle is not None:
        assert start < middle < start + width


def test_what_is_no_number_is_not_halved() -> None:
    assert halve("a", "z") is None
    assert halve(0, None) is None
