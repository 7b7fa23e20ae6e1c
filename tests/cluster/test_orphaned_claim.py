"""A claim was committed and its answer lost: nobody works on the chunk, and nobody knows of it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.cluster.identity import this_node
from retoma.cluster.sweep import Sweep
from retoma.cluster.timing import DEFAULT_TIMING
from retoma.events import EventBus
from retoma.host import THIS_HOST
from retoma.model.records import Owner
from retoma.store import chunks, migrate, nodes, tables
from retoma.store.store import Store
from retoma.testing import FakeClock
from tests.store.scene import LEASE, Scene, row_of, scene


@pytest.fixture
def made(tmp_path: Path) -> Iterator[Scene]:
    """A run on SQLite, whose one chunk is held by this very process."""
    store = Store(f"sqlite:///{tmp_path / 'orphan.db'}", clock=FakeClock())
    migrate.ensure(store)
    session = store.control()
    yield scene(store, session)
    session.close()
    store.dispose()


def state_after_sweeps(made: Scene, *, is_mine: bool, is_held: bool, pid: int | None = None) -> str:
    """What became of the chunk when its lease ran out and a worker looked at it for long enough."""
    session, clock = made.session, made.store.clock
    node = nodes.register(session, this_node(THIS_HOST, "", 1, "1"))
    owner = Owner(node, 0, pid or os.getpid())
    partition = made.partitions()[0]
    run = made.run.run_id
    claim = chunks.cut(made.store, session, made.step_id, run, partition, 100, 10, owner, LEASE)
    assert claim is not None
    sweep = Sweep(
        made.store,
        clock,
        DEFAULT_TIMING,
        EventBus(),
        is_mine=lambda _node, _pid: is_mine,
        is_held=lambda token: is_held and token == claim.token,
    )
    for _ in range(20):
        clock.sleep(2.0)
        sweep.chunks(session)
    return str(row_of(session, tables.chunk, claim.chunk_id).state)


def test_an_own_slots_claim_that_it_never_reported_is_given_back(made: Scene) -> None:
    assert state_after_sweeps(made, is_mine=True, is_held=False) == "PENDING"


def test_a_claim_that_an_own_slot_works_on_is_left_to_its_deadline(made: Scene) -> None:
    assert state_after_sweeps(made, is_mine=True, is_held=True) == "RUNNING"


def test_a_claim_of_an_own_slot_that_stands_still_is_taken(made: Scene) -> None:
    slot = subprocess.Popen(["sleep", "60"])
    try:
        slot.send_signal(signal.SIGSTOP)
        os.waitpid(slot.pid, os.WUNTRACED)
        found = state_after_sweeps(made, is_mine=True, is_held=True, pid=slot.pid)
        assert found == "PENDING"
    finally:
        slot.kill()
        slot.wait()


def test_a_claim_under_another_running_supervisor_is_left_to_that(made: Scene) -> None:
    assert state_after_sweeps(made, is_mine=False, is_held=False) == "RUNNING"
