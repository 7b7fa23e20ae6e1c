"""What one seed draws: the size of its world, and which faults it meets how often."""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from retoma.cluster.timing import Timing

Rates = tuple[tuple[str, float], ...]
Script = tuple[tuple[int, str, float], ...]

TIMING = Timing(
    lease=10.0, margin=1.5, renew=2.5, beat=5.0, sweep=4.0, unchanged=3.5, unreachable=11.0,
    removed=22.0, coordinate=4.0, poll=7.0,
)  # fmt: skip
_AT_STATEMENTS = (
    "kill.slot",
    "kill.supervisor",
    "freeze.slot",
    "freeze.supervisor",
    "freeze.worker",
)
_IN_WORK = ("freeze.worker", "freeze.slot", "kill.slot", "kill.supervisor")
_IN_COORDINATION = ("freeze.worker", "freeze.supervisor")
_AT_COMMITS = ("lost.committed", "lost.rolled_back")
_OF_CODE = ("slow", "raises", "crashes", "swallows", "hiccup")
_EVENTS = ("clock.forward", "clock.back", "stop", "restart", "late")

FAULTS = frozenset(
    (*_AT_STATEMENTS, *_IN_WORK, *_IN_COORDINATION, *_AT_COMMITS, *_OF_CODE, *_EVENTS)
)
"""All that fate may do."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One world. Times in seconds; rates are chances at each opportunity."""

    seed: int
    workers: int
    slots: int
    items: int
    chunk_size: int
    partitions: int
    is_one_host: bool
    """Processes see and can end each other; otherwise the fence alone protects."""

    is_strict: bool
    has_key: bool
    two_steps: bool
    latency: float
    slow_share: float
    slow_seconds: float
    freeze_seconds: float
    storm_seconds: float
    deadline_seconds: float
    rates_at_statements: Rates
    rates_in_work: Rates
    """The same where it hurts most: from before the work transaction to its commit."""

    rates_at_commits: Rates
    rates_of_code: Rates
    events: Rates
    rates_in_coordination: Rates
    """The same while a coordinator decides: what it does late, another has done."""

    launchers: int
    """Schedulers that ask for the job at the same time."""

    script: Script | None = None
    """Exactly these faults and no others: (number of the decision, kind, size)."""

    @property
    def late_item(self) -> int:
        """The item that is not there when the night begins, between two that are; 0: none."""
        if self.items < 3 or all(kind != "late" for kind, _ in self.events):
            return 0
        return 2 + self.seed % (self.items - 2)


def _some(source: random.Random, kinds: tuple[str, ...], rates: tuple[float, ...]) -> Rates:
    """Swarm: each kind is on or off for a whole seed; "a bit of everything" misses faults."""
    return tuple((kind, source.choice(rates)) for kind in kinds if source.random() < 0.4)


def draw(seed: int) -> Setting:
    """The setting of a seed."""
    source = random.Random(f"setting {seed}")
    items = source.choice((2, 3, 4, 6, 9))
    return Setting(
        seed=seed,
        workers=source.choice((1, 1, 2, 2, 3)),
        slots=source.choice((1, 1, 1, 2)),
        items=items,
        chunk_size=source.choice((1, 2, 3, 4)) if items < 6 else source.choice((2, 3, 4)),
        partitions=source.choice((1, 2, 3)),
        is_one_host=source.random() < 0.5,
        is_strict=source.random() < 0.25,
        has_key=source.random() < 0.4,
        two_steps=source.random() < 0.2,
        latency=source.choice((0.02, 0.1, 0.3)),
        slow_share=source.choice((0.0, 0.0, 0.02)),
        slow_seconds=source.choice((3.0, 15.0)),
        freeze_seconds=source.choice((4.0, 20.0, 30.0)),
        storm_seconds=source.choice((3.0, 8.0, 20.0)),
        deadline_seconds=source.choice((8.0, 30.0)),
        rates_at_statements=_some(source, _AT_STATEMENTS, (0.002, 0.006, 0.015)),
        rates_in_work=_some(source, _IN_WORK, (0.01, 0.04, 0.15)),
        rates_at_commits=_some(source, _AT_COMMITS, (0.01, 0.05, 0.15)),
        rates_of_code=_some(source, _OF_CODE, (0.02, 0.1, 0.2)),
        events=_some(source, _EVENTS, (0.3, 1.0)),
        rates_in_coordination=_some(source, _IN_COORDINATION, (0.01, 0.04, 0.1)),
        launchers=source.choice((1, 1, 2)),
    )


def calm(setting: Setting) -> Setting:
    """The same world without any fault."""
    return replace(
        setting,
        rates_at_statements=(),
        rates_in_work=(),
        rates_in_coordination=(),
        rates_at_commits=(),
        rates_of_code=(),
        events=(),
        slow_share=0.0,
    )
