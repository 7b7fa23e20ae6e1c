"""One node driven by hand: launch, plan, claim, work, close, each when the test says so."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select

from retoma.clock import SystemClock
from retoma.cluster import takeover
from retoma.engine.advance import Advance
from retoma.engine.attempt import Attempts, Outcome
from retoma.engine.find import Finder
from retoma.engine.launch import launch
from retoma.engine.sessions import SlotSessions
from retoma.faults import Point, no_point
from retoma.model.job import Job
from retoma.model.records import Claim, OpenStep, Owner, RunRow
from retoma.model.status import RunState
from retoma.resilience.retry import RetryPolicy
from retoma.store import progress, runs, tables
from retoma.store.session import Session
from retoma.store.store import Store
from tests.engine.small_job import DAY, effect, source

LEASE = 20.0
OUTCOMES = tables.COUNTS


class QuickClock(SystemClock):
    """Waits hardly at all, and tells who wants to know that somebody waits."""

    def __init__(self) -> None:
        self.pauses: list[float] = []
        self.on_pause: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.on_pause()
        super().sleep(min(seconds, 0.02))


class Night:
    """A store, one slot and its node's coordinator, without processes or timers."""

    def __init__(self, url: str, job: Job, *, point: Point = no_point, slot: int = 0) -> None:
        self.clock = QuickClock()
        self.job = job
        self.store = Store(url, point=point, clock=self.clock)
        self.owner = Owner(node_id=1, slot=slot, pid=0)
        self.belief_seconds = 60.0
        self.policy = RetryPolicy(first_seconds=0.001)
        self.sessions = SlotSessions(self.store, self.clock, self._believe_until)
        self.run_id = 0
        self._token = ""

    def _believe_until(self, claimed: Claim) -> float:
        return self.clock.boottime() + self.belief_seconds

    @property
    def session(self) -> Session:
        """The slot's control session."""
        return self.sessions.control

    def close(self) -> None:
        """Close everything, as a process that ends does."""
        self.sessions.reopen()
        self.store.dispose()

    def launch(self, parameters: Mapping[str, Any] = DAY) -> RunRow:
        """Start or find the run, and coordinate it."""
        self.run_id = launch(self.session, self.job, parameters, "tester").run.run_id
        run = self.run()
        if run.is_live:
            self._token = runs.coordinate(self.session, run, 1, LEASE, "test") or ""
            assert self._token
        return self.run()

    def run(self) -> RunRow:
        """The run as it is now."""
        run = runs.get(self.session, self.run_id)
        assert run is not None
        return run

    def advance(self) -> RunState | None:
        """One act of the coordinator."""
        act = Advance(self.session, self.job, self.run(), self._token, "tester", slots=1)
        return act.tick()

    def find(self) -> tuple[OpenStep, Claim] | None:
        """The next chunk of this run."""
        jobs = {self.job.name: self.job}
        finder = Finder(self.store, jobs, self.owner, LEASE, self.run_id)
        return finder.find(self.session)

    def attempt(self, step: OpenStep, claimed: Claim) -> Outcome:
        """One attempt at a claimed chunk."""
        attempts = Attempts(self.store, self.sessions, self.owner, random.Random(1), self.policy)
        return attempts.run(self.job, step, claimed)

    def work_one(self) -> Outcome | None:
        """Find a chunk and work it off."""
        found = self.find()
        return self.attempt(*found) if found else None

    def to_end(self) -> RunState:
        """Move on until the run has ended."""
        for _ in range(1_000):
            ended = self.advance()
            if ended is not None:
                return ended
            while self.work_one() is not None:
                pass
            self.session.change("t", "UPDATE batch_chunk SET retry_at = NULL")  # time passes
        raise AssertionError("the run does not end")

    def whole(self, parameters: Mapping[str, Any] = DAY) -> RunState:
        """Launch and move on until the run has ended."""
        run = self.launch(parameters)
        return self.to_end() if run.is_live else RunState(run.state)

    def take_over_all(self) -> None:
        """Treat every RUNNING chunk's owner as dead."""
        for row in progress.running_chunks(self.session):
            seen = takeover.running_from(self.store, self.session, row)
            assert takeover.end_lost(self.store, self.session, seen, "its worker is dead")

    def seed(self, verdicts: Sequence[str], first: int = 1) -> None:
        """Source rows with these verdicts; the amount of row n is 10·n."""
        rows = [
            {"id": n, "verdict": verdict, "amount": 10 * n}
            for n, verdict in enumerate(verdicts, start=first)
        ]
        with self.store.engine.begin() as connection:
            connection.execute(insert(source), rows)

    def change(self, statement: str) -> None:
        """Somebody else changes something and commits."""
        with self.store.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    def effects(self) -> list[tuple[Any, ...]]:
        """All effects in the order of their keys."""
        columns = (effect.c.effect_key, effect.c.digest, effect.c.amount)
        return sorted(tuple(row) for row in self.session.fetch("t", select(*columns)))

    def faults(self) -> list[tuple[str, str, str]]:
        """Key, state and reason of each item error, sorted."""
        table = tables.item_error
        statement = select(table.c.item_key, table.c.state, table.c.reason)
        return sorted(tuple(row) for row in self.session.fetch("t", statement))

    def rows(self, table: Any) -> list[Any]:
        """All rows of a table in the order of their ids."""
        return self.session.fetch("t", select(table).order_by(table.c.id))

    def counts(self) -> dict[str, int]:
        """The counters of all chunks together; each chunk's equation is checked on the way."""
        total = dict.fromkeys(OUTCOMES, 0)
        for chunk in self.rows(tables.chunk):
            assert chunk.first_reads == sum(getattr(chunk, name) for name in OUTCOMES[1:])
            for name in OUTCOMES:
                total[name] += getattr(chunk, name)
        return total

    def chunk_states(self) -> list[str]:
        """The states of all chunks in the order of their ids."""
        return [chunk.state for chunk in self.rows(tables.chunk)]

    def attempts(self) -> list[tuple[int, str]]:
        """Fence and outcome of every attempt in the order of their ids."""
        return [(row.fence, row.outcome) for row in self.rows(tables.attempt)]
