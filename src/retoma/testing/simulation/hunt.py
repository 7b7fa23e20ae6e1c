"""Looks for the first seed that finds a mutant, and makes sure that the mutant is a subtle one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from retoma.testing.simulation.mutants import Mutant
from retoma.testing.simulation.play import play
from retoma.testing.simulation.setting import calm, draw
from retoma.testing.simulation.stage import Stage

_SHORT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Caught:
    """A mutant and how it was found; ``seed`` None: it was not."""

    name: str
    words: str
    invariant: str | None
    seed: int | None
    played: int
    is_calm: bool
    """A night without faults ends with the right effects all the same."""

    def row(self) -> str:
        """A row of the table of mutants."""
        where = "not found" if self.seed is None else f"{self.seed:,}"
        return f"| `{self.name}` | {self.words} | {self.invariant or 'none'} | {where} |"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def hunt(mutant: Mutant, seeds: Iterable[int], make: Callable[..., Stage]) -> Caught:
    """Play seeds on a mutated protocol until an invariant fails."""
    played = 0
    with mutant(), make(None, prepare=mutant.prepare) as stage:
        is_calm = ends_well(stage)
        for seed in seeds:
            played += 1
            found = play(stage, draw(seed))
            if found.violation is not None:
                return Caught(mutant.name, mutant.words, found.violation, seed, played, is_calm)
    return Caught(mutant.name, mutant.words, None, None, played, is_calm)


def ends_well(stage: Stage) -> bool:
    """Whether nights without faults end with the effects that they should."""
    alone = [
        replace(calm(draw(seed)), workers=1, slots=1, latency=_SHORT_SECONDS) for seed in range(3)
    ]
    results = [play(stage, setting, is_watched=False) for setting in alone]
    return all(found.violation is None for found in results)
