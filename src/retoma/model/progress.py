"""Rate and time left of a run, from what was counted when; pure."""

from __future__ import annotations

from dataclasses import dataclass, field

_WINDOW_SECONDS = 15.0


@dataclass(slots=True)
class Pace:
    """Remembers recent counts; ``now`` is any clock in seconds that does not go back."""

    _marks: list[tuple[float, int]] = field(default_factory=list)

    def rate(self, done: int, now: float) -> float:
        """Items a second over the last seconds; 0 until two looks have been taken."""
        self._marks.append((now, done))
        while len(self._marks) > 2 and now - self._marks[0][0] > _WINDOW_SECONDS:
            self._marks.pop(0)
        first_at, first = self._marks[0]
        return (done - first) / (now - first_at) if now > first_at else 0.0

    def line(self, done: int, total: int, now: float) -> str:
        """One plain line: done of total, per cent, rate, time left."""
        rate = self.rate(done, now)
        left = f", {(total - done) / rate:,.0f} s left" if rate > 0 and total > done else ""
        return (
            f"{done:,} of {total:,} items ({100 * done / total:.1f} %), {rate:,.0f} a second{left}"
        )
