"""Many seeds, what they reached, and the smallest world in which a failing one still fails."""

from __future__ import annotations

import hashlib
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

from retoma.testing.simulation.play import Played, play
from retoma.testing.simulation.setting import Setting, draw
from retoma.testing.simulation.stage import Stage

RARE = (
    "chunk.taken_over",
    "commit.refused",
    "doubt.ok",
    "doubt.fail",
    "zombie.ended",
    "chunk.zombie",
    "chunk.given_back",
    "chunk.split",
    "strict.taken_over",
    "run.taken_over",
    "lock.waited",
    "late.withdrawn",
)
"""Branches of the protocol that a campaign must have reached."""

_PROTOCOL = ("cluster", "engine", "model", "resilience", "store")
_SHRINKING_ROUNDS = 4


@dataclass(slots=True)
class Report:
    """What a campaign found."""

    played: int = 0
    statements: int = 0
    seconds: float = 0.0
    virtual_seconds: float = 0.0
    failed: list[Played] = field(default_factory=list)
    reached: Counter[str] = field(default_factory=Counter)

    @property
    def an_hour(self) -> int:
        """Seeds an hour, at the speed of this campaign."""
        return int(self.played / self.seconds * 3600) if self.seconds else 0

    @property
    def unreached(self) -> list[str]:
        """Rare branches that no seed came to."""
        return [name for name in RARE if not self.reached[name]]


def campaign(
    stage: Stage,
    seeds: Iterable[int],
    told: Callable[[Played], None] = lambda _played: None,
    is_stopped: Callable[[], bool] = lambda: False,
) -> Report:
    """Play the seeds one after the other; ``told`` hears of each one that fails."""
    report = Report()
    began = time.perf_counter()
    for seed in seeds:
        if is_stopped():
            break
        played = play(stage, draw(seed))
        report.played += 1
        report.statements += played.statements
        report.virtual_seconds += played.seconds
        report.reached.update(played.counters)
        if played.violation is not None:
            report.failed.append(played)
            told(played)
    report.seconds = time.perf_counter() - began
    return report


def shrink(stage: Stage, setting: Setting, played: Played) -> Setting:
    """The smallest setting found in which the same invariant fails; the setting itself at worst."""
    smallest = replace(setting, script=played.fired)

    def fails(candidate: Setting) -> bool:
        return play(stage, candidate).violation == played.violation

    if not fails(smallest):
        return setting
    for _ in range(_SHRINKING_ROUNDS):
        before = smallest
        for fault in smallest.script or ():
            fewer = tuple(one for one in smallest.script or () if one != fault)
            if fails(replace(smallest, script=fewer)):
                smallest = replace(smallest, script=fewer)
        for candidate in _smaller(smallest):
            if fails(candidate):
                smallest = candidate
        if smallest == before:
            break
    return smallest


def _smaller(setting: Setting) -> list[Setting]:
    found = []
    if setting.workers > 1:
        found.append(replace(setting, workers=setting.workers - 1))
    if setting.slots > 1:
        found.append(replace(setting, slots=setting.slots - 1))
    if setting.items > 1:
        found.append(replace(setting, items=setting.items - 1))
    if setting.partitions > 1:
        found.append(replace(setting, partitions=1))
    if setting.two_steps:
        found.append(replace(setting, two_steps=False))
    return found


def protocol_digest() -> str:
    """Names the code that the seeds went through: it changes with each change of the protocol."""
    root = Path(__file__).parents[2]
    digest = hashlib.sha256()
    for package in _PROTOCOL:
        for path in sorted((root / package).rglob("*.py")):
            digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def proof_line(report: Report, backend: str, first: int) -> str:
    """One row of the table of proofs."""
    day = time.strftime("%Y-%m-%d")
    return (
        f"| {day} | {protocol_digest()} | {backend} | {first:,} … {first + report.played - 1:,} |"
        f" {report.played:,} | {report.an_hour:,} | {report.virtual_seconds / 3600:,.0f} h |"
        f" {len(report.failed)} |"
    )
