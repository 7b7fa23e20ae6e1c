"""A row that the database refuses is found by halving; the rest of its chunk is written."""

from __future__ import annotations

import math

import pytest

from retoma.model.status import RunState
from retoma.store import tables
from tests.engine.conftest import Nights
from tests.engine.small_job import CountingWriter, make_job

N = 64


@pytest.mark.parametrize(
    ("fault", "place"), [("null", 1), ("null", 38), ("check", N), ("surrogate", 38)]
)
def test_one_bad_row_is_set_aside_in_few_writes(night: Nights, fault: str, place: int) -> None:
    writer = CountingWriter()
    here = night(make_job(writer=writer))
    verdicts = ["post"] * N
    verdicts[place - 1] = fault
    here.seed(verdicts)
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert here.faults() == [(str(place), "SET_ASIDE", "REFUSED_BY_DATABASE")]
    assert len(here.effects()) == N - 1
    assert here.counts()["done"] == N - 1
    assert len(writer.calls) <= 2 * math.log2(N) + 1
    assert writer.calls[0] == (N, False)
    assert here.attempts() == [(1, "COMPLETED")]


def test_several_bad_rows_are_each_set_aside(night: Nights) -> None:
    here = night()
    here.seed(["null", "post", "check", "post", "post", "post", "null", "null"])
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert [key for key, _, _ in here.faults()] == ["1", "3", "7", "8"]
    assert [key for key, _, _ in here.effects()] == ["key 2", "key 4", "key 5", "key 6"]


def test_a_chunk_of_nothing_but_bad_rows_completes_without_effects(night: Nights) -> None:
    here = night()
    here.seed(["null"] * 5)
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert here.effects() == []
    assert here.counts()["set_aside"] == 5


def test_bad_rows_are_found_on_the_careful_path_too(night: Nights) -> None:
    here = night()
    here.seed(["post", "same", "null", "post"])  # the repeated key makes it look before it writes
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert here.counts()["already_done"] == 1
    assert here.faults() == [("3", "SET_ASIDE", "REFUSED_BY_DATABASE")]
    assert len(here.effects()) == 2


def test_the_reason_names_the_databases_words(night: Nights) -> None:
    here = night()
    here.seed(["check"])
    here.whole()
    [stored] = here.rows(tables.item_error)
    assert "check" in stored.message.lower() or "constraint" in stored.message.lower()
