"""The demo's workers: real processes, started as an operator would, and killed as no one should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random

from sqlalchemy import Engine

from retoma.reconciliation.demo_trace import chunk_ranges, chunks_with, last_item, slots_of

_MOST_DRAWS = 100
_SETTLE_SECONDS = 0.02


@dataclass(slots=True)
class Worker:
    """One worker process, in a session of its own together with its slots."""

    process: subprocess.Popen[bytes]
    log: Path
    traces: Path

    @property
    def is_alive(self) -> bool:
        """Whether the process runs."""
        return self.process.poll() is None

    def _slots(self) -> Iterator[tuple[int, Path]]:
        for pid, path in slots_of(self.traces, self.process.pid).items():
            with suppress(ProcessLookupError):
                if os.getsid(pid) == self.process.pid:  # a number that nobody else has got since
                    yield pid, path

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the worker and its slots; those that are gone are left out."""
        for pid in (self.process.pid, *(pid for pid, _ in self._slots())):
            if pid != self.process.pid or self.is_alive:
                with suppress(ProcessLookupError):
                    os.kill(pid, number)

    def kill(self) -> None:
        """SIGKILL, and see it gone."""
        self.signal(signal.SIGKILL)
        self.process.wait()

    def last_items(self) -> list[int]:
        """The item that each of its slots has seen last."""
        found = (last_item(path) for _, path in self._slots())
        return [ident for ident in found if ident is not None]


def start_worker(url: str, app: str, directory: Path, number: int, chunk_size: int) -> Worker:
    """Start ``retoma worker`` with one slot; its output goes to a log file in the directory."""
    traces = directory / "traces"
    traces.mkdir(exist_ok=True)
    log = directory / f"worker-{number}.log"
    environment = {
        **os.environ,
        "RETOMA_DATABASE": url,  # not an argument: the URL may hold a password
        "RETOMA_DEMO_TRACE": str(traces),
        "RETOMA_DEMO_CHUNK_SIZE": str(chunk_size),
    }
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "retoma", "worker", "--slots", "1", "--app", app],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            env=environment,
            start_new_session=True,
        )
    return Worker(process, log, traces)


def kill_mid_chunk(
    engine: Engine,
    run_id: int,
    victims: Sequence[Worker],
    rng: Random,
    pause: Callable[[float], object],
) -> bool:
    """Kill the workers at a random moment at which one of them has a chunk half done.

    They are frozen first. If none of them has seen an item of a chunk that is not committed (the
    chunk may have been committed in between), they go on and another moment is drawn. So a kill
    always costs work, which is what the demo is about. False: a hundred times no such moment came,
    as after the last chunk; none was killed.
    """
    for _ in range(_MOST_DRAWS):
        pause(rng.uniform(0.0, 0.05))
        for worker in victims:
            worker.signal(signal.SIGSTOP)
        pause(_SETTLE_SECONDS)  # a commit that was on its way arrives meanwhile
        items = [ident for worker in victims for ident in worker.last_items()]
        if chunks_with(items, chunk_ranges(engine, run_id, "RUNNING")):
            for worker in victims:
                worker.kill()
            return True
        for worker in victims:
            worker.signal(signal.SIGCONT)
    return False
