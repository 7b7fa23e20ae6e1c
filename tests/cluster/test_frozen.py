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

from tests.cluster.conftest import MakeScene
from tests.cluster.programs import Program, until
from tests.cluster.proof import chunk_of, outcomes, prove
from tests.cluster.scene import Scene

INSERT = {"postgresql": "insert.copy", "sqlite": "insert.rows", "mariadb": "insert.rows"}
QUICK = 0.2
FULL = 1.0
POINTS = ("chunk.witness.after", "insert", "chunk.finish.after")


def shown(quick: Iterable[tuple[Any, ...]], whole: Iterable[tuple[Any, ...]]) -> list[Any]:
    """The quick cases, and in a campaign all of them, in real time as well."""
    first = list(quick)
    rest = [case for case in whole if case not in first]
    return [*first, *(pytest.param(*case, marks=pytest.mark.campaign) for case in rest)]


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


def effects_of(scene: Scene, chunk: int) -> int:
    low, high = scene.ranges()[chunk]
    return int(
        scene.one(
            "SELECT count(*) FROM effect WHERE item_id > :low AND item_id <= :high",
            low=low,
            high=high,
        )
    )


@pytest.mark.parametrize(
    ("point", "scale"),
    shown([("insert", QUICK), ("chunk.finish.after", QUICK)], product(POINTS, (QUICK, FULL))),
)
def test_a_frozen_worker_is_overtaken_and_its_late_commit_refused(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale, settings={"RETOMA_TEST_ITEM_SECONDS": "0.03"})
    scene.submit()
    other = scene.worker()
    until("the other one works", scene.seen)
    frozen, _, chunk = freeze_at(scene, point, scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    frozen_at = time.monotonic()
    until("done elsewhere", lambda: completed(scene, chunk), scene.takeover_seconds + 2)
    scene.wait_for_end()
    if scale == FULL:
        time.sleep(max(0.0, frozen_at + 60 - time.monotonic()))
    before = effects_of(scene, chunk)
    thaw(frozen)
    time.sleep(1.0)
    assert effects_of(scene, chunk) == before
    assert outcomes(scene, chunk) == ["LOST(CRASH)", "COMPLETED"]
    assert chunk in scene.repeated()
    prove(scene)
    for program in (frozen, other):  # both are healthy and leave when asked
        assert program.is_alive, program.said()
        os.kill(program.pid, signal.SIGTERM)
    assert [frozen.code(), other.code()] == [0, 0]


@pytest.mark.xfail(strict=True, reason="a failed attempt is begun again without asking for belief")
def test_a_thawed_slot_makes_no_call_for_a_chunk_that_is_not_its_own(
    make_postgres_scene: MakeScene,
) -> None:
    scene = make_postgres_scene(settings={"RETOMA_TEST_ITEM_SECONDS": "0.03"})
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, "chunk.finish.after", scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    scene.worker()
    until("done elsewhere", lambda: completed(scene, chunk), scene.takeover_seconds + 2)
    scene.wait_for_end()
    calls = [pid for _, pid in scene.seen()].count(slot)
    thaw(frozen)
    time.sleep(1.0)
    assert [pid for _, pid in scene.seen()].count(slot) == calls
    prove(scene)


@pytest.mark.parametrize(
    ("point", "scale"),
    shown([("chunk.witness.after", QUICK)], product(POINTS, (QUICK, FULL))),
)
def test_a_frozen_slot_is_ended_at_its_attempts_deadline(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale, settings={"RETOMA_TEST_DEADLINE": "2"})
    run, slot, chunk = freeze_at(scene, point, scene.run, slots=2)
    frozen_at = time.monotonic()
    until("done again", lambda: completed(scene, chunk), 2 + 5)
    assert time.monotonic() - frozen_at >= 1.0
    assert run.code() == 5, run.said()
    with suppress(ProcessLookupError):
        os.kill(slot, signal.SIGCONT)
        pytest.fail("the frozen slot was left alive")
    assert outcomes(scene, chunk) == ["FAILED(CRASH)", "COMPLETED"]
    if scene.backend != "sqlite":  # with one writer, who waits for the frozen one is late as well
        assert scene.repeated() == {chunk: 1}
    prove(scene)


@pytest.mark.parametrize(
    "scale", [pytest.param(QUICK), pytest.param(FULL, marks=pytest.mark.campaign)]
)
def test_a_slot_frozen_before_its_commit_is_overtaken_while_its_sibling_works(
    make_scene: MakeScene, scale: float
) -> None:
    scene = make_scene(scale=scale, settings={"RETOMA_TEST_ITEM_SECONDS": "0.02"})
    run, slot, chunk = freeze_at(scene, "chunk.finish.after", scene.run, slots=2)
    if scene.backend != "sqlite":
        scene.wait_for_items(60)  # the sibling goes on; SQLite has one writer
        assert not completed(scene, chunk)
    until("done again", lambda: completed(scene, chunk), scene.takeover_seconds + 2)
    with suppress(ProcessLookupError):
        os.kill(slot, signal.SIGCONT)
    assert run.code() == 5, run.said()
    assert outcomes(scene, chunk)[-1] == "COMPLETED"
    assert "LOST(CRASH)" in outcomes(scene, chunk)
    prove(scene)
    healthy = scene.ranges().keys() - {chunk}
    assert {c for c in healthy if outcomes(scene, c) != ["COMPLETED"]} == set()


@pytest.mark.parametrize(
    ("point", "scale"),
    shown([("chunk.witness.after", QUICK)], product(POINTS, (QUICK, FULL))),
)
def test_a_frozen_supervisor_loses_its_work_and_rejoins(
    make_scene: MakeScene, point: str, scale: float
) -> None:
    scene = make_scene(scale=scale, items=300, settings={"RETOMA_TEST_ITEM_SECONDS": "0.05"})
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, point, scene.worker)
    os.kill(frozen.pid, signal.SIGSTOP)
    os.kill(slot, signal.SIGCONT)  # its slot goes on alone, as long as it may believe
    until("its chunk is committed", lambda: completed(scene, chunk))
    time.sleep((20 - 3) * scene.scale + 10 * 0.05)  # past the belief, and the chunk in hand
    calls = [pid for _, pid in scene.seen()].count(slot)
    other = scene.worker(slots=2)
    until(
        "the other one works", lambda: {p for _, p in scene.seen()} - {slot}, scene.takeover_seconds
    )
    assert [pid for _, pid in scene.seen()].count(slot) == calls, "it works without a supervisor"
    thaw(frozen)
    scene.wait_for_end()
    assert [pid for _, pid in scene.seen()].count(slot) > calls, "it never came back"
    assert sum(scene.repeated().values()) <= 1
    prove(scene)
    for program in (frozen, other):
        assert program.is_alive, program.said()


def test_a_newcomer_ends_the_frozen_one_that_holds_sqlites_write_lock(
    make_sqlite_scene: MakeScene,
) -> None:
    scene = make_sqlite_scene()
    scene.submit()
    frozen, slot, chunk = freeze_at(scene, "chunk.finish.after", scene.worker)
    frozen.signal_all(signal.SIGSTOP)
    newcomer = scene.worker()  # nobody else is alive, and it can't even register
    until("done again", lambda: completed(scene, chunk), scene.takeover_seconds + 10)
    assert slot not in frozen.slots()
    thaw(frozen)
    scene.wait_for_end()
    assert outcomes(scene, chunk) == ["LOST(CRASH)", "COMPLETED"]
    prove(scene)
    assert newcomer.is_alive
    assert frozen.is_alive
