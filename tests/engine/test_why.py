"""``why`` says in words what holds of a run or a chunk, and the next command, in every state."""

from __future__ import annotations

import pytest

from retoma.cluster.identity import this_node
from retoma.errors import UsageError
from retoma.model.status import RunState
from retoma.operations.why import Explanation, why_chunk, why_run
from retoma.store import nodes, requests, tables
from tests.engine.conftest import Nights
from tests.engine.night import Night
from tests.engine.small_job import make_job


def asked(here: Night) -> tuple[Explanation, str]:
    found = why_run(here.store, here.run_id)
    return found, "\n".join(found.sentences)


def test_a_complete_run_says_so(night: Nights) -> None:
    here = night()
    here.seed(["post"] * 2)
    assert here.whole() is RunState.COMPLETED
    found, words = asked(here)
    assert found.subject == f"run {here.run_id} of job small: COMPLETED"
    assert words == (
        "everything was done\n1 chunks (2 items) are committed and will not be done again"
    )
    assert found.next_step == f"retoma verify {here.run_id}"


def test_what_was_set_aside_is_counted_by_reason(night: Nights) -> None:
    here = night()
    here.seed(["post", "aside", "aside"])
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    found, words = asked(here)
    assert "2 items are SET_ASIDE with reason" in words
    assert found.next_step == f"retoma errors list {here.run_id}"


def test_an_empty_input_is_told(night: Nights) -> None:
    here = night()
    assert here.whole() is RunState.COMPLETED
    assert asked(here)[1] == "its input was empty"


def test_a_failed_run_names_the_failure_the_chunk_and_what_is_safe(night: Nights) -> None:
    here = night(make_job(process=lambda item, _context: 1 / (3 - item.id), chunk_size=2))
    here.seed(["post"] * 4)
    assert here.whole() is RunState.FAILED
    found, words = asked(here)
    assert words.startswith("it failed (")
    chunk = next(row for row in here.rows(tables.chunk) if row.state == "FAILED")
    assert f"chunk {chunk.id} is FAILED after" in words
    assert "cure the cause, then repeat" in found.next_step
    told = why_chunk(here.store, chunk.id)
    assert told.subject == f"chunk {chunk.id} of step copy: FAILED"
    assert any("ended FAILED" in sentence for sentence in told.sentences)


def test_a_stopped_run_names_who_asked_and_why(night: Nights) -> None:
    here = night(make_job(chunk_size=1))
    here.seed(["post"] * 2)
    here.launch()
    here.advance()
    assert here.work_one() is not None
    requests.ask_to_stop(here.session, here.run_id, "ana", "maintenance")
    assert "it is asked to stop" in asked(here)[1]
    assert here.advance() is None  # claims are shut
    while here.advance() is not RunState.STOPPED:
        pass
    found, words = asked(here)
    assert words.startswith("ana asked it to stop: maintenance")
    assert "1 chunks (1 items) are committed" in words
    assert found.next_step == "repeat the same retoma run to go on"


def join(here: Night) -> None:
    nodes.register(here.session, this_node(here.store.host, "", 1, "1"))


def test_a_run_at_work_names_its_chunks_and_their_owner(night: Nights) -> None:
    here = night(make_job(chunk_size=2))
    here.seed(["post"] * 2)
    here.launch()
    here.advance()
    assert here.find() is not None
    join(here)
    with_worker = asked(here)[1]
    assert "1 chunks running, 0 waiting" in with_worker
    chunk = here.rows(tables.chunk)[0]
    told = why_chunk(here.store, chunk.id)
    assert any("works on it; its lease ends at" in sentence for sentence in told.sentences)
    here.change("UPDATE batch_node SET beat_at = '2000-01-01 00:00:00'")  # ACTIVE, but silent
    found, words = asked(here)
    assert words.startswith("no worker is alive")
    assert found.next_step.startswith("retoma worker")


def test_a_run_that_nobody_took_waits_for_a_worker(night: Nights) -> None:
    here = night()
    here.seed(["post"])
    here.launch()
    join(here)
    here.change("UPDATE batch_run SET coordinator = NULL")
    assert "live workers to take it" in asked(here)[1]


def test_unknown_runs_and_chunks_are_refused(night: Nights) -> None:
    here = night()
    with pytest.raises(UsageError, match="no run 99999"):
        why_run(here.store, 99_999)
    with pytest.raises(UsageError, match="no chunk 99999"):
        why_chunk(here.store, 99_999)
