"""A slot that dies costs its own chunk one try, at once, and nobody else anything."""

from __future__ import annotations

import os
import signal
import time
from dataclasses import replace

import pytest

from retoma.cluster.identity import this_node
from retoma.cluster.supervisor import _pause_seconds
from retoma.host import THIS_HOST
from retoma.store import nodes
from tests.cluster.backends import only_on, quick_on
from tests.cluster.programs import until
from tests.cluster.proof import chunk_of, outcomes, prove, prove_history
from tests.cluster.scene import Scene

DOOMED = 47
CRASHED = "FAILED(CRASH)"


def seen_by(scene: Scene, item: int) -> list[int]:
    """The processes that worked on an item, in their order."""
    return [pid for found, pid in scene.seen() if found == item]


def test_a_killed_slots_chunk_runs_again_at_once_and_alone(scene: Scene) -> None:
    scene.settings |= {"RETOMA_TEST_TROUBLE": f"{DOOMED}=gate"}
    scene.gate.touch()
    run = scene.run(slots=2)
    victim = until("the item is reached", lambda: seen_by(scene, DOOMED))[0]
    others = [pid for pid in run.slots() if pid != victim]
    scene.gate.unlink()
    os.kill(victim, signal.SIGKILL)
    killed_at = time.monotonic()
    until("the item is done again", lambda: len(seen_by(scene, DOOMED)) == 2, 10.0)
    assert time.monotonic() - killed_at <= 2.0
    assert run.code() == 5, run.said()
    doomed = chunk_of(scene, DOOMED)
    assert scene.repeated() == {doomed: 1}
    assert outcomes(scene, doomed) == [CRASHED, "COMPLETED"]
    assert len(others) == 1
    assert others[0] in {pid for _, pid in scene.seen()}
    prove(scene)


@quick_on("postgres")
def test_an_item_that_kills_its_slot_every_time_fails_its_chunk_alone(scene: Scene) -> None:
    scene.settings |= {"RETOMA_TEST_TROUBLE": f"{DOOMED}=segfault"}
    run = scene.run(slots=2)
    # Each death is a crash, which may pass: the documented code of "a restart is safe and useful".
    assert run.code() == 3, run.said()
    doomed = chunk_of(scene, DOOMED)
    assert outcomes(scene, doomed) == [CRASHED] * 5
    assert len(seen_by(scene, DOOMED)) == 5
    states = dict(scene.rows("SELECT state, count(*) FROM batch_chunk GROUP BY state"))
    assert states == {"COMPLETED": scene.one("SELECT count(*) FROM batch_chunk") - 1, "FAILED": 1}
    assert scene.state() == "FAILED"
    failure = scene.one("SELECT failure FROM batch_run ORDER BY id DESC LIMIT 1")
    assert "SIGSEGV" in failure
    assert f"chunk {doomed}" in failure
    assert "SIGSEGV" in run.said()
    prove_history(scene)
    scene.settings.clear()  # the cause is cured: the same command goes on with what is left
    again = scene.run()
    assert again.code() == 5, again.said()
    prove(scene)


@only_on("sqlite")
def test_a_death_here_is_not_taken_for_one_on_another_host_with_the_same_pid(scene: Scene) -> None:
    scene.settings |= {"RETOMA_TEST_TROUBLE": f"{DOOMED}=gate"}
    scene.gate.touch()
    scene.submit()
    worker = scene.worker()
    victim = until("the item is reached", lambda: seen_by(scene, DOOMED))[0]
    # As if the chunk belonged to a slot of another machine that happens to have the same numbers.
    other = this_node(THIS_HOST, "elsewhere", 1, "1")
    node = nodes.register(scene.store.control(), replace(other, boot_id="elsewhere"))
    scene.change("UPDATE batch_chunk SET owner_node = :node WHERE state = 'RUNNING'", node=node)
    os.kill(victim, signal.SIGKILL)
    until("the death is noticed", lambda: "slot.died" in worker.said())
    time.sleep(1.0)
    running = scene.rows("SELECT owner_pid FROM batch_chunk WHERE state = 'RUNNING'")
    assert (victim,) in running


def test_slots_that_die_at_birth_for_an_hour_are_still_spawned_with_a_pause() -> None:
    assert [_pause_seconds(n) for n in (1, 2, 5)] == [0.1, 0.2, 1.6]
    assert _pause_seconds(5_000) == 2.0


@pytest.mark.parametrize(
    ("kind", "backend"),
    [
        ("sleep_once", "sqlite"),
        ("spin_once", "postgres"),
        pytest.param("sleep_once", "mariadb", marks=pytest.mark.campaign),
        pytest.param("sleep_once", "postgres", marks=pytest.mark.campaign),
        pytest.param("spin_once", "sqlite", marks=pytest.mark.campaign),
        pytest.param("spin_once", "mariadb", marks=pytest.mark.campaign),
    ],
)
def test_an_item_that_never_ends_is_ended_at_the_attempts_deadline(scene: Scene, kind: str) -> None:
    scene.settings |= {"RETOMA_TEST_TROUBLE": f"{DOOMED}={kind}", "RETOMA_TEST_DEADLINE": "2"}
    run = scene.run(slots=2)
    until("the item is reached", lambda: seen_by(scene, DOOMED))
    reached_at = time.monotonic()
    until("the item is done again", lambda: len(seen_by(scene, DOOMED)) == 2, 12.0)
    assert 1.5 <= time.monotonic() - reached_at <= 2 + 4
    assert run.code() == 5, run.said()
    doomed = chunk_of(scene, DOOMED)
    assert outcomes(scene, doomed) == [CRASHED, "COMPLETED"]
    assert scene.one("SELECT tries FROM batch_chunk WHERE id = :id", id=doomed) == 1
    failure = scene.one(
        "SELECT failure FROM batch_attempt WHERE chunk_id = :id AND fence = 1", id=doomed
    )
    assert "deadline of 2 s" in failure
    assert scene.repeated() == {doomed: 1}
    prove(scene)
