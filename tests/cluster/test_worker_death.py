"""A worker that dies leaves no process behind, and its work goes on in another one."""

from __future__ import annotations

import os
import signal
import time

from tests.cluster.backends import quick_on
from tests.cluster.programs import Program, until
from tests.cluster.proof import chunk_of, outcomes, prove
from tests.cluster.scene import Scene


def kill_supervisor(program: Program) -> float:
    """SIGKILL to the supervisor alone; when no slot of it was left, counted from then."""
    killed_at = time.monotonic()
    os.kill(program.pid, signal.SIGKILL)
    program.process.wait(5)
    until("its slots are gone", lambda: not program.slots(), 10.0)
    return time.monotonic() - killed_at


def wait_until_seen_again(scene: Scene, item: int, seconds: float) -> float:
    """Until somebody else works on the item; how long it took."""
    began = time.monotonic()
    until("it runs elsewhere", lambda: [i for i, _ in scene.seen()].count(item) == 2, seconds)
    return time.monotonic() - began


def test_a_killed_supervisors_slots_end_with_it_and_another_worker_goes_on_at_once(
    scene: Scene,
) -> None:
    scene.submit()
    gate = scene.close_gate()
    victim = scene.worker(slots=2, **gate)
    held = scene.held_by(victim, slots=2)
    survivor = scene.worker(**gate)
    scene.held_by(survivor)
    assert kill_supervisor(victim) <= 2.0
    scene.open_gate()
    assert wait_until_seen_again(scene, held[0], 10.0) <= 3.0
    scene.wait_for_end()
    lost = {chunk_of(scene, item) for item in held}
    assert [outcomes(scene, chunk) for chunk in lost] == [["LOST(CRASH)", "COMPLETED"]] * 2
    assert scene.repeated() == dict.fromkeys(lost, 1)
    prove(scene)


@quick_on("postgres")
def test_a_worker_that_dies_on_another_host_is_replaced_after_its_lease(scene: Scene) -> None:
    scene.submit()
    gate = scene.close_gate()
    victim = scene.worker(**gate)
    (held,) = scene.held_by(victim)
    # For all that the others can know, it lives on another machine.
    scene.change("UPDATE batch_node SET boot_id = 'elsewhere'")
    survivor = scene.worker(**gate)
    scene.held_by(survivor)
    kill_supervisor(victim)
    scene.open_gate()
    took = wait_until_seen_again(scene, held, scene.takeover_seconds)
    assert took >= (20 - 5 - 1) * scene.scale, "the lease was not respected"
    scene.wait_for_end()
    assert outcomes(scene, chunk_of(scene, held)) == ["LOST(CRASH)", "COMPLETED"]
    prove(scene)


@quick_on("mariadb")
def test_a_worker_that_joins_late_takes_chunks_and_the_run_outlives_its_coordinator(
    scene: Scene,
) -> None:
    run_id = scene.submit()
    gate = scene.close_gate()
    first = scene.worker(**gate)
    scene.held_by(first)
    late = scene.worker(**gate)
    scene.held_by(late)  # it has taken a chunk
    holder = (
        "SELECT n.pid FROM batch_run r JOIN batch_node n ON n.id = r.coordinator WHERE r.id = :id"
    )
    assert scene.one(holder, id=run_id) == first.pid
    kill_supervisor(first)
    until("it is coordinated again", lambda: scene.rows(holder, id=run_id) == [(late.pid,)], 5.0)
    scene.open_gate()
    scene.wait_for_end()
    assert sum(scene.repeated().values()) == 1
    prove(scene)
