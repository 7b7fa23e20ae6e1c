"""One slot and its run's coordinator in this process: the real engine and store, no children."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from retoma.cluster import takeover
from retoma.engine.advance import Advance
from retoma.engine.attempt import Attempts, Outcome
from retoma.engine.find import Finder
from retoma.engine.history import Log, no_log
from retoma.engine.launch import launch
from retoma.engine.sessions import SlotSessions
from retoma.faults import Point, no_point
from retoma.model.job import Job
from retoma.model.records import Claim, Counts, OpenStep, Owner, RunRow
from retoma.model.status import RunState
from retoma.operations.commands import prepare
from retoma.resilience.retry import RetryPolicy
from retoma.store import progress, runs
from retoma.store.session import Session
from retoma.store.store import Store
from retoma.testing.clock import FakeClock

_LEASE_SECONDS = 20.0
_MOST_ROUNDS = 1_000
_SHORT_WAIT_SECONDS = 0.02
_TIME_PASSES = (
    "UPDATE batch_chunk SET retry_at = NULL WHERE state = 'PENDING' AND retry_at IS NOT NULL"
)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run ended: its id, its state, the counts of its instance, why it failed if it did."""

    run_id: int
    state: RunState
    counts: Counts
    failure: str | None = None


class OneSlot:
    """A store, one slot and its node's coordinator, moved on act by act, without timers.

    It believes in its claims for ``belief_seconds``, and takes whoever else owns a chunk for dead.
    ``slot`` tells apart two that stand for two processes.
    """

    def __init__(
        self,
        url: str,
        job: Job,
        *,
        point: Point = no_point,
        clock: FakeClock | None = None,
        slot: int = 0,
        log: Log = no_log,
    ) -> None:
        self.clock = clock or FakeClock(longest_wait=_SHORT_WAIT_SECONDS)
        self.job = job
        self.store = Store(url, point=point, clock=self.clock)
        self.owner = Owner(node_id=1, slot=slot, pid=0)
        self.belief_seconds = 60.0
        self.policy = RetryPolicy(first_seconds=0.001)
        self.log = log
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

    def launch(self, parameters: Mapping[str, Any]) -> RunRow:
        """Start or find the run, and coordinate it."""
        self.run_id = launch(self.session, self.job, parameters, "tester").run.run_id
        run = self.run()
        if run.is_live:
            self._token = runs.coordinate(self.session, run, 1, _LEASE_SECONDS, "test") or ""
            assert self._token, "somebody else coordinates this run"
        return self.run()

    def run(self) -> RunRow:
        """The run as it is now."""
        run = runs.get(self.session, self.run_id)
        assert run is not None
        return run

    def advance(self) -> RunState | None:
        """One act of the coordinator; the run's state once it has ended."""
        act = Advance(self.session, self.job, self.run(), self._token, "tester", slots=1)
        return act.tick()

    def find(self) -> tuple[OpenStep, Claim] | None:
        """The next chunk of this run."""
        jobs = {self.job.name: self.job}
        finder = Finder(self.store, jobs, self.owner, _LEASE_SECONDS, self.run_id)
        return finder.find(self.session)

    def attempt(self, step: OpenStep, claimed: Claim) -> Outcome:
        """One attempt at a claimed chunk."""
        attempts = Attempts(
            self.store, self.sessions, self.owner, random.Random(1), self.policy, self.log
        )
        return attempts.run(self.job, step, claimed)

    def work_one(self) -> Outcome | None:
        """Find a chunk and work it off."""
        found = self.find()
        return self.attempt(*found) if found else None

    def to_end(self) -> RunState:
        """Move on until the run has ended; raises ``AssertionError`` if it does not."""
        for _ in range(_MOST_ROUNDS):
            ended = self.advance()
            if ended is not None:
                return ended
            while self.work_one() is not None:
                pass
            self.session.change("test.time", _TIME_PASSES)
        raise AssertionError(f"run {self.run_id} does not end within {_MOST_ROUNDS} rounds")

    def whole(self, parameters: Mapping[str, Any]) -> RunState:
        """Launch, take over what others left, and move on until the run has ended."""
        run = self.launch(parameters)
        if not run.is_live:
            return RunState(run.state)
        self.take_over_all()
        return self.to_end()

    def take_over_all(self) -> None:
        """Treat the owner of every RUNNING chunk as dead."""
        for row in progress.running_chunks(self.session):
            seen = takeover.running_from(self.store, self.session, row)
            assert takeover.end_lost(self.store, self.session, seen, "its worker is dead")

    def ended(self) -> Ended:
        """What became of the run."""
        run = self.run()
        steps = progress.steps_of(self.session, run.instance_id)
        counted = [progress.of_step(self.session, step.step_id).counts for step in steps]
        sums = {f.name: sum(getattr(c, f.name) for c in counted) for f in fields(Counts)}
        return Ended(run.run_id, RunState(run.state), Counts(**sums), run.failure)


def run_in_process(
    job: Job,
    url: str,
    parameters: Mapping[str, Any] | None = None,
    *,
    point: Point = no_point,
    clock: FakeClock | None = None,
    slot: int = 0,
    log: Log = no_log,
) -> Ended:
    """Run a job to its end in this process: one slot, no child processes, no waiting.

    It starts the run of these parameters or takes it up, whoever left it; nothing else may work on
    the database meanwhile. An instance that is complete answers with its stored result. Delays
    between two tries are skipped. ``point`` is passed by every statement: give ``KilledAt`` to die
    there, then call again to take over. ``slot`` and ``log`` are for those who check the history of
    several lives.

    Raises ``UsageError`` for parameters that the job does not take, ``Killed`` if the point does,
    ``AssertionError`` if the run does not end. A run that fails is returned, not raised.
    """
    here = OneSlot(url, job, point=point, clock=clock, slot=slot, log=log)
    try:
        prepare(here.store, job)
        here.whole(parameters or {})
        return here.ended()
    finally:
        here.close()
