"""SIGTERM and Ctrl-C stop at a chunk's border: leases are given back, and all can be taken up."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.cluster.backends import quick_on
from tests.cluster.programs import Program, until
from tests.cluster.proof import prove, prove_history
from tests.cluster.scene import Scene

SLOW_ITEMS = {"RETOMA_TEST_ITEM_SECONDS": "0.03"}


def press_ctrl_c(program: Program) -> None:
    """What a terminal does: SIGINT to the whole foreground process group."""
    os.killpg(program.pid, signal.SIGINT)


def terminate(program: Program) -> None:
    os.kill(program.pid, signal.SIGTERM)


SIGNALS = [
    pytest.param(ask, backend, marks=() if is_quick else pytest.mark.campaign)
    for ask, backend, is_quick in (
        (terminate, "sqlite", True),
        (terminate, "postgres", True),
        (terminate, "mariadb", True),
        (press_ctrl_c, "sqlite", False),
        (press_ctrl_c, "postgres", True),
        (press_ctrl_c, "mariadb", False),
    )
]


@pytest.mark.parametrize(("ask", "backend"), SIGNALS)
def test_a_stopped_run_gives_its_leases_back_and_goes_on_later(scene: Scene, ask: object) -> None:
    scene.settings |= SLOW_ITEMS
    run = scene.run(slots=2)
    scene.wait_for_items(15)
    until("a chunk is half done", scene.is_half_done)
    ask(run)
    asked_at = time.monotonic()
    assert run.code(15) == 8, run.said()
    assert time.monotonic() - asked_at < 5.0
    assert scene.one("SELECT count(*) FROM batch_chunk WHERE state = 'RUNNING'") == 0
    assert scene.state() == "STOPPED"
    assert len(scene.seen()) < scene.items
    assert not list(run.family())
    prove_history(scene)
    again = scene.run(slots=2)
    assert again.code() == 5, again.said()
    assert not scene.repeated()  # what was in hand was finished
    prove(scene)


@quick_on("mariadb")
def test_a_stopped_worker_leaves_and_another_one_goes_on(scene: Scene) -> None:
    scene.settings |= SLOW_ITEMS
    scene.submit()
    first = scene.worker(slots=2)
    scene.wait_for_items(15)
    terminate(first)
    assert first.code(15) == 0, first.said()
    assert scene.one("SELECT count(*) FROM batch_chunk WHERE state = 'RUNNING'") == 0
    assert scene.rows("SELECT state FROM batch_node WHERE pid = :pid", pid=first.pid) == [("LEFT",)]
    assert scene.state() == "RUNNING"
    scene.worker(slots=2)
    began = time.monotonic()
    scene.wait_for_end()
    assert time.monotonic() - began < 10.0, "it waited for a lease that had been given back"
    assert not scene.repeated()
    prove(scene)
