"""Seeds through the real code: in each of them every invariant holds."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from sqlalchemy import select

from retoma.errors import NotPermitted
from retoma.store import migrate, tables
from retoma.store.store import Store
from retoma.testing.simulation.campaign import campaign
from retoma.testing.simulation.play import play
from retoma.testing.simulation.server_stage import ServerStage
from retoma.testing.simulation.setting import FAULTS, draw
from retoma.testing.simulation.sqlite_stage import SqliteStage

OpenStage = Callable[[], ServerStage]
SEEDS = 1_000
SCHEDULES = 50


@pytest.mark.parametrize("first", range(0, 8 * SEEDS, SEEDS))
def test_every_invariant_holds_on_sqlite(first: int) -> None:
    with SqliteStage() as stage:
        report = campaign(stage, range(first, first + SEEDS))
    assert [(one.seed, one.text) for one in report.failed] == []
    assert report.played == SEEDS
    assert {f"fault.{kind}" for kind in FAULTS} - set(report.reached) == set()


@pytest.mark.parametrize("first", range(0, 4 * SCHEDULES, SCHEDULES))
def test_every_invariant_holds_on_a_server_stepped_in_one_thread(
    open_stage: OpenStage, first: int
) -> None:
    with open_stage() as stage:
        report = campaign(stage, range(first, first + SCHEDULES))
    assert [(one.seed, one.text) for one in report.failed] == []
    assert report.played == SCHEDULES


def test_a_database_that_is_not_empty_is_refused_and_left_alone(
    open_stage: OpenStage, server_url: str
) -> None:
    store = Store(server_url)
    migrate.ensure(store)
    with pytest.raises(NotPermitted, match="not empty"):
        open_stage()
    with store.engine.connect() as connection:
        assert connection.execute(select(tables.store_identity.c.id)).scalar() == 1
    store.dispose()


def test_the_database_of_an_earlier_simulation_serves_again(open_stage: OpenStage) -> None:
    for first in (0, 1):
        with open_stage() as stage:
            assert campaign(stage, [first]).failed == []


def traced(stage: SqliteStage, seed: int) -> list[tuple[float, str, str]]:
    lines: list[tuple[float, str, str]] = []

    def note(at: float, who: str, text: str) -> None:
        lines.append((at, who, text))

    play(stage, draw(seed), note)
    return lines


def test_a_seed_is_the_same_world_again() -> None:
    with SqliteStage() as stage:
        for seed in range(20):
            assert traced(stage, seed) == traced(stage, seed)


def test_no_two_of_many_seeds_are_the_same_world() -> None:
    with SqliteStage() as stage:
        worlds = {tuple(traced(stage, seed)) for seed in range(50)}
    assert len(worlds) == 50
