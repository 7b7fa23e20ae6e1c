"""Nodes: a restart is a new incarnation, silence is noticed, and every change has its history."""

from __future__ import annotations

from dataclasses import replace

import pytest

from retoma.model.records import NodeIdentity
from retoma.store import nodes, tables
from retoma.store.session import Session
from tests.store.scene import history, row_of, rows_of

NODE = NodeIdentity(
    name="host:1",
    incarnation="i" * 32,
    slots=3,
    code_version="0.1",
    host="host",
    boot_id="boot",
    pid_namespace="pid:[1]",
    pid=1,
    pid_started="17",
)


def let_pass(session: Session, seconds: float) -> None:
    """The nodes were last heard so many seconds ago."""
    session.change("t", "UPDATE batch_node SET beat_at = {delay}", {"delay_seconds": -seconds})


def test_a_node_registers_once_an_incarnation(session: Session) -> None:
    node = nodes.register(session, NODE)
    assert nodes.register(session, NODE) == node
    other = nodes.register(session, replace(NODE, incarnation="j" * 32))
    assert other != node
    assert history(session, "node") == [(None, "ACTIVE")] * 2
    assert {row.noun_id for row in rows_of(session, tables.event)} == {node, other}
    assert nodes.live_slots(session) == 6
    seen = nodes.identity(session, node)
    assert seen is not None
    assert (seen["pid"], seen["boot_id"], seen["state"]) == (1, "boot", "ACTIVE")


def test_a_beat_is_the_databases_time(session: Session) -> None:
    node = nodes.register(session, NODE)
    let_pass(session, 100)
    before = row_of(session, tables.node, node).beat_at
    assert nodes.beat(session, node)
    assert (row_of(session, tables.node, node).beat_at - before).total_seconds() > 90


@pytest.mark.parametrize(
    ("seconds", "expected"), [(5, []), (15, [("ACTIVE", 0)]), (40, [("ACTIVE", 1)])]
)
def test_silence_is_told_by_the_databases_clock(
    session: Session, seconds: float, expected: list[tuple[str, int]]
) -> None:
    node = nodes.register(session, NODE)
    let_pass(session, seconds)
    found = nodes.silent(session, unreachable_after=10, removed_after=30)
    assert [tuple(row) for row in found] == [(node, state, past) for state, past in expected]


def test_a_change_names_the_state_that_it_expects(session: Session) -> None:
    node = nodes.register(session, NODE)
    assert not nodes.change(session, node, "DRAINING", "LEFT", "tester", "left")
    assert nodes.change(session, node, "ACTIVE", "UNREACHABLE", "tester", "no heartbeat")
    assert not nodes.change(session, node, "ACTIVE", "UNREACHABLE", "tester", "no heartbeat")
    assert history(session, "node") == [(None, "ACTIVE"), ("ACTIVE", "UNREACHABLE")]
    assert nodes.live_slots(session) == 0


def test_a_node_that_is_heard_again_is_active_with_its_history(session: Session) -> None:
    node = nodes.register(session, NODE)
    nodes.change(session, node, "ACTIVE", "UNREACHABLE", "tester", "no heartbeat")
    let_pass(session, 100)
    assert nodes.beat(session, node)
    assert row_of(session, tables.node, node).state == "ACTIVE"
    assert nodes.silent(session, 10, 30) == []
    assert history(session, "node")[-1] == ("UNREACHABLE", "ACTIVE")


@pytest.mark.parametrize("state", ["REMOVED", "LEFT"])
def test_a_node_that_is_out_is_told_so_and_stays_out(session: Session, state: str) -> None:
    node = nodes.register(session, NODE)
    assert nodes.change(session, node, "ACTIVE", state, "tester", "out")
    assert not nodes.beat(session, node)
    assert row_of(session, tables.node, node).state == state
    let_pass(session, 100)
    assert nodes.silent(session, 10, 30) == []
