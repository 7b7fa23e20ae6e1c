"""A slot: a child process that works on one chunk at a time and lives for many.

It is exec'd by its supervisor, gets its settings as the first line of standard input, then
messages; it reports on what was its standard output. It ends by itself when its supervisor is gone:
at the end of that input, and by the kernel's parent-death signal.
"""

from __future__ import annotations

import ctypes
import json
import os
import random
import signal
import sys
import threading
from typing import Any

from retoma.clock import SYSTEM_CLOCK
from retoma.cluster.timing import Timing
from retoma.engine.attempt import Attempts
from retoma.engine.find import Finder
from retoma.engine.sessions import SlotSessions
from retoma.engine.task import as_item_step
from retoma.errors import FailureKind
from retoma.faults import point_from
from retoma.model.records import Claim, OpenStep, Owner
from retoma.registry import load_jobs
from retoma.store.store import Store, is_database_error

_PR_SET_PDEATHSIG = 1
_SHORTEST_POLL = 0.02
_LONGEST_POLL = 0.5


def tie_to_parent(supervisor: int) -> None:
    """Die when the supervisor dies, even in the middle of code that never returns."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(3)


class Orders:
    """What the supervisor last said: until when to believe, whether to stop, as which node."""

    def __init__(self, node_id: int) -> None:
        self.node_id = node_id
        self.node_belief = 0.0
        self.beliefs: dict[str, float] = {}
        self.stop = threading.Event()

    def follow(self) -> None:
        """Read orders until the supervisor is gone, then end this process at once."""
        for line in sys.stdin.buffer:
            order = json.loads(line)
            if "believe" in order:
                self.node_belief = order["believe"]
                self.beliefs = order["claims"]
            if "node" in order:
                self.node_id = order["node"]
            if order.get("stop"):
                self.stop.set()
        os._exit(3)


class Slot:
    """The loop of one slot; ``tick`` works off at most one chunk."""

    def __init__(self, settings: dict[str, Any], orders: Orders, reports: int) -> None:
        self.orders = orders
        self.timing = Timing(**settings["timing"])
        self.store = Store(settings["url"], point=point_from(os.environ))
        self.jobs = load_jobs(settings["apps"])
        self.number: int = settings["slot"]
        self.run_id: int | None = settings["run_id"]
        self._reports = reports
        self._claim_belief = 0.0
        self.sessions = SlotSessions(self.store, SYSTEM_CLOCK, self._believe_until)

    def _believe_until(self, claimed: Claim) -> float:
        return max(self._claim_belief, self.orders.beliefs.get(claimed.token, 0.0))

    def _owner(self) -> Owner:
        return Owner(self.orders.node_id, self.number, os.getpid())

    def report(self, **message: Any) -> None:
        """One line to the supervisor."""
        os.write(self._reports, json.dumps(message).encode() + b"\n")

    def tick(self) -> bool:
        """Find and work off one chunk; False if there was nothing to do."""
        if SYSTEM_CLOCK.boottime() >= self.orders.node_belief:
            return False
        sent = SYSTEM_CLOCK.boottime()
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
        self.report(claimed=claimed.token, chunk=claimed.chunk_id, deadline=deadline)
        self.store.point("slot.claimed")
        attempts = Attempts(self.store, self.sessions, owner, random.Random())
        try:
            outcome = attempts.run(job, step, claimed)
        except Exception as error:
            if is_database_error(error):  # the attempt is over: the supervisor gives the chunk back
                kind, message = FailureKind.TRANSIENT, _said(error)
                self.report(ended=claimed.token, kind=kind, items=0, message=message)
            raise
        items = outcome.counts.first_reads if outcome.counts else 0
        self.report(ended=claimed.token, kind=outcome.kind, items=items, message=outcome.message)
        if outcome.kind is FailureKind.LOST_RACE:
            self.store.point("slot.walked_away")

    def serve(self) -> None:
        """Work until told to stop."""
        pause = _SHORTEST_POLL
        while not self.orders.stop.is_set():
            try:
                is_busy = self.tick()
            except Exception as error:
                if not is_database_error(error):
                    raise
                self.sessions.reopen()
                self.report(trouble=_said(error))
                is_busy, pause = False, _LONGEST_POLL
            pause = _SHORTEST_POLL if is_busy else min(pause * 1.5, _LONGEST_POLL)
            if not is_busy:
                self.orders.stop.wait(pause * random.uniform(0.7, 1.3))


def _said(error: Exception) -> str:
    """What the database said, without the statement and its values."""
    return str(getattr(error, "orig", None) or error).strip()[:500]


def main() -> None:
    """Entry of the child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reports = os.dup(1)
    os.dup2(2, 1)  # what a job prints must not mix with the reports
    settings = json.loads(sys.stdin.buffer.readline())
    tie_to_parent(settings["supervisor"])
    orders = Orders(settings["node_id"])
    orders.node_belief = settings["believe"]
    threading.Thread(target=orders.follow, daemon=True, name="orders").start()
    slot = Slot(settings, orders, reports)
    slot.serve()
    slot.store.dispose()
    os._exit(0)


if __name__ == "__main__":
    main()
