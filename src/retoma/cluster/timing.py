"""How long things may take between processes, in seconds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Timing:
    """The three deadlines are never mixed: this one is the lease and what follows from it.

    ``margin`` is by how much a slot's belief ends before the lease does. ``unchanged`` is how long a
    taker must have seen the same fence and lease on its own clock, beside the database's verdict.
    ``poll`` is the longest pause of an idle slot.
    """

    lease: float = 20.0
    margin: float = 3.0
    renew: float = 5.0
    beat: float = 3.0
    sweep: float = 2.0
    unchanged: float = 6.0
    unreachable: float = 10.0
    removed: float = 30.0
    coordinate: float = 0.25
    poll: float = 0.5

    def scaled(self, factor: float) -> Timing:
        """The same proportions on another scale, for tests."""
        return Timing(*(getattr(self, name) * factor for name in self.__slots__))


DEFAULT_TIMING = Timing()


def timing_from(environment: Mapping[str, str]) -> Timing:
    """The default times; a test that allows faults may scale them all (``RETOMA_TIME_SCALE``)."""
    if environment.get("RETOMA_ALLOW_FAULTS") != "1":
        return DEFAULT_TIMING
    return DEFAULT_TIMING.scaled(float(environment.get("RETOMA_TIME_SCALE", "1")))
