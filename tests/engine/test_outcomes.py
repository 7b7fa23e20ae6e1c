"""Every item read has exactly one outcome, counted with the chunk that read it."""

from __future__ import annotations

import json

import pytest

from retoma.model.status import RunState
from retoma.store import tables
from tests.engine.conftest import Nights
from tests.engine.small_job import make_job

EACH = ["post", "filter", "aside", "defer", "raise", "raise defer", "post"]


@pytest.mark.parametrize("chunk_size", [1, 3])
def test_each_outcome_is_counted_and_stored(night: Nights, chunk_size: int) -> None:
    here = night(make_job(chunk_size=chunk_size, partitions=2))
    here.seed(EACH)
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert here.counts() == {
        "first_reads": 7,
        "done": 2,
        "already_done": 0,
        "filtered": 1,
        "set_aside": 2,
        "deferred": 2,
    }
    assert here.effects() == [("key 1", "digest 10", 10), ("key 7", "digest 70", 70)]
    assert here.faults() == [
        ("3", "SET_ASIDE", "ASKED"),
        ("4", "NOT_READY", "LATER"),
        ("5", "SET_ASIDE", "RAISED"),
        ("6", "NOT_READY", "RAISED_LATER"),
    ]
    assert set(here.chunk_states()) == {"COMPLETED"}
    assert here.run().instance_state == "COMPLETED"


def test_an_item_error_tells_field_payload_and_origin_and_no_personal_data(night: Nights) -> None:
    here = night()
    here.seed(["post", "aside"])
    here.whole()
    [stored] = here.rows(tables.item_error)
    assert (stored.job_name, stored.step_name, stored.field) == ("small", "copy", "verdict")
    assert (stored.kind, stored.run_id) == ("INVALID_ITEM", here.run_id)
    assert json.loads(stored.payload) == {"id": 2, "verdict": "aside", "amount": 20, "version": 1}
    assert "529" not in stored.message
    assert stored.message.startswith("item 2 of CPF ***")
    assert stored.chunk_id == here.rows(tables.chunk)[0].id


def test_deferred_items_alone_leave_a_run_completed(night: Nights) -> None:
    here = night()
    here.seed(["post", "defer", "filter"])
    assert here.whole() is RunState.COMPLETED


def test_an_empty_input_completes(night: Nights) -> None:
    here = night()
    assert here.whole() is RunState.COMPLETED
    assert here.counts()["first_reads"] == 0
    assert here.rows(tables.partition) == []


def test_an_input_with_wide_gaps_is_read_whole(night: Nights) -> None:
    here = night(make_job(chunk_size=2, partitions=4))
    for first in (1, 1_000, 90_000):
        here.seed(["post"] * 3, first=first)
    assert here.whole() is RunState.COMPLETED
    assert here.counts()["done"] == 9
    assert all(p.is_cut for p in here.rows(tables.partition))


def test_a_completed_identity_does_nothing_when_asked_again(night: Nights) -> None:
    here = night()
    here.seed(["post"])
    assert here.whole() is RunState.COMPLETED
    before = here.attempts()
    assert night().whole() is RunState.COMPLETED
    assert here.attempts() == before
    assert len(here.rows(tables.run)) == 1
