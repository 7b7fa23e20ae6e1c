"""Killed at each point that a statement passes, a run ends like one that nobody disturbed."""

from __future__ import annotations

import pytest

from tests.cluster.backends import only_on
from tests.cluster.proof import prove
from tests.cluster.scene import Scene

INSERT = {"postgresql": "insert.copy", "sqlite": "insert.rows", "mariadb": "insert.rows"}
POINTS = (
    "chunk.claim",
    "chunk.claim.after",
    "chunk.cut",
    "chunk.cut.after",
    "chunk.renew",
    "chunk.renew.after",
    "reader.read",
    "reader.read.after",
    "chunk.processed",
    "work.begin",
    "work.enter",
    "work.enter.after",
    "chunk.witness",
    "chunk.witness.after",
    "insert",
    "chunk.finish",
    "chunk.finish.after",
    "work.commit",
    "work.commit.after",
    "chunk.release",
    "chunk.release.after",
    "step.plan",
    "step.plan.after",
    "step.close",
    "step.close.after",
    "run.coordinate",
    "run.coordinate.after",
    "node.beat",
    "node.beat.after",
)
# A claim of a waiting chunk, and the release of a held one, need a slot that died before.
AFTER_A_DEATH = ("chunk.claim", "chunk.claim.after", "chunk.release", "chunk.release.after")
# A renewal needs a chunk that takes longer than the time between two of them.
SLOW = {"RETOMA_TEST_ITEM_SECONDS": "0.05", "RETOMA_TEST_CHUNK": "30"}
ONLY_ON_SERVERS = ("work.enter", "work.enter.after")


def kill_at(scene: Scene, point: str) -> None:
    fault, marker = scene.fault(point, "kill")
    if point in AFTER_A_DEATH:
        fault = f"{scene.fault('chunk.processed', 'kill')[0]},{fault}"
    if point.startswith("chunk.renew"):
        scene.settings |= SLOW
    for _ in range(3):  # killed as a whole it is started again; its slots alone are replaced
        code = scene.run(faults=fault).code()
        if code >= 0:
            break
    assert marker.exists(), f"nobody passed {point}"
    assert code == 5, scene.programs[-1].said()
    deaths = 2 if point in AFTER_A_DEATH else 1
    assert sum(scene.repeated().values()) <= deaths
    prove(scene)


@only_on("sqlite")
@pytest.mark.parametrize("point", [p for p in POINTS if p not in ONLY_ON_SERVERS])
def test_on_sqlite_a_run_ends_as_if_nobody_had_been_killed_at(scene: Scene, point: str) -> None:
    kill_at(scene, INSERT[scene.backend] if point == "insert" else point)


@pytest.mark.campaign
@only_on("postgres", "mariadb")
@pytest.mark.parametrize("point", POINTS)
def test_on_a_server_a_run_ends_as_if_nobody_had_been_killed_at(scene: Scene, point: str) -> None:
    kill_at(scene, INSERT[scene.backend] if point == "insert" else point)
