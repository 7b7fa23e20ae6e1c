"""The clocks of one process. Time that is stored or compared across processes is the database's.

A process needs a clock of its own for two things only: to measure how long it has watched something
(``monotonic``), and to know until when it may believe in its lease (``boottime``, which runs on
while the machine is suspended, so that a laptop that slept for an hour does not wake up believing).
"""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Protocol


class Clock(Protocol):
    """What the code may ask about time; a test winds it by hand."""

    def monotonic(self) -> float:
        """Seconds that never go back; stands still while the machine is suspended."""

    def boottime(self) -> float:
        """Seconds that never go back and run through suspend."""

    def utc(self) -> datetime:
        """The host's UTC time: SQLite's clock, and for display. Never compared across hosts."""

    def sleep(self, seconds: float) -> None:
        """Wait; only a loop between two ticks, or a retry between two transactions, may."""


class SystemClock:
    """The clock of the machine."""

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        if hasattr(time, "CLOCK_BOOTTIME"):
            return time.clock_gettime(time.CLOCK_BOOTTIME)
        return time.monotonic()

    def utc(self) -> datetime:
        return datetime.fromtimestamp(time.time(), UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM_CLOCK = SystemClock()
