"""A run of the demo between its submission and its end: workers, kills, and new workers."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

import retoma
from retoma import RetomaError, Store
from retoma.reconciliation.demo_display import Display
from retoma.reconciliation.demo_workers import Worker, kill_mid_chunk, start_worker

APP: Final = "retoma.reconciliation.demo_job"

_ENDED = ("COMPLETED", "PARTIALLY_COMPLETED", "FAILED", "STOPPED")
_LOOK_EVERY_SECONDS = 0.05
_LEAVE_SECONDS = 10.0
_MOST_WORKERS_LOST = 20


@dataclass(frozen=True, slots=True)
class Outcome:
    """How a run under kills went: workers killed, and seconds from the first worker to the end."""

    kills: int
    seconds: float


def post_under_kills(
    store: Store,
    run_id: int,
    directory: Path,
    *,
    workers: int,
    chunk_size: int,
    seed: int,
    display: Display,
) -> Outcome:
    """Let workers post the run; kill one at some 60 %, all at some 90 %, and go on with new ones.

    The exact moments are drawn from the seed. Returns when the run has ended, in whatever state;
    all workers are ended by then. Raises ``RetomaError`` if workers keep ending by themselves.
    """
    night = _Night(store, run_id, directory, chunk_size, display, Random(seed))
    since = time.monotonic()
    try:
        night.start(workers)
        night.watch(workers)
        seconds = time.monotonic() - since
        night.dismiss()
    finally:
        night.end()
    return Outcome(night.kills, seconds)


@dataclass(slots=True)
class _Night:
    store: Store
    run_id: int
    directory: Path
    chunk_size: int
    display: Display
    rng: Random
    started: list[Worker] = field(default_factory=list)
    kills: int = 0

    def start(self, number: int) -> None:
        for _ in range(number):
            place = len(self.started) + 1
            self.started.append(
                start_worker(self.store.url, APP, self.directory, place, self.chunk_size)
            )
        self.display.say(f"{number} worker(s) started")

    def alive(self) -> list[Worker]:
        return [worker for worker in self.started if worker.is_alive]

    def watch(self, workers: int) -> None:
        """Look until the run has ended; kill at the thresholds, replace what is gone."""
        first, last = self.rng.uniform(0.58, 0.62), self.rng.uniform(0.88, 0.92)
        while True:
            now = retoma.status(self.store, self.run_id)
            self.display.show(now)
            if now["state"] in _ENDED:
                return
            share = now["items_read"] / now["items_total"] if now["items_total"] else 0.0
            if share >= last:
                last = float("inf")
                self._kill(self.alive(), share)
                self.start(workers)
            elif share >= first:
                first = float("inf")
                self._kill([self.rng.choice(self.alive())] if self.alive() else [], share)
            if not self.alive():
                self._replace(workers)
            _pause(_LOOK_EVERY_SECONDS)

    def _kill(self, victims: list[Worker], share: float) -> None:
        if victims and kill_mid_chunk(self.store.engine, self.run_id, victims, self.rng, _pause):
            self.kills += len(victims)
            self.display.say(f"at {share:.0%}: SIGKILL to {len(victims)} worker(s), mid-chunk")

    def _replace(self, workers: int) -> None:
        gone = sum(not worker.is_alive for worker in self.started) - self.kills
        if gone > _MOST_WORKERS_LOST:
            raise RetomaError(
                f"{gone} workers ended by themselves; the last one said: {_tail(self.started[-1])}",
                safe="What is committed stays; the run can be taken up again.",
            )
        self.start(workers)

    def dismiss(self) -> None:
        """Ask the idle workers to leave, and wait until they have."""
        until = time.monotonic() + _LEAVE_SECONDS
        for worker in self.alive():
            worker.process.terminate()
        while self.alive() and time.monotonic() < until:
            _pause(_LOOK_EVERY_SECONDS)

    def end(self) -> None:
        """End whatever still runs."""
        for worker in self.started:
            worker.kill()


def _tail(worker: Worker) -> str:
    return " ".join(worker.log.read_text("utf-8", "replace").split())[-400:]


def _pause(seconds: float) -> Any:
    # Not time.sleep: a signal's handler runs at once, and the wait ends with what it raises.
    return threading.Event().wait(seconds)
