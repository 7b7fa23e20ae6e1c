"""The clock and the machine that a simulated process sees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

from retoma.testing.simulation.world import Process, World

EPOCH = datetime(2026, 11, 30, 22, 0, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class VirtualClock:
    """The clocks of a process in the world; ``utc`` is the database's, and may jump.

    A process's own ``utc`` is wrong by ``error`` seconds besides: nothing may depend on it.
    """

    world: World
    error: float = 0.0

    def monotonic(self) -> float:
        return self.world.now

    def boottime(self) -> float:
        return self.world.now

    def utc(self) -> datetime:
        return EPOCH + timedelta(seconds=self.world.now + self.world.clock_offset + self.error)

    def sleep(self, seconds: float) -> None:
        self.world.wait(seconds)


@dataclass(frozen=True, slots=True)
class VirtualHost:
    """What a process sees of the other processes of its machine."""

    world: World
    process: Process
    writer: Callable[[], Process | None]

    def name(self) -> str:
        return self.process.host

    def boot_id(self) -> str:
        return f"boot of {self.process.host}"

    def pid_namespace(self) -> str:
        return self.process.host

    def pid(self) -> int:
        return self.process.pid

    def started(self, pid: int) -> str:
        found = self._find(pid)
        return f"{found.pid}" if found is not None and found.is_alive else ""

    def is_stopped(self, pid: int) -> bool:
        found = self._find(pid)
        return found is not None and found.is_alive and found.is_frozen

    def kill(self, pid: int) -> None:
        found = self.world.processes.get(pid)
        if found is None or not found.is_alive:
            raise ProcessLookupError
        if found.host != self.process.host:
            raise PermissionError
        self.world.count("zombie.ended")
        self.world.kill(found)

    def lock_holder(self, file: Path, byte: int) -> int | None:
        holder = self.writer()
        return holder.pid if holder is not None else None

    def _find(self, pid: int) -> Process | None:
        found = self.world.processes.get(pid)
        return found if found is not None and found.host == self.process.host else None
