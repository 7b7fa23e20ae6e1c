"""The input is pinned: what changed behind the reader's back fails the run and is named."""

from __future__ import annotations

import pytest

from retoma.model.status import RunState
from retoma.operations.verify import verify
from tests.engine.conftest import Nights
from tests.engine.night import Night
from tests.engine.small_job import make_job

LATE = "INSERT INTO source VALUES ({}, 'post', 1, 1)"


def half_done(night: Nights) -> Night:
    """Rows 1, 3 and 4 are read; 11, 12 and 13 are not; 13 is the cut-off."""
    here = night(make_job(chunk_size=3))
    here.seed(["post"] * 4)
    here.seed(["post"] * 3, first=11)
    here.change("DELETE FROM source WHERE id = 2")
    here.launch()
    here.advance()
    assert here.work_one() is not None
    assert here.counts()["first_reads"] == 3
    return here


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        (LATE.format(2), "6 items read (version sum 6), 7 there now (version sum 7)"),
        ("DELETE FROM source WHERE id = 3", "6 items read (version sum 6), 5 there now"),
        (
            "UPDATE source SET version = version + 1 WHERE id = 3",
            "6 items read (version sum 6), 6 there now (version sum 7)",
        ),
    ],
)
def test_a_change_of_what_was_read_fails_the_run_and_is_named(
    night: Nights, statement: str, words: str
) -> None:
    here = half_done(night)
    here.change(statement)
    assert here.to_end() is RunState.FAILED
    run = here.run()
    assert run.failure_kind == "SOURCE_CHANGED"
    assert words in str(run.failure)
    assert run.instance_state == "OPEN"
    assert len(here.effects()) == 6


def test_a_row_that_vanishes_before_its_chunk_is_read_fails_the_run_and_the_proof(
    night: Nights,
) -> None:
    here = half_done(night)
    here.change("DELETE FROM source WHERE id = 12")
    assert here.to_end() is RunState.FAILED
    run = here.run()
    assert run.failure_kind == "SOURCE_CHANGED"
    assert "6 items were planned, 5 are read" in str(run.failure)
    report = verify(here.store, here.job, run.run_id)
    assert not report["is_clean"]
    assert report["broken"] == ["step copy: 6 items were planned, 5 are read"]


def test_a_row_that_arrives_before_its_chunk_is_read_is_worked_off_like_the_others(
    night: Nights,
) -> None:
    here = half_done(night)
    here.change("DELETE FROM source WHERE id = 13")
    here.change(LATE.format(13))
    here.change(LATE.format(10))
    assert here.to_end() is RunState.COMPLETED
    assert len(here.effects()) == 7
    assert verify(here.store, here.job, here.run().run_id)["is_clean"]


def test_after_the_change_is_undone_the_run_can_be_taken_up(night: Nights) -> None:
    here = half_done(night)
    here.change(LATE.format(2))
    assert here.to_end() is RunState.FAILED
    assert night(make_job(chunk_size=3)).whole() is RunState.FAILED
    here.change("DELETE FROM source WHERE id = 2")
    again = night(make_job(chunk_size=3))
    assert again.whole() is RunState.COMPLETED
    assert again.counts()["done"] == 6


@pytest.mark.parametrize(
    "statement",
    [LATE.format(14), LATE.format(0), "UPDATE source SET version = version + 1 WHERE id = 12"],
)
def test_what_lies_beyond_the_cut_off_or_is_not_read_yet_may_change(
    night: Nights, statement: str
) -> None:
    here = half_done(night)
    here.change(statement)
    assert here.to_end() is RunState.COMPLETED
    assert len(here.effects()) == 6
