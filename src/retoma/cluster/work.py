"""The loop of one slot, wherever it runs: find a chunk, work it off, tell the supervisor."""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.cluster.timing import Timing
from retoma.engine.attempt import Attempts
from retoma.engine.find import Finder
from retoma.engine.history import Log, no_log
from retoma.engine.sessions import SlotSessions
from retoma.engine.task import as_item_step
from retoma.errors import FailureKind
from retoma.model.job import Job
from retoma.model.records import Claim, OpenStep, Owner
from retoma.store.store import Store, is_database_error

_SHORTEST_POLL = 0.02


@dataclass(slots=True)
class Orders:
    """What the supervisor last said: until when to believe, whether to stop, as which node."""

    node_id: int
    node_belief: float = 0.0
    beliefs: dict[str, float] = field(default_factory=dict)
    stop: threading.Event = field(default_factory=threading.Event)

    def take(self, order: Mapping[str, Any]) -> None:
        """Take in one order."""
        if "believe" in order:
            self.node_belief = order["believe"]
            self.beliefs = order["claims"]
        if "node" in order:
            self.node_id = order["node"]
        if order.get("stop"):
            self.stop.set()


@dataclass(slots=True)
class SlotWork:
    """One slot; ``tick`` works off at most one chunk."""

    store: Store
    jobs: Mapping[str, Job]
    timing: Timing
    orders: Orders
    number: int
    run_id: int | None
    report: Callable[[Mapping[str, Any]], None]
    """Tells the supervisor: a claim, the end of an attempt, or trouble with the database."""

    random: random.Random = field(default_factory=random.Random)
    log: Log = no_log
    sessions: SlotSessions = field(init=False)
    _claim_belief: float = 0.0

    def __post_init__(self) -> None:
        self.sessions = SlotSessions(self.store, self.store.clock, self._believe_until)

    def _believe_until(self, claimed: Claim) -> float:
        return max(self._claim_belief, self.orders.beliefs.get(claimed.token, 0.0))

    def _owner(self) -> Owner:
        return Owner(self.orders.node_id, self.number, self.store.host.pid())

    def tick(self) -> bool:
        """Find and work off one chunk; False if there was nothing to do."""
        sent = self.store.clock.boottime()
        if sent >= self.orders.node_belief:
            return False
        owner = self._owner()
        finder = Finder(self.store, self.jobs, owner, self.timing.lease, self.run_id)
        found = finder.find(self.sessions.control)
        if found is None:
            return False
        self._claim_belief = sent + self.timing.lease - self.timing.margin
        self._work(owner, *found)
        return True

    def _work(self, owner: Owner, step: OpenStep, claimed: Claim) -> None:
        job = self.jobs[step.job_name]
        deadline = as_item_step(job.step(step.step_name)).attempt_deadline_seconds
        self.report({"claimed": claimed.token, "chunk": claimed.chunk_id, "deadline": deadline})
        self.store.point("slot.claimed")
        attempts = Attempts(self.store, self.sessions, owner, self.random, log=self.log)
        try:
            outcome = attempts.run(job, step, claimed)
        except Exception as error:
            if is_database_error(error):  # the attempt is over: the supervisor gives the chunk back
                self._ended(claimed, FailureKind.TRANSIENT, 0, _said(error))
            raise
        items = outcome.counts.first_reads if outcome.counts else 0
        self._ended(claimed, outcome.kind, items, outcome.message)
        if outcome.kind is FailureKind.LOST_RACE:
            self.store.point("slot.walked_away")

    def _ended(self, claimed: Claim, kind: FailureKind | None, items: int, message: str) -> None:
        self.report({"ended": claimed.token, "kind": kind, "items": items, "message": message})

    def serve(self, wait: Callable[[float], object]) -> None:
        """Work until told to stop; ``wait`` lets time pass between two looks."""
        pause = _SHORTEST_POLL
        while not self.orders.stop.is_set():
            try:
                is_busy = self.tick()
            except Exception as error:
                if not is_database_error(error):
                    raise
                self.sessions.reopen()
                self.report({"trouble": _said(error)})
                is_busy, pause = False, self.timing.poll
            pause = _SHORTEST_POLL if is_busy else min(pause * 1.5, self.timing.poll)
            if not is_busy:
                wait(pause * self.random.uniform(0.7, 1.3))


def _said(error: Exception) -> str:
    """What the database said, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).strip()[:500]
