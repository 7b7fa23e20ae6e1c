"""The database dies in the middle and comes back: nobody healthy is judged, no chunk pays."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cluster.programs import until
from tests.cluster.proof import prove
from tests.cluster.scene import Scene
from tests.cluster.servers import MortalServer, mortal_server

# Short: within a lease. Long: past the lease, and past the silence after which a node is removed.
SHORT, LONG = 1.5, 16.0
# Slower than other scenes: a disk that stalls for two seconds must not look like silence.
SCALE = 0.4


@pytest.fixture(
    params=[
        ("postgres", SHORT),
        ("mariadb", SHORT),
        pytest.param(("postgres", LONG), marks=pytest.mark.campaign),
        pytest.param(("mariadb", LONG), marks=pytest.mark.campaign),
    ],
    ids=lambda param: f"{param[0]}-{param[1]}",
)
def server(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[MortalServer]:
    backend, outage = request.param
    with mortal_server(backend, tmp_path, outage, monkeypatch) as found:
        yield found


def test_a_database_that_dies_and_comes_back_costs_no_chunk_a_try(
    server: MortalServer, tmp_path: Path
) -> None:
    scene = Scene(server.url, tmp_path, scale=SCALE)
    try:
        scene.submit()
        gate = scene.close_gate()
        workers = [scene.worker(slots=2, **gate), scene.worker(slots=1, **gate)]
        for worker, count in zip(workers, (2, 1), strict=True):
            scene.held_by(worker, count)
        slots = {pid for worker in workers for pid in worker.slots()}
        scene.store.dispose()
        server.kill()
        scene.open_gate()
        killed_at = time.monotonic()
        until("it is back", lambda: _answers(scene), 40.0)
        outage = time.monotonic() - killed_at
        scene.wait_for_end()
        assert time.monotonic() - killed_at < outage + scene.takeover_seconds
        prove(scene)
        assert scene.one("SELECT COALESCE(SUM(tries), 0) FROM batch_chunk") == 0
        outcomes = {row[0] for row in scene.rows("SELECT DISTINCT outcome FROM batch_attempt")}
        assert outcomes <= {"COMPLETED", "GIVEN_BACK"}, "somebody healthy was judged dead"
        states = scene.rows("SELECT state FROM batch_node")
        assert states == [("ACTIVE",), ("ACTIVE",)]
        events = scene.rows("SELECT after_state FROM batch_event WHERE noun = 'node'")
        assert {row[0] for row in events} == {"ACTIVE"}, "somebody healthy was judged silent"
        alive = {pid for worker in workers for pid in worker.slots()}
        assert slots <= alive, "a healthy slot died"
    finally:
        scene.close()


def _answers(scene: Scene) -> bool:
    try:
        return scene.one("SELECT 1") == 1
    except Exception:  # noqa: BLE001 - whatever a server that starts up says
        return False
