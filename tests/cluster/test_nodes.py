"""A node that falls silent is shown as UNREACHABLE, then REMOVED; it comes back as a new one."""

from __future__ import annotations

import signal

from tests.cluster.backends import quick_on
from tests.cluster.programs import Program, until
from tests.cluster.proof import prove_transitions
from tests.cluster.scene import Scene


def states(scene: Scene, program: Program) -> list[str]:
    rows = scene.rows("SELECT state FROM batch_node WHERE pid = :pid ORDER BY id", pid=program.pid)
    return [row[0] for row in rows]


@quick_on("postgres")
def test_a_silent_node_is_unreachable_and_comes_back(scene: Scene) -> None:
    silent, watcher = scene.worker(), scene.worker()
    for program in (silent, watcher):
        until("it is a node", lambda program=program: states(scene, program) == ["ACTIVE"])
    silent.signal_all(signal.SIGSTOP)
    until(
        "it is unreachable", lambda: states(scene, silent) == ["UNREACHABLE"], 10 * scene.scale + 10
    )
    silent.signal_all(signal.SIGCONT)
    until("it is active again", lambda: states(scene, silent) == ["ACTIVE"], 3 * scene.scale + 10)
    assert states(scene, watcher) == ["ACTIVE"]
    prove_transitions(scene)


@quick_on("sqlite")
def test_a_removed_node_rejoins_as_a_new_incarnation_and_works(scene: Scene) -> None:
    silent, watcher = scene.worker(), scene.worker()
    for program in (silent, watcher):
        until("it is a node", lambda program=program: states(scene, program) == ["ACTIVE"])
    silent.signal_all(signal.SIGSTOP)
    until("it is removed", lambda: states(scene, silent) == ["REMOVED"], 30 * scene.scale + 10)
    watcher.kill()
    silent.signal_all(signal.SIGCONT)
    until("it rejoins", lambda: states(scene, silent) == ["REMOVED", "ACTIVE"], 10.0)
    assert scene.one("SELECT count(DISTINCT incarnation) FROM batch_node") == 3
    run_id = scene.submit()
    scene.wait_for_end()
    coordinators = scene.rows(
        "SELECT actor FROM batch_event WHERE noun = 'run' AND noun_id = :run"
        " AND after_state = 'RUNNING'",
        run=run_id,
    )
    newest = scene.one("SELECT max(id) FROM batch_node")
    assert coordinators == [(f"node {newest}",)]
    prove_transitions(scene)
