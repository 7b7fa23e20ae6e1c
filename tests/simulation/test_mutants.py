"""The simulation finds what is left out of the protocol: each mutant from its recorded seed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from retoma.testing.simulation.campaign import shrink
from retoma.testing.simulation.hunt import hunt
from retoma.testing.simulation.mutants import MUTANTS
from retoma.testing.simulation.play import play
from retoma.testing.simulation.postgres_stage import PostgresStage
from retoma.testing.simulation.setting import draw
from retoma.testing.simulation.sqlite_stage import SqliteStage
from tests.databases import Servers
from tests.simulation.table import recorded

TIMES = {"sqlite": 1, "postgresql": 5}
"""How often a seed is played at most: what waits for a lock there is not the same each time."""


@contextmanager
def maker(database: str, servers: Servers, folder: Path) -> Iterator[Any]:
    """Builds the stage of a database, if there is such a server here."""
    if database == "sqlite":
        yield SqliteStage
        return
    with servers.database("postgres", folder) as url:
        yield lambda **options: PostgresStage(url, **options)


def seed_of(name: str) -> int:
    """The seed that finds a mutant."""
    seed = recorded()[name].seed
    assert seed is not None
    return seed


def test_the_reference_lists_every_mutant() -> None:
    assert {name: (row.words, row.database) for name, row in recorded().items()} == {
        name: (mutant.words, mutant.database) for name, mutant in MUTANTS.items()
    }


def test_the_reference_leaves_nothing_open() -> None:
    assert [str(row) for row in recorded().values() if "?" in str(row)] == []


@pytest.mark.parametrize("name", MUTANTS)
def test_a_mutant_is_found_and_ends_a_calm_night_well(
    name: str, servers: Servers, tmp_path: Path
) -> None:
    row = recorded()[name]
    seed = seed_of(name)
    with maker(row.database, servers, tmp_path) as make:
        caught = hunt(MUTANTS[name], [seed] * TIMES[row.database], make)
    assert (caught.invariant, caught.seed) == (row.invariant, seed)
    assert caught.is_calm


@pytest.mark.parametrize("name", MUTANTS)
def test_without_the_mutation_its_seed_holds(name: str, servers: Servers, tmp_path: Path) -> None:
    row = recorded()[name]
    with maker(row.database, servers, tmp_path) as make, make() as stage:
        assert play(stage, draw(seed_of(name))).violation is None


def test_a_failing_world_shrinks_to_one_that_fails_alike() -> None:
    mutant = MUTANTS["swallowed_error"]
    seed = seed_of(mutant.name)
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
