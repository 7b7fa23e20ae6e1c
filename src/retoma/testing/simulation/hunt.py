"""Looks for the first seed that finds a mutant, and makes sure that the mutant is a subtle one."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, replace
from typing import Any

from retoma.testing.simulation.mutants.mutant import Mutant
from retoma.testing.simulation.play import play
from retoma.testing.simulation.setting import calm, draw
from retoma.testing.simulation.stage import Stage

_SHORT_SECONDS = 0.02


@dataclass(frozen=True, slots=True)
class Caught:
    """A mutant and how it was found; ``seed`` None: it was not."""

    name: str
    words: str
    database: str
    invariant: str | None
    seed: int | None
    played: int
    is_calm: bool
    """A night without faults ends with the right effects all the same."""

    def row(self) -> str:
        """A row of the table of mutants."""
        where = "not found" if self.seed is None else f"{self.seed:,}"
        place = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}[self.database]
        return f"| `{self.name}` | {self.words} | {self.invariant or 'none'} | {place} | {where} |"

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def hunt(mutant: Mutant, seeds: Iterable[int], make: Callable[..., Stage]) -> Caught:
    """Play seeds on a mutated protocol until an invariant fails; ``make`` builds its database."""
    with mutant(), make(prepare=mutant.prepare) as stage:
        try:
            return _hunt(mutant, seeds, stage)
        finally:
            mutant.undo(stage.engine)


def _hunt(mutant: Mutant, seeds: Iterable[int], stage: Stage) -> Caught:
    caught = Caught(mutant.name, mutant.words, mutant.database, None, None, 0, ends_well(stage))
    for played, seed in enumerate(seeds, start=1):
        found = play(stage, draw(seed))
        caught = replace(caught, played=played)
        if found.violation is not None:
            return replace(caught, invariant=found.violation, seed=seed)
    return caught


def ends_well(stage: Stage) -> bool:
    """Whether nights without faults end with the effects that they should."""
    alone = [
        replace(calm(draw(seed)), workers=1, slots=1, latency=_SHORT_SECONDS) for seed in range(3)
    ]
    results = [play(stage, setting, is_watched=False) for setting in alone]
    return all(found.violation is None for found in results)
