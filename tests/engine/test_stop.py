"""A stop is a request: the chunk in hand is finished, and the same command goes on later."""

from __future__ import annotations

import pytest

from retoma.model.status import RunState
from retoma.store import requests, tables
from tests.engine.conftest import Nights
from tests.engine.small_job import make_job


def ask(here: object) -> None:
    requests.ask_to_stop(here.session, here.run_id, "tester", "maintenance")


def test_a_run_stops_at_a_chunk_border_and_goes_on_later(night: Nights) -> None:
    here = night(make_job(chunk_size=2))
    here.seed(["post", "post", "aside", "post", "post", "defer"])
    here.launch()
    here.advance()
    assert here.work_one() is not None
    found = here.find()
    assert found is not None
    ask(here)
    assert here.advance() is None  # no more claims
    assert here.find() is None
    assert here.advance() is None  # it waits for the chunk in hand
    assert here.attempt(*found).kind is None
    assert here.advance() is RunState.STOPPED
    assert here.counts()["first_reads"] == 4
    assert here.run().instance_state == "OPEN"

    later = night(make_job(chunk_size=2))
    assert later.whole() is RunState.PARTIALLY_COMPLETED
    assert later.run_id != here.run_id
    assert later.counts() == {
        "first_reads": 6,
        "done": 4,
        "already_done": 0,
        "filtered": 0,
        "set_aside": 1,
        "deferred": 1,
    }
    assert [run.state for run in later.rows(tables.run)] == ["STOPPED", "PARTIALLY_COMPLETED"]
    assert not later.run().stop_requested


def test_a_stop_that_finds_no_work_left_is_answered_completed(night: Nights) -> None:
    here = night()
    here.seed(["post"] * 2)
    here.launch()
    here.advance()
    assert here.work_one() is not None
    here.find()  # nothing is left to cut
    ask(here)
    assert here.advance() is RunState.COMPLETED


@pytest.mark.parametrize("rows", [0, 3])
def test_a_stop_before_the_plan_stops_before_anything_is_read(night: Nights, rows: int) -> None:
    here = night()
    if rows:
        here.seed(["post"] * rows)
    here.launch()
    ask(here)
    assert here.advance() is RunState.STOPPED
    assert here.rows(tables.partition) == []
    later = night()
    assert later.whole() is RunState.COMPLETED
    assert later.counts()["done"] == rows


def test_a_stop_does_not_wait_for_a_chunk_that_waits_for_its_retry(night: Nights) -> None:
    here = night(make_job(chunk_size=1))
    here.seed(["post"] * 2)
    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    here.take_over_all()
    here.session.change("t", "UPDATE batch_chunk SET retry_at = {delay}", {"delay_seconds": 600})
    ask(here)
    assert here.advance() is None
    assert here.advance() is RunState.STOPPED
    later = night(make_job(chunk_size=1))
    later.launch()
    assert later.to_end() is RunState.COMPLETED
    assert len(later.effects()) == 2
