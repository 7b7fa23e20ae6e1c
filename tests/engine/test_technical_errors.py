"""A technical error is tried again outside the transaction; it never costs an item."""

from __future__ import annotations

import random
from typing import Any

import pytest

from retoma.errors import FailureKind
from retoma.model.status import RunState
from retoma.resilience.retry import RetryPolicy
from retoma.store import tables
from tests.engine.conftest import Nights
from tests.engine.small_job import make_job
from tests.engine.troubles import Hooked, OtherSession


def short_of_patience(tx: Any) -> None:
    """Wait less long for a lock than in production."""
    if tx.backend == "postgresql":
        tx.fetch("t", "SELECT set_config('lock_timeout', '200ms', true)")
    elif tx.backend == "mariadb":
        tx.change("t", "SET SESSION innodb_lock_wait_timeout = 1")


def interrupt(tx: Any) -> None:
    """Let the database end a statement of ours, as a timeout or an operator would."""
    if tx.backend == "postgresql":
        tx.fetch("t", "SELECT pg_cancel_backend(pg_backend_pid())")
    elif tx.backend == "mariadb":
        tx.change("t", "KILL QUERY CONNECTION_ID()")
        tx.fetch("t", "SELECT SLEEP(1)")
    else:
        driver = tx.connection.connection.driver_connection
        driver.set_progress_handler(lambda: 1, 1)
        try:
            tx.fetch("t", "SELECT count(*) FROM source")
        finally:
            driver.set_progress_handler(None, 0)


def test_a_row_locked_by_another_session_is_waited_for_outside(
    night: Nights, night_url: str
) -> None:
    writer = Hooked(before=short_of_patience)
    here = night(make_job(writer=writer))
    here.seed(["post"] * 3)
    begin = "BEGIN IMMEDIATE" if night_url.startswith("sqlite") else "BEGIN"
    insert = "INSERT INTO effect (effect_key, digest, amount, note) VALUES ('key 2', 'd', 1, 'n')"
    other = OtherSession(night_url)
    open_transactions: list[bool] = []

    def let_go() -> None:
        open_transactions.append(here.sessions.work._transaction is not None)
        other.run("ROLLBACK")

    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    if night_url.startswith("sqlite"):
        here.sessions.work.connection.exec_driver_sql("PRAGMA busy_timeout = 100")
        here.sessions.work.connection.rollback()
    other.run(begin, insert)
    here.clock.on_pause = let_go
    outcome = here.attempt(*found)
    here.clock.on_pause = lambda: None
    other.close()
    assert (outcome.kind, open_transactions) == (None, [False])
    assert here.to_end() is RunState.COMPLETED
    assert len(here.effects()) == 3
    assert here.rows(tables.item_error) == []
    assert here.rows(tables.chunk)[0].tries == 0


def test_an_interrupted_statement_is_tried_again(night: Nights) -> None:
    met: list[str] = []

    def once(tx: Any) -> None:
        if not met:
            met.append("trouble")
            interrupt(tx)

    writer = Hooked(after=once)
    here = night(make_job(writer=writer))
    here.seed(["post", "aside", "null"])
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert [key for key, _, _ in here.effects()] == ["key 1"]
    assert [key for key, _, _ in here.faults()] == ["2", "3"]
    assert len(here.clock.pauses) >= 1


def test_a_chunk_that_meets_trouble_again_and_again_fails_after_five_attempts(
    night: Nights,
) -> None:
    here = night(make_job(writer=Hooked(before=interrupt)))
    here.policy = RetryPolicy(tries=2, first_seconds=0.001)
    here.seed(["post"] * 2)
    assert here.whole() is RunState.FAILED
    assert here.attempts() == [(fence, "FAILED") for fence in range(1, 6)]
    [chunk] = here.rows(tables.chunk)
    assert (chunk.state, chunk.tries, chunk.failure_kind) == ("FAILED", 5, "TRANSIENT")
    assert here.run().failure_kind == "TRANSIENT"
    assert (here.effects(), here.faults()) == ([], [])

    cured = night()
    assert cured.whole() is RunState.COMPLETED
    assert len(cured.effects()) == 2


def test_a_failed_attempt_waits_before_the_next_one(night: Nights) -> None:
    here = night(make_job(writer=Hooked(before=interrupt)))
    here.seed(["post"])
    here.launch()
    here.advance()
    outcome = here.work_one()
    assert outcome is not None
    assert (outcome.kind, outcome.is_blameless) == (FailureKind.TRANSIENT, False)
    assert here.find() is None
    chunk = here.session.fetch(
        "t", "SELECT retry_at > {now}, retry_at > {delay} FROM batch_chunk", {"delay_seconds": 5}
    )[0]
    assert [bool(value) for value in chunk] == [True, False]


def test_the_waits_between_tries_are_those_of_the_policy(night: Nights) -> None:
    here = night(make_job(writer=Hooked(before=interrupt)))
    here.seed(["post"])
    here.launch()
    here.advance()
    assert here.work_one() is not None
    policy, source = RetryPolicy(first_seconds=0.001), random.Random(1)
    expected = [policy.wait_seconds(failed, source) for failed in range(1, 5)]
    assert [p for p in here.clock.pauses if p != 0.05] == pytest.approx(expected)


def test_a_frozen_predecessor_that_holds_locks_is_ended_by_its_successor(
    night: Nights, night_url: str
) -> None:
    if night_url.startswith("sqlite"):
        return  # there the sweep ends the process that holds the write lock
    here, old = night(make_job(writer=Hooked(before=short_of_patience))), night(slot=1)
    here.seed(["post"] * 3)
    here.launch()
    here.advance()
    found = here.find()
    assert found is not None
    here.take_over_all()
    work = old.sessions.work  # it wakes up after it was taken over, and locks what it writes
    work.begin("work.begin")
    work.dialect.enter_work(work, found[1].session_name, 30.0)
    work.change("t", "INSERT INTO effect (effect_key, digest, amount, note)"
                     " VALUES ('key 2', 'd', 1, 'n')")  # fmt: skip
    assert here.to_end() is RunState.COMPLETED
    assert len(here.effects()) == 3
