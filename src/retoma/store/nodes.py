"""Nodes: registration, heartbeat, leave, and the sweep of those that went silent."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from retoma.model.records import NodeIdentity
from retoma.store.dialects.contract import Guarded
from retoma.store.session import Session

_EVENT = "INSERT INTO batch_event (noun, noun_id, before_state, after_state, actor, cause, at) "

REGISTER = Guarded(
    name="node.register",
    guard=(
        "INSERT INTO batch_node (name, incarnation, state, slots, code_version, host, boot_id,"
        " pid_namespace, pid, pid_started, beat_at, started_at) SELECT :name, :incarnation, 'ACTIVE',"
        " :slots, :code_version, :host, :boot_id, :pid_namespace, :pid, :pid_started, {now}, {now} {dual}"
        " WHERE NOT EXISTS (SELECT 1 FROM batch_node WHERE incarnation = :incarnation)"
    ),
    then=(
        _EVENT + "SELECT 'node', {guard_id}, NULL, 'ACTIVE', :name, 'registered', {now} {dual}"
        " WHERE {guarded}",
    ),
)

BEAT = Guarded(
    name="node.beat",
    guard="UPDATE batch_node SET beat_at = {now} WHERE id = :node AND state IN ('ACTIVE', 'DRAINING')",
)

CHANGE = Guarded(
    name="node.change",
    guard="UPDATE batch_node SET state = :after WHERE id = :node AND state = :before",
    then=(
        _EVENT
        + "SELECT 'node', :node, :before, :after, :actor, :cause, {now} {dual} WHERE {guarded}",
    ),
)

_SILENT = (
    "SELECT id, state, CASE WHEN beat_at < {delay} THEN 1 ELSE 0 END FROM batch_node"
    " WHERE state IN ('ACTIVE', 'DRAINING', 'UNREACHABLE') AND beat_at < {lease}"
)


def register(session: Session, node: NodeIdentity) -> int:
    """Register an incarnation; its id."""
    session.once(REGISTER, asdict(node))
    rows = session.fetch(
        "node.id",
        "SELECT id FROM batch_node WHERE incarnation = :incarnation",
        {"incarnation": node.incarnation},
    )
    return int(rows[0][0])


def beat(session: Session, node_id: int) -> bool:
    """Say that the node lives; False if others have removed it."""
    if session.once(BEAT, {"node": node_id}):
        return True
    is_back = change(session, node_id, "UNREACHABLE", "ACTIVE", f"node {node_id}", "heard again")
    return is_back and session.once(BEAT, {"node": node_id})


def change(session: Session, node_id: int, before: str, after: str, actor: str, cause: str) -> bool:
    """One transition of a node with its history row."""
    values = {"node": node_id, "before": before, "after": after, "actor": actor, "cause": cause}
    return session.once(CHANGE, values)


def silent(session: Session, unreachable_after: float, removed_after: float) -> list[Any]:
    """(id, state, is past removal) of the nodes that have been silent for ``unreachable_after``."""
    values = {"lease_seconds": -unreachable_after, "delay_seconds": -removed_after}
    return session.fetch("node.silent", _SILENT, values)


def identity(session: Session, node_id: int) -> dict[str, Any] | None:
    """What a node said of itself."""
    rows = session.fetch(
        "node.identity",
        "SELECT host, boot_id, pid_namespace, pid, pid_started, state FROM batch_node WHERE id = :id",
        {"id": node_id},
    )
    names = ("host", "boot_id", "pid_namespace", "pid", "pid_started", "state")
    return dict(zip(names, rows[0], strict=True)) if rows else None


def live_slots(session: Session) -> int:
    """How many slots the live nodes have together: the count that a plan is made for."""
    rows = session.fetch(
        "node.slots", "SELECT COALESCE(SUM(slots), 0) FROM batch_node WHERE state = 'ACTIVE'"
    )
    return int(rows[0][0])
