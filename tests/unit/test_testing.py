"""What users test their own jobs with: the clock, deaths, runs in process, crashes everywhere."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, func, insert, select

from retoma import ItemStep, Job, StepContext, TaskStep
from retoma import testing as public
from retoma.model.status import RunState
from retoma.testing import FakeClock, Killed, KilledAt, crash_everywhere, run_in_process
from tests.engine.small_job import DAY, effect, make_job, metadata, source

JOB = replace(make_job(chunk_size=2), prepare=metadata.create_all)


def seed(connection: Connection) -> None:
    rows = [{"id": n, "verdict": "post", "amount": n} for n in range(1, 4)]
    connection.execute(insert(source), rows)


def result(connection: Connection) -> Any:
    return connection.execute(select(func.count(), func.sum(effect.c.amount))).one()


@pytest.fixture
def url(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path / 'own.db'}"


def test_every_public_name_is_there_and_says_what_it_promises() -> None:
    assert all(getattr(public, name).__doc__ for name in public.__all__)
    assert not hasattr(public, "nothing_of_the_kind")


def test_the_clock_moves_only_when_it_is_told_to() -> None:
    clock = FakeClock()
    start = clock.utc()
    assert (clock.monotonic(), clock.boottime()) == (0.0, 0.0)
    clock.sleep(2.0)
    clock.advance(3.0)
    clock.suspend(10.0)
    assert (clock.monotonic(), clock.boottime(), clock.pauses) == (5.0, 15.0, [2.0])
    assert clock.utc() - start == timedelta(seconds=15)
    with pytest.raises(ValueError, match="does not go back"):
        clock.advance(-1.0)


def test_death_comes_before_the_nth_statement_or_at_a_named_point_and_lasts() -> None:
    second, named = KilledAt(2), KilledAt("b.after", passing=2)
    for name in ("a", "a.after"):
        second(name)
    for name in ("b", "b.after", "b"):
        named(name)
    for point, name in ((second, "b"), (second, "c.after"), (named, "b.after"), (named, "a")):
        with pytest.raises(Killed):
            point(name)
    assert (second.died_at, named.died_at) == ("b", "b.after")
    with pytest.raises(ValueError, match="counted from 1"):
        KilledAt(0)


def test_a_job_runs_to_its_end_and_answers_the_same_when_asked_again(url: str) -> None:
    empty = run_in_process(JOB, url, DAY)
    assert (empty.state, empty.counts.first_reads) == (RunState.COMPLETED, 0)
    assert run_in_process(JOB, url, DAY) == empty


def test_a_run_that_was_killed_is_taken_up(url: str) -> None:
    with pytest.raises(Killed):
        run_in_process(seeding(), url, DAY, point=KilledAt("work.commit.after", passing=2))
    ended = run_in_process(seeding(), url, DAY)
    assert (ended.run_id, ended.state, ended.failure) == (1, RunState.COMPLETED, None)
    assert (ended.counts.done, ended.counts.first_reads) == (4, 4)


def seeding() -> Job:
    """The job with a task before it that fills the source."""

    def fill(tx: Any, context: StepContext) -> None:
        tx.insert(source, ("id", "verdict", "amount"), [(n, "post", n) for n in range(1, 4)])

    return replace(JOB, steps=(TaskStep(name="fill", work=fill), *JOB.steps))


def test_a_failure_is_returned_and_delays_are_skipped(url: str) -> None:
    tries = []

    def fails(tx: Any, context: StepContext) -> None:
        tries.append(context.run_id)
        raise ConnectionError("no answer")

    job = Job(name="fails", steps=(TaskStep(name="only", work=fails),))
    ended = run_in_process(job, url)
    assert ended.state is RunState.FAILED
    assert "no answer" in str(ended.failure)
    assert len(tries) == 25  # five tries of each of five attempts


def test_an_effect_outside_the_transaction_is_found_and_the_statement_named(
    tmp_path: Path,
) -> None:
    sent: list[int] = []

    def send(item: Any, context: StepContext) -> Any:
        sent.append(item.id)
        return JOB_STEP.process(item, context)

    job = replace(JOB, steps=(replace(JOB_STEP, process=send),))

    def count_and_forget(connection: Connection) -> int:
        found = len(sent)
        sent.clear()
        return found

    with pytest.raises(AssertionError) as raised:
        crash_everywhere(job, tmp_path, DAY, seed=seed, result=count_and_forget)
    message = str(raised.value)
    assert "before 'chunk.processed', was taken over" in message
    assert "undisturbed: COMPLETED, result 3" in message
    assert "now:         COMPLETED, result 5" in message
    assert "crash.db" in message


def test_a_job_that_does_not_do_the_same_twice_is_told_so(tmp_path: Path) -> None:
    answers = iter(range(100))
    job = Job(name="empty", steps=(TaskStep(name="only", work=lambda tx, context: None),))
    with pytest.raises(AssertionError, match=r"death 1, before 'run\.latest'"):
        crash_everywhere(job, tmp_path, result=lambda connection: next(answers))


JOB_STEP = JOB.steps[0]
assert isinstance(JOB_STEP, ItemStep)

USERS_TEST = """
def test_time(retoma_clock, retoma_store):
    session = retoma_store.control()
    ask = "SELECT retoma_now()"
    before = session.fetch("t", ask)[0][0]
    retoma_clock.advance(3600)
    assert session.fetch("t", ask)[0][0] > before
    assert session.fetch("t", "SELECT count(*) FROM batch_run")[0][0] == 0
    session.close()


def test_crashes(retoma_crash_everywhere):
    assert callable(retoma_crash_everywhere)
"""


def test_pytest_finds_the_fixtures_by_itself(tmp_path: Path) -> None:
    (tmp_path / "test_users.py").write_text(USERS_TEST, encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout
    assert "2 passed" in answer.stdout


def test_the_plugin_loads_nothing_but_itself() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules); import retoma.testing.plugin;"
        " print(*sorted(set(sys.modules) - before))"
    )
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    names = set(answer.stdout.split())
    assert names == {"retoma", "retoma.release", "retoma.testing", "retoma.testing.plugin"}


def test_importing_retoma_leaves_testing_alone() -> None:
    program = "import sys, retoma; retoma.run; print('retoma.testing' in sys.modules)"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "False"
