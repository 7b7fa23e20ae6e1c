"""When a lease counts as expired: nobody is judged by one reading of a clock.

A taker needs both: the database's clock says so, and the same fence and lease were seen unchanged
for some seconds on the taker's own monotonic clock. So a jump of the database's clock, or an outage,
takes nothing from the healthy.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field


@dataclass(slots=True)
class Suspicion:
    """Remembers since when each expired lease has been seen unchanged; pure but for its memory."""

    unchanged_seconds: float
    _seen: dict[Hashable, tuple[Hashable, float]] = field(default_factory=dict)

    def observe(self, expired: Iterable[tuple[Hashable, Hashable]], now: float) -> set[Hashable]:
        """Which of the (thing, mark) that the database calls expired may be taken now."""
        before, self._seen = self._seen, {}
        ripe: set[Hashable] = set()
        for thing, mark in expired:
            old = before.get(thing)
            since = old[1] if old is not None and old[0] == mark else now
            self._seen[thing] = (mark, since)
            if now - since >= self.unchanged_seconds:
                ripe.add(thing)
        return ripe

    def forget(self) -> None:
        """A sweep failed: all waiting starts anew."""
        self._seen.clear()
