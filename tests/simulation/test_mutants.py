"""The simulation finds what is left out of the protocol: each mutant from its recorded seed."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retoma.testing.simulation.campaign import shrink
from retoma.testing.simulation.hunt import hunt
from retoma.testing.simulation.mutants import MUTANTS
from retoma.testing.simulation.play import play
from retoma.testing.simulation.setting import draw
from retoma.testing.simulation.sqlite_stage import SqliteStage

TABLE = Path(__file__).parents[2] / "docs" / "reference" / "mutants.md"
ROW = re.compile(r"^\| `(\w+)` \| (.+?) \| (\w+) \| ([\d,]+) \|$", re.MULTILINE)


def recorded() -> dict[str, tuple[str, str, int]]:
    """Mutant → (words, invariant, seed), as the reference tells it."""
    rows = ROW.findall(TABLE.read_text("utf-8"))
    return {
        name: (words, invariant, int(seed.replace(",", "")))
        for name, words, invariant, seed in rows
    }


def on_sqlite(_url: str | None, prepare: Callable[[Any], None]) -> SqliteStage:
    return SqliteStage(prepare)


def test_the_reference_lists_every_mutant() -> None:
    assert {name: row[0] for name, row in recorded().items()} == {
        name: mutant.words for name, mutant in MUTANTS.items()
    }


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found_and_ends_a_calm_night_well(name: str) -> None:
    _, invariant, seed = recorded()[name]
    caught = hunt(MUTANTS[name], [seed], on_sqlite)
    assert (caught.invariant, caught.seed) == (invariant, seed)
    assert caught.is_calm


@pytest.mark.parametrize("name", MUTANTS)
def test_without_the_mutation_its_seed_holds(name: str) -> None:
    with SqliteStage() as stage:
        assert play(stage, draw(recorded()[name][2])).violation is None


def test_a_failing_world_shrinks_to_one_that_fails_alike() -> None:
    mutant = MUTANTS["swallowed_error"]
    seed = recorded()[mutant.name][2]
    with mutant(), SqliteStage(mutant.prepare) as stage:
        played = play(stage, draw(seed))
        smallest = shrink(stage, draw(seed), played)
        again = play(stage, smallest)
        script = smallest.script or ()
        without = [
            play(stage, replace(smallest, script=tuple(one for one in script if one != fault)))
            for fault in script
        ]
    assert again.violation == played.violation == "nothing_lost"
    assert "hiccup" in [kind for _, kind, _ in script]
    assert len(script) < len(played.fired)
    assert played.violation not in [one.violation for one in without], "a fault was not needed"
