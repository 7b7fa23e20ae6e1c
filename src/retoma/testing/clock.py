"""A clock that is wound by hand."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from retoma.clock import SYSTEM_CLOCK

_START = datetime(2026, 1, 1, tzinfo=UTC)


class FakeClock:
    """A ``retoma.clock.Clock`` that moves only when it is told to: by ``advance`` or by ``sleep``.

    A store on SQLite takes its time from it; a server keeps its own. ``start`` is the first UTC
    instant. ``longest_wait`` is how many seconds a ``sleep`` waits in truth at most (0: not at all):
    what happens on a server, such as the end of a session, needs some. ``pauses`` tells how long
    each sleep was meant to be.
    """

    def __init__(self, start: datetime = _START, *, longest_wait: float = 0.0) -> None:
        self.pauses: list[float] = []
        self._start = start
        self._longest_wait = longest_wait
        self._awake = 0.0
        self._suspended = 0.0

    def monotonic(self) -> float:
        return self._awake

    def boottime(self) -> float:
        return self._awake + self._suspended

    def utc(self) -> datetime:
        return self._start + timedelta(seconds=self.boottime())

    def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)
        self.advance(seconds)
        if self._longest_wait:
            SYSTEM_CLOCK.sleep(min(seconds, self._longest_wait))

    def advance(self, seconds: float) -> None:
        """Let time pass; raises ``ValueError`` if it would go back."""
        self._awake += _forward(seconds)

    def suspend(self, seconds: float) -> None:
        """Let time pass while the machine sleeps: ``monotonic`` stands still; raises ``ValueError``."""
        self._suspended += _forward(seconds)


def _forward(seconds: float) -> float:
    if seconds < 0:
        raise ValueError(f"this clock does not go back (asked for {seconds} s)")
    return seconds
