"""An identity runs once: a completed one answers, a live one is refused, a crowd has one winner."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import MetaData, select

from tests.cluster.backends import quick_on
from tests.cluster.programs import until
from tests.cluster.proof import prove
from tests.cluster.scene import Scene


def dump(scene: Scene) -> dict[str, list[Any]]:
    """Every row of every table."""
    metadata = MetaData()
    metadata.reflect(scene.store.engine)
    with scene.store.engine.connect() as connection:
        return {
            name: sorted(map(repr, connection.execute(select(table)).all()))
            for name, table in metadata.tables.items()
        }


def test_a_completed_identity_answers_and_changes_nothing(scene: Scene) -> None:
    assert scene.run().code() == 5
    prove(scene)
    before = dump(scene)
    assert len(before) > 10
    again = scene.run()
    assert again.code() == 5
    assert "already complete" in again.said()
    assert dump(scene) == before


def test_the_same_identity_at_once_is_refused(scene: Scene) -> None:
    gate = scene.close_gate()
    first = scene.run(**gate)
    scene.held_by(first)
    nodes = scene.one("SELECT count(*) FROM batch_node")
    second = scene.run(**gate)
    assert second.code() == 6, second.said()
    assert first.is_alive
    assert scene.one("SELECT count(*) FROM batch_node") == nodes  # who is refused was no node
    scene.open_gate()
    assert first.code() == 5, first.said()
    assert not scene.repeated()
    prove(scene)


@pytest.mark.slow
@quick_on("sqlite")
def test_of_eight_that_start_at_once_one_runs(scene: Scene) -> None:
    gate = scene.close_gate()
    crowd = [scene.run(**gate) for _ in range(8)]
    refused = until(
        "seven of them end",
        lambda: len(ended := [p for p in crowd if not p.is_alive]) == 7 and ended,
        90.0,
    )
    assert [program.code() for program in refused] == [6] * 7, refused[0].said()
    scene.open_gate()
    (winner,) = (program for program in crowd if program not in refused)
    assert winner.code() == 5, winner.said()
    until("none of them is left", lambda: not any(list(p.family()) for p in crowd))
    assert not scene.repeated()
    prove(scene)
    assert scene.one("SELECT count(*) FROM batch_instance") == 1
