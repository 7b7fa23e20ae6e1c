"""The slots of a worker as its supervisor sees them: child processes, their claims and deadlines."""

from __future__ import annotations

import contextlib
import json
import os
import selectors
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from retoma.clock import Clock
from retoma.cluster.timing import Timing


@dataclass(slots=True)
class Child:
    """One slot process. ``token`` is the claim that it reported, since ``claimed_at``."""

    number: int
    process: subprocess.Popen[bytes]
    token: str | None = None
    chunk_id: int | None = None
    claimed_at: float = 0.0
    deadline: float = 0.0
    killed_for: str | None = None
    buffer: bytes = b""

    @property
    def pid(self) -> int:
        """The slot's process id."""
        return self.process.pid


@dataclass(frozen=True, slots=True)
class Death:
    """A slot that ended without having been told to."""

    number: int
    pid: int
    cause: str
    was_idle: bool
    """It held no claim that it had reported."""


@dataclass(slots=True)
class Children:
    """Spawns, hears and ends slots. All methods are called from the supervisor's main thread."""

    url: str
    apps: Sequence[str]
    run_id: int | None
    timing: Timing
    clock: Clock
    reports: list[Mapping[str, Any]] = field(default_factory=list)
    alive: dict[int, Child] = field(default_factory=dict)
    _selector: selectors.BaseSelector = field(default_factory=selectors.DefaultSelector)

    def spawn(self, number: int, node_id: int, believe: float) -> None:
        """Start a slot in a process group of its own, so that Ctrl-C reaches the supervisor alone."""
        process = subprocess.Popen(
            [sys.executable, "-m", "retoma.cluster.slot"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            process_group=0,
        )
        settings = {
            "url": self.url,
            "apps": list(self.apps),
            "run_id": self.run_id,
            "node_id": node_id,
            "slot": number,
            "believe": believe,
            "timing": asdict(self.timing),
            "supervisor": os.getpid(),
        }
        child = Child(number, process)
        self.alive[number] = child
        assert process.stdout is not None
        self._selector.register(process.stdout, selectors.EVENT_READ, child)
        self._tell(child, settings)

    def _tell(self, child: Child, order: Mapping[str, Any]) -> None:
        assert child.process.stdin is not None
        try:
            child.process.stdin.write(json.dumps(order).encode() + b"\n")
        except (BrokenPipeError, ValueError):
            return  # it is dead; ``reap`` will see it

    def tell_all(self, order: Mapping[str, Any]) -> None:
        """Send an order to every slot."""
        for child in list(self.alive.values()):
            self._tell(child, order)

    def hear(self, timeout: float) -> None:
        """Take in what the slots report, waiting at most ``timeout`` seconds for a first word."""
        for key, _ in self._selector.select(timeout):
            child: Child = key.data
            block = os.read(key.fd, 65_536)
            if not block:
                self._selector.unregister(key.fileobj)
                continue
            *lines, child.buffer = (child.buffer + block).split(b"\n")
            for line in lines:
                self._take(child, json.loads(line))

    def _take(self, child: Child, report: dict[str, Any]) -> None:
        if "claimed" in report:
            child.token, child.chunk_id = report["claimed"], report["chunk"]
            child.claimed_at, child.deadline = self.clock.monotonic(), report["deadline"]
        elif "ended" in report:
            child.token = child.chunk_id = None
        self.reports.append({"slot": child.number, **report})

    def kill_overdue(self) -> None:
        """End each slot whose attempt is past its deadline; SIGKILL also ends a frozen one."""
        now = self.clock.monotonic()
        for child in self.alive.values():
            if child.token is not None and now - child.claimed_at > child.deadline:
                child.killed_for = (
                    f"the attempt took longer than its deadline of {child.deadline:g} s"
                )
                child.process.kill()

    def reap(self) -> list[Death]:
        """The slots that have ended since the last call, with the cause in words."""
        deaths = []
        for number, child in list(self.alive.items()):
            code = child.process.poll()
            if code is None:
                continue
            self.hear(0.0)
            del self.alive[number]
            self._close(child)
            cause = child.killed_for or _cause(code)
            deaths.append(Death(number, child.pid, cause, was_idle=child.token is None))
        return deaths

    def _close(self, child: Child) -> None:
        for pipe in (child.process.stdin, child.process.stdout):
            if pipe is None:
                continue
            with contextlib.suppress(
                KeyError, ValueError
            ):  # it was not registered, or hear() has seen its end
                self._selector.unregister(pipe)
            pipe.close()

    def claims(self) -> dict[str, float]:
        """The reported claims and since when they are held, of slots within their deadline."""
        now = self.clock.monotonic()
        return {
            child.token: child.claimed_at
            for child in list(self.alive.values())
            if child.token is not None and now - child.claimed_at <= child.deadline
        }

    def kill_all(self) -> None:
        """End all slots at once."""
        for child in self.alive.values():
            child.process.kill()


def _cause(code: int) -> str:
    if code < 0:
        return f"the slot was ended by signal {signal.Signals(-code).name}"
    return f"the slot ended with exit code {code}"
