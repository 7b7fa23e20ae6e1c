"""An identity runs once: a completed one answers, a live one is refused, a crowd has one winner."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, Table, select

from tests.cluster.programs import Program, until
from tests.cluster.proof import prove
from tests.cluster.scene import Scene


def dump(scene: Scene) -> dict[str, list[Any]]:
    """Every row of every table."""
    metadata = MetaData()
    metadata.reflect(scene.store.engine)
    found = {}
    with scene.store.engine.connect() as connection:
        for name, table in metadata.tables.items():
            assert isinstance(table, Table)
            found[name] = sorted(map(repr, connection.execute(select(table)).all()))
    return found


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
    scene.settings |= {"RETOMA_TEST_ITEM_SECONDS": "0.04"}
    first = scene.run()
    scene.wait_for_items(5)
    nodes = scene.one("SELECT count(*) FROM batch_node")
    second = scene.run()
    assert second.code() == 6, second.said()
    assert first.is_alive
    assert scene.one("SELECT count(*) FROM batch_node") == nodes  # who is refused was no node
    assert first.code() == 5, first.said()
    assert not scene.repeated()
    prove(scene)


def test_of_eight_that_start_at_once_one_runs(scene: Scene) -> None:
    scene.settings |= {"RETOMA_TEST_ITEM_SECONDS": "0.06"}
    crowd: list[Program] = []
    for _ in range(8):
        crowd.append(scene.run())
        os.kill(crowd[-1].pid, signal.SIGSTOP)
    for program in crowd:
        os.kill(program.pid, signal.SIGCONT)
    codes = sorted(program.code(60) for program in crowd)
    assert codes == [5, 6, 6, 6, 6, 6, 6, 6], "\n".join(p.said() for p in crowd)
    until("none of them is left", lambda: not any(list(p.family()) for p in crowd))
    assert not scene.repeated()
    prove(scene)
    assert scene.one("SELECT count(*) FROM batch_instance") == 1
    assert Path(crowd[0].log).exists()
