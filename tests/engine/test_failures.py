"""What can't be cured by waiting fails at once, says why, and can be taken up after the cure."""

from __future__ import annotations

from typing import Any

import pytest

from retoma.errors import FailureKind
from retoma.model.status import RunState
from retoma.readers.table import TableReader
from retoma.store import chunks, tables
from tests.engine.conftest import Nights
from tests.engine.small_job import READER, make_job


def as_posted(item: Any, context: Any) -> Any:
    """The cured version of the job's function."""
    return (f"key {item.id}", f"digest {item.amount}", item.amount, "note")


def test_an_error_of_user_code_fails_its_chunk_alone_and_the_run_can_be_taken_up(
    night: Nights,
) -> None:
    here = night(make_job(chunk_size=2))
    here.seed(["post", "post", "post", "boom", "post", "post"])
    assert here.whole() is RunState.FAILED
    assert here.chunk_states() == ["COMPLETED", "FAILED", "COMPLETED"]
    run = here.run()
    assert (run.failure_kind, run.instance_state) == ("PERMANENT", "OPEN")
    assert "ValueError: boom at 4" in str(run.failure)
    assert "529" not in str(run.failure)
    assert here.clock.pauses == []
    assert len(here.effects()) == 4

    cured = night(make_job(chunk_size=2, process=as_posted))
    assert cured.whole() is RunState.COMPLETED
    assert len(cured.effects()) == 6
    assert cured.counts()["done"] == cured.counts()["first_reads"] == 6
    assert [run.state for run in cured.rows(tables.run)] == ["FAILED", "COMPLETED"]
    assert {chunk.run_id for chunk in cured.rows(tables.chunk)} == {run.run_id, cured.run_id}


class Unsteady(TableReader):
    """A reader whose own code fails where the next chunk is looked for."""

    def next_end(self, *given: Any) -> Any:
        raise LookupError("no such file")


class Refused(TableReader):
    """A reader whose query for the next chunk the database refuses, as it refuses a row's value."""

    def next_end(self, source: Any, *given: Any) -> Any:
        statement = {
            "postgresql": "SELECT 1 / 0",
            "mariadb": "SELECT nothing FROM nowhere",
            "sqlite": "SELECT nothing FROM nowhere",
        }
        return source.fetch("t", statement[source.backend])


@pytest.mark.parametrize("reader_class", [Unsteady, Refused])
def test_a_reader_that_is_broken_for_good_does_not_keep_the_slots_busy_for_ever(
    night: Nights, reader_class: Any
) -> None:
    reader = reader_class(query=READER.query, key=READER.key, version=READER.version)
    here = night(make_job(reader=reader))
    here.seed(["post"] * 3)
    here.launch()
    here.advance()
    found = here.find()  # the rest as one chunk: its attempt puts the error on the record, if any
    assert found is not None
    assert (found[1].start, found[1].end) == (0, 3)
    assert here.attempt(*found).kind is None
    assert here.to_end() is RunState.COMPLETED


def test_a_lost_claim_walks_away_without_writing(night: Nights) -> None:
    here, other = night(), night(slot=1)
    here.seed(["post", "aside"])
    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    other.take_over_all()
    other.run_id = here.run_id
    successor = other.find()
    assert successor is not None
    assert here.attempt(*found).kind is FailureKind.LOST_RACE
    assert here.clock.pauses == []  # it does not try again what is not its own any more
    assert (here.effects(), here.faults()) == ([], [])
    assert here.attempts() == [(1, "LOST")]
    assert other.attempt(*successor).kind is None
    assert other.attempts() == [(1, "LOST"), (2, "COMPLETED")]


def test_a_slot_that_no_longer_believes_begins_nothing(night: Nights) -> None:
    points: list[str] = []
    here = night(point=points.append)
    here.seed(["post"])
    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    here.belief_seconds = -1.0
    points.clear()
    assert here.attempt(*found).kind is FailureKind.LOST_RACE
    assert not {"reader.read", "chunk.processed", "work.begin", "chunk.witness"} & set(points)
    assert here.effects() == []
    assert here.chunk_states() == ["RUNNING"]
    assert here.attempts() == []


def test_a_chunk_that_is_finished_is_not_finished_again(night: Nights) -> None:
    here = night()
    here.seed(["post"])
    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    assert here.attempt(*found).kind is None
    again = here.attempt(*found)
    assert again.kind in (None, FailureKind.LOST_RACE)
    assert len(here.effects()) == 1
    assert here.attempts() == [(1, "COMPLETED")]
    assert not chunks.release(here.session, found[1], to_state="PENDING", outcome="LOST")
