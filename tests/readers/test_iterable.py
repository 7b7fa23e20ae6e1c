"""An iterable is read on from its position, and a past that has changed is refused."""

from __future__ import annotations

import dataclasses
import tracemalloc
from collections.abc import Iterable
from decimal import Decimal
from typing import Any

import pytest

from retoma import IterableReader
from retoma.errors import SourceChanged
from tests.readers.reading import context_of, items, pages, plans_of, stored

GIVEN: list[Any] = [{"n": 1}, (2, "x"), 3, None, Decimal("4.50"), "\ud800", {"n": 1}]


def reader(given: Iterable[Any]) -> IterableReader:
    return IterableReader(items=lambda context: given, key=lambda item: f"key {item}")


@pytest.mark.parametrize("size", range(1, 9))
def test_taken_up_after_each_item_the_items_are_the_same(size: int) -> None:
    assert items(lambda: reader(GIVEN), size) == GIVEN
    one = reader(GIVEN)
    assert items(lambda: one, size) == GIVEN


def test_a_process_calls_the_function_once() -> None:
    calls = []

    def given(context: Any) -> Iterable[int]:
        calls.append(context)
        yield from range(10)

    one = IterableReader(items=given, key=str)
    assert len(pages(lambda: one, 3)) == 4
    assert len(calls) == 1


def test_after_a_failure_a_chunk_is_read_again() -> None:
    one = reader(GIVEN)
    (plan,) = plans_of(one)
    context = context_of(plan)
    for _ in range(2):
        page = one.read(None, context, plan.low, None, 2)
        assert page.items == GIVEN[:2]
    assert one.read(None, context, stored(page.end), None, 2).items == GIVEN[2:4]


@pytest.mark.parametrize(
    "now", [GIVEN[1:], [0, *GIVEN[1:]], [GIVEN[1], GIVEN[0], *GIVEN[2:]], GIVEN[:2], []]
)
def test_another_past_is_refused(now: list[Any]) -> None:
    one = reader(GIVEN)
    (plan,) = plans_of(one)
    page = one.read(None, context_of(plan), plan.low, None, 3)
    with pytest.raises(SourceChanged, match="the first 3 items are not those"):
        reader(now).read(None, context_of(plan), page.end, None, 3)


def test_another_future_is_nobody_s_business() -> None:
    one = reader(GIVEN)
    (plan,) = plans_of(one)
    page = one.read(None, context_of(plan), plan.low, None, 3)
    assert reader([*GIVEN[:3], "new"]).read(None, context_of(plan), page.end, None, 3).items == [
        "new"
    ]


def test_items_without_a_value_of_their_own_are_refused() -> None:
    class Mute:
        pass

    with pytest.raises(TypeError, match="Mute shows no value of its own"):
        items(lambda: reader([Mute()]))


def test_what_is_passed_over_is_not_kept() -> None:
    one = IterableReader(items=lambda context: range(200_000), key=str)
    (plan,) = plans_of(one)
    context = context_of(plan)
    end = one.read(None, context, plan.low, None, 199_990).end
    successor = IterableReader(items=lambda context: range(200_000), key=str)
    tracemalloc.start()
    try:
        assert successor.read(None, context, end, None, 5).items == list(range(199_990, 199_995))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_an_item_error_shows_the_item() -> None:
    @dataclasses.dataclass
    class Line:
        cents: int

    one = reader([])
    assert one.key_of(7) == "key 7"
    assert one.payload_of({"a": 1}) == {"a": 1}
    assert one.payload_of(Line(5)) == {"cents": 5}
    assert one.payload_of(7) == {"item": 7}
