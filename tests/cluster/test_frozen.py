"""A process frozen in the middle of its work is overtaken, and its late commit has no effect.

Frozen at a point inside the work transaction (after the witness; at the bulk insert; between the
guarded finish and the commit), thawed when its work is done elsewhere.
"""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterable
from contextlib import suppress
from itertools import product
from typing import Any

import pytest

from tests.cluster.backends import MakeScene, only_on, quick_on
from tests.cluster.programs import Program, until
from tests.cluster.proof import chunk_of, outcomes, prove
from tests.cluster.scene import Scene
from tests.databases import BACKENDS

INSERT = {"postgresql": "insert.copy", "sqlite": "insert.rows", "mariadb": "insert.rows"}
QUICK = 0.2
FULL = 1.0
POINTS = ("chunk.witness.after", "insert", "chunk.finish.after")
LOST = "LOST(CRASH)"


def frozen_at(quick: Iterable[tuple[str, str]]) -> pytest.MarkDecorator:
    """Some pairs of backend and point in each run; in a campaign all, in real time as well."""
    cases = [(*case, QUICK) for case in quick]
    whole = product(BACKENDS, POINTS, (QUICK, FULL))
    rest = [pytest.param(*c, marks=pytest.mark.campaign) for c in whole if c not in cases]
    return pytest.mark.parametrize(("backend", "point", "scale"), [*cases, *rest])


def freeze_at(scene: Scene, point: str, start: Any, **settings: Any) -> tuple[Program, int, int]:
    """A program whose slot freezes at the point; the slot's pid and the chunk in its hand."""
    point = INSERT[scene.backend] if point == "insert" else point
    fault, marker = scene.fault(point, "stop")
    program = start(faults=fault, **settings)
    frozen = scene.victim(marker)
    last = next(item for item, pid in reversed(scene.seen()) if pid == frozen)
    return program, frozen, chunk_of(scene, last)


def thaw(program: Program) -> None:
    """Everything of it goes on, to its late commit."""
    program.signal_all(signal.SIGCONT)


def completed(scene: Scene, chunk: int) -> bool:
    return scene.rows("SELECT state FROM batch_chunk WHERE id = :id", id=chunk) == [("COMPLETED",)]


def calls_by(scene: Scene, slot: int) -> int:
    return [pid for _, pid in scene.seen()].count(slot)


@frozen_at((backend, "chunk.finish.after") for backend in BACKENDS)
def test_a_frozen_worker_is_overtaken_and_its_late_commit_refused(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale)
    scene.submit()
    other = scene.worker(**scene.close_gate())
    scene.held_by(other)
    frozen, _, chunk = freeze_at(scene, point, scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    frozen_since = time.monotonic()
    scene.open_gate()
    until("done elsewhere", lambda: completed(scene, chunk), scene.takeover_seconds)
    scene.wait_for_end()
    if scale == FULL:
        time.sleep(max(0.0, frozen_since + 60 - time.monotonic()))
    before = scene.rows("SELECT * FROM effect ORDER BY item_id")
    thaw(frozen)
    time.sleep(1.0)
    assert scene.rows("SELECT * FROM effect ORDER BY item_id") == before
    assert outcomes(scene, chunk) == [LOST, "COMPLETED"]
    assert chunk in scene.repeated()
    prove(scene)
    for program in (frozen, other):  # both are healthy and leave when asked
        assert program.is_alive, program.said()
        os.kill(program.pid, signal.SIGTERM)
    assert [frozen.code(), other.code()] == [0, 0]


@only_on("postgres")
def test_a_thawed_slot_makes_no_call_for_a_chunk_that_is_not_its_own(scene: Scene) -> None:
    scene.submit()
    frozen, slot, _ = freeze_at(scene, "chunk.finish.after", scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    scene.worker()
    scene.wait_for_end()
    calls = calls_by(scene, slot)
    thaw(frozen)
    time.sleep(2.0)
    assert calls_by(scene, slot) == calls


@frozen_at([("postgres", "chunk.witness.after")])
def test_a_frozen_slot_is_ended_at_its_attempts_deadline(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale, settings={"RETOMA_TEST_DEADLINE": "2"})
    run, slot, chunk = freeze_at(scene, point, scene.run, slots=2)
    until("done again", lambda: completed(scene, chunk), 2 + 8)
    assert run.code() == 5, run.said()
    with suppress(ProcessLookupError):
        os.kill(slot, signal.SIGCONT)
        pytest.fail("the frozen slot was left alive")
    assert outcomes(scene, chunk) == ["FAILED(CRASH)", "COMPLETED"]
    if scene.backend != "sqlite":  # with one writer, who waits for the frozen one is late as well
        assert scene.repeated() == {chunk: 1}
    prove(scene)


@pytest.mark.parametrize("scale", [QUICK, pytest.param(FULL, marks=pytest.mark.campaign)])
def test_a_slot_frozen_before_its_commit_is_overtaken_while_its_sibling_works(
    make_scene: MakeScene, scale: float
) -> None:
    scene = make_scene(scale=scale)
    run, slot, chunk = freeze_at(scene, "chunk.finish.after", scene.run, slots=2)
    if scene.backend != "sqlite":
        scene.wait_for_items(scene.items)  # the sibling goes on; SQLite has one writer
        assert not completed(scene, chunk)
    until("done again", lambda: completed(scene, chunk), scene.takeover_seconds)
    with suppress(ProcessLookupError):
        os.kill(slot, signal.SIGCONT)
    assert run.code() == 5, run.said()
    assert outcomes(scene, chunk) == [LOST, "COMPLETED"]
    prove(scene)
    for healthy in scene.ranges().keys() - {chunk}:  # SQLite's one writer may make a sibling late
        assert set(outcomes(scene, healthy)) <= {"COMPLETED", "GIVEN_BACK"}


@frozen_at([("mariadb", "insert")])
def test_a_frozen_supervisors_slot_works_until_its_belief_ends_and_comes_back(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale, items=int(1_500 * scale))
    scene.settings |= {"RETOMA_TEST_ITEM_SECONDS": "0.05"}
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, point, scene.worker)
    os.kill(frozen.pid, signal.SIGSTOP)
    os.kill(slot, signal.SIGCONT)
    until("its chunk is committed", lambda: completed(scene, chunk))
    time.sleep((20 - 3) * scene.scale + 10 * 0.05 + 0.5)  # the belief, and the chunk in hand
    calls = calls_by(scene, slot)
    scene.worker(slots=2)
    until("the other one works", lambda: {p for _, p in scene.seen()} - {slot})
    assert calls_by(scene, slot) == calls, "it works on without a supervisor"
    thaw(frozen)
    scene.wait_for_end()
    assert calls_by(scene, slot) > calls, "it never came back"
    assert sum(scene.repeated().values()) <= 1
    prove(scene)


@only_on("sqlite")
def test_a_newcomer_ends_the_frozen_one_that_holds_the_only_write_lock(scene: Scene) -> None:
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, "chunk.finish.after", scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    newcomer = scene.worker()  # nobody else is alive, and it can't even register
    until("done again", lambda: completed(scene, chunk), scene.takeover_seconds + 10)
    assert slot not in frozen.slots()
    thaw(frozen)
    scene.wait_for_end()
    assert outcomes(scene, chunk) == [LOST, "COMPLETED"]
    prove(scene)
    assert newcomer.is_alive
    assert frozen.is_alive


@quick_on()
def test_a_worker_frozen_while_it_processes_is_overtaken(make_scene: MakeScene) -> None:
    scene = make_scene()
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, "chunk.processed", scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    scene.worker()
    until("done elsewhere", lambda: completed(scene, chunk), scene.takeover_seconds + 10)
    scene.wait_for_end()
    calls = calls_by(scene, slot)
    thaw(frozen)
    time.sleep(2.0)
    assert calls_by(scene, slot) == calls
    assert outcomes(scene, chunk) == [LOST, "COMPLETED"]
    assert scene.repeated() == {chunk: 1}
    prove(scene)
