"""A worker that dies leaves no process behind, and its work goes on in another one."""

from __future__ import annotations

import os
import signal
import time

from tests.cluster.programs import Program, until
from tests.cluster.proof import chunk_of, outcomes, prove
from tests.cluster.scene import Scene

HELD = 47
# One slot of the victim stands in an item that does not end before it is killed.
GATES = {"RETOMA_TEST_TROUBLE": f"{HELD}=gate"}
SLOW_ITEMS = {"RETOMA_TEST_ITEM_SECONDS": "0.04"}


def reach(scene: Scene) -> int:
    """Wait until the held item is in hand; the slot that has it."""
    return until(
        "the held item is reached",
        lambda: next((pid for item, pid in scene.seen() if item == HELD), 0),
    )


def kill_supervisor(program: Program) -> float:
    """SIGKILL to the supervisor alone; when no slot of it was left, counted from then."""
    killed_at = time.monotonic()
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait(5)
    until("its slots are gone", lambda: not program.slots(), 2.0)
    return time.monotonic() - killed_at


def test_a_killed_supervisors_slots_end_with_it_and_another_worker_goes_on_at_once(
    scene: Scene,
) -> None:
    scene.settings |= SLOW_ITEMS
    scene.submit()
    scene.gate.touch()
    victim = scene.worker(slots=2, **GATES)
    reach(scene)
    survivor = scene.worker()
    until("the survivor works", lambda: {p for _, p in scene.seen()} & set(survivor.slots()))
    assert kill_supervisor(victim) <= 2.0
    killed_at = time.monotonic()
    until("it runs elsewhere", lambda: [i for i, _ in scene.seen()].count(HELD) == 2, 3.0)
    assert time.monotonic() - killed_at <= 3.0
    scene.wait_for_end()
    assert outcomes(scene, chunk_of(scene, HELD)) == ["LOST(CRASH)", "COMPLETED"]
    assert 1 <= sum(scene.repeated().values()) <= 2
    prove(scene)


def test_a_worker_that_dies_on_another_host_is_replaced_after_its_lease(scene: Scene) -> None:
    scene.settings |= SLOW_ITEMS
    scene.submit()
    scene.gate.touch()
    victim = scene.worker(slots=2, **GATES)
    reach(scene)
    # For all that the others can know, it lives on another machine.
    scene.change("UPDATE batch_node SET boot_id = 'elsewhere'")
    survivor = scene.worker()
    until("the survivor is ready", survivor.slots)
    kill_supervisor(victim)
    killed_at = time.monotonic()
    until(
        "it runs elsewhere",
        lambda: [i for i, _ in scene.seen()].count(HELD) == 2,
        scene.takeover_seconds,
    )
    took = time.monotonic() - killed_at
    assert took >= (20 - 5 - 1) * scene.scale, "the lease was not respected"
    scene.wait_for_end()
    assert outcomes(scene, chunk_of(scene, HELD)) == ["LOST(CRASH)", "COMPLETED"]
    prove(scene)


def test_a_worker_that_joins_late_takes_chunks_and_the_run_outlives_its_coordinator(
    scene: Scene,
) -> None:
    scene.settings |= SLOW_ITEMS
    run_id = scene.submit()
    first = scene.worker()
    scene.wait_for_items(10)
    late = scene.worker()
    until("the late one works", lambda: {p for _, p in scene.seen()} & set(late.slots()))
    holder = (
        "SELECT n.pid FROM batch_run r JOIN batch_node n ON n.id = r.coordinator WHERE r.id = :id"
    )
    assert scene.one(holder, id=run_id) == first.pid
    kill_supervisor(first)
    until(
        "the run is coordinated again", lambda: scene.rows(holder, id=run_id) == [(late.pid,)], 3.0
    )
    scene.wait_for_end()
    assert 0 <= sum(scene.repeated().values()) <= 1
    prove(scene)
