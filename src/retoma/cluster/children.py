"""The slots of a worker as its supervisor sees them: their claims, deadlines and deaths."""

from __future__ import annotations

import signal
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from retoma.clock import Clock


class SlotProcess(Protocol):
    """What is asked of a slot's process."""

    @property
    def pid(self) -> int:
        """Its process id."""

    def poll(self) -> int | None:
        """Its exit code; None while it lives."""

    def kill(self) -> None:
        """SIGKILL, which also ends a frozen one."""

    def wait(self) -> int:
        """Its exit code, once it has ended."""


@dataclass(slots=True)
class Child:
    """One slot. ``token`` is the claim that it reported, since ``claimed_at``."""

    number: int
    process: SlotProcess
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
class Children(ABC):
    """Spawns, hears and ends slots. All methods are called from the supervisor's main thread."""

    clock: Clock
    reports: list[Mapping[str, Any]] = field(default_factory=list)
    alive: dict[int, Child] = field(default_factory=dict)

    @abstractmethod
    def spawn(self, number: int, node_id: int, believe: float) -> None:
        """Start a slot."""

    @abstractmethod
    def hear(self, timeout: float) -> None:
        """Take in what the slots report, waiting at most ``timeout`` seconds for a first word."""

    @abstractmethod
    def tell(self, child: Child, order: Mapping[str, Any]) -> None:
        """Send an order to one slot; a dead one does not mind."""

    @abstractmethod
    def forget(self, child: Child) -> None:
        """Let go of what belongs to a slot that has ended."""

    def tell_all(self, order: Mapping[str, Any]) -> None:
        """Send an order to every slot."""
        for child in list(self.alive.values()):
            self.tell(child, order)

    def take(self, child: Child, report: Mapping[str, Any]) -> None:
        """Take in one report of a slot."""
        if "claimed" in report:
            child.token, child.chunk_id = report["claimed"], report["chunk"]
            child.claimed_at, child.deadline = self.clock.monotonic(), report["deadline"]
        elif "ended" in report:
            child.token = child.chunk_id = None
        self.reports.append({"slot": child.number, **report})

    def kill_overdue(self) -> None:
        """End each slot whose attempt is past its deadline."""
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
            self.forget(child)
            cause = child.killed_for or _cause(code)
            deaths.append(Death(number, child.pid, cause, was_idle=child.token is None))
        return deaths

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
