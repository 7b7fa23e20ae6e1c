"""Die before every statement, be taken over, and compare: the proof that a job survives anything."""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from retoma.engine.history import Entry
from retoma.faults import no_point
from retoma.model.job import Job
from retoma.model.status import RunState
from retoma.operations.commands import prepare
from retoma.operations.verify import verify
from retoma.store.store import Store
from retoma.testing.death import Killed, KilledAt
from retoma.testing.history import check
from retoma.testing.one_slot import run_in_process

Fresh = Callable[[], str]
"""Answers with the URL of a database in which nothing of the job was done yet."""


@dataclass(frozen=True, slots=True)
class CrashReport:
    """What was survived.

    ``state`` is how the run ended each time; ``points`` names the statement before which each death
    happened.
    """

    state: RunState
    points: tuple[str, ...]

    @property
    def deaths(self) -> int:
        """How many times the job died."""
        return len(self.points)


def crash_everywhere(
    job: Job,
    database: Path | Fresh,
    parameters: Mapping[str, Any] | None = None,
    *,
    result: Callable[[Any], Any],
    seed: Callable[[Any], None] | None = None,
) -> CrashReport:
    """Crash the job before each of its statements; taken over, it must do what it does undisturbed.

    The job runs once undisturbed. Then it dies before its first statement, and a successor takes
    over and completes it; in a fresh database it dies before the second one; and so on, until it
    lives on to its end. Each time ``result(connection)`` must equal that of the undisturbed run, the
    run must end in the same state, and the control tables and the history of all attempts must
    agree.

    ``database`` is a folder, in which SQLite files are made, or a function that answers with the URL
    of another fresh database, or of one that it has emptied, each time that it is called.
    ``seed(connection)`` fills the job's tables before each run; the job's ``prepare`` has made them.
    Both are given an SQLAlchemy connection; what ``seed`` does is committed.

    Raises ``AssertionError`` that names the statement, the number of the death and both results.
    """
    urls = _fresh(job, database, seed)
    expected = _live(job, next(urls), parameters or {}, None, result)
    points: list[str] = []
    for number in itertools.count(1):
        point = KilledAt(number)
        url = next(urls)
        try:
            found = _live(job, url, parameters or {}, point, result)
        except Exception as error:
            error.add_note(f"{_story(number, point)}; database {_shown(url)}")
            raise
        if found != expected:
            raise AssertionError(
                f"{_story(number, point)}, and the outcome is another one\n"
                f"  undisturbed: {expected}\n"
                f"  now:         {found}\n"
                f"  database:    {_shown(url)}"
            )
        if point.died_at is None:
            break
        points.append(point.died_at)
    return CrashReport(expected.state, tuple(points))


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What must not depend on deaths."""

    state: RunState
    result: Any
    is_clean: bool
    broken: tuple[str, ...]

    def __str__(self) -> str:
        proof = "" if self.is_clean else f", not proven {list(self.broken)}"
        return f"{self.state}, result {self.result!r}{proof}"


def _live(
    job: Job,
    url: str,
    parameters: Mapping[str, Any],
    point: KilledAt | None,
    result: Callable[[Any], Any],
) -> _Outcome:
    """One life, a second one if the first ended early, and what is there then."""
    told: list[Entry] = []
    try:
        ended = run_in_process(job, url, parameters, point=point or no_point, log=told.append)
    except Killed:
        ended = run_in_process(job, url, parameters, slot=1, log=told.append)
    store = Store(url)
    try:
        violations = check(told, store, ended.run_id)
        assert not violations, "\n".join(str(each) for each in violations)
        proof = verify(store, job, ended.run_id)
        with store.engine.connect() as connection:
            found = result(connection)
        return _Outcome(ended.state, found, proof["is_clean"], tuple(proof["broken"]))
    finally:
        store.dispose()


def _fresh(job: Job, database: Path | Fresh, seed: Callable[[Any], None] | None) -> Iterator[str]:
    """Again and again the URL of a database that was prepared and seeded, and nothing more."""
    if not isinstance(database, Path):
        while True:
            url = database()
            _prepare(job, url, seed)
            yield url
    folder = Path(tempfile.mkdtemp(prefix="crash-", dir=database))
    template = folder / "template.db"
    _prepare(job, f"sqlite:///{template}", seed)
    copy = folder / "crash.db"
    while True:
        for old in folder.glob("crash.db*"):
            old.unlink()
        shutil.copy(template, copy)
        yield f"sqlite:///{copy}"


def _prepare(job: Job, url: str, seed: Callable[[Any], None] | None) -> None:
    store = Store(url)
    try:
        prepare(store, job)
        if seed is not None:
            with store.engine.begin() as connection:
                seed(connection)
    finally:
        store.dispose()


def _story(number: int, point: KilledAt) -> str:
    if point.died_at is None:
        return f"nobody died in life {number}: the job does not do the same twice"
    return f"death {number}, before {point.died_at!r}, was taken over"


def _shown(url: str) -> str:
    store = Store(url)
    store.dispose()
    return store.shown_url
