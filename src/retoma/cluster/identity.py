"""Who a process is on its host, and whether another one is certainly dead."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from typing import Any

from retoma.host import Host
from retoma.model.records import NodeIdentity


def is_at_work(host: Host, node: Mapping[str, Any] | None, slot_pid: int) -> bool:
    """Whether a slot of this host runs under a supervisor that runs and will end it in time."""
    if node is None or not host.started(slot_pid) or host.is_stopped(slot_pid):
        return False
    supervisor = int(node["pid"])
    return host.started(supervisor) == node["pid_started"] and not host.is_stopped(supervisor)


def this_node(host: Host, name: str, slots: int, code_version: str) -> NodeIdentity:
    """What a supervisor says of itself; a restart is a new incarnation."""
    pid = host.pid()
    return NodeIdentity(
        name=name or f"{host.name()}:{pid}",
        incarnation=secrets.token_hex(16),
        slots=slots,
        code_version=code_version,
        host=host.name(),
        boot_id=host.boot_id(),
        pid_namespace=host.pid_namespace(),
        pid=pid,
        pid_started=host.started(pid),
    )


def is_certainly_dead(
    host: Host, node: Mapping[str, Any] | None, slot_pid: int | None = None
) -> bool:
    """Whether a node's supervisor, and the slot if given, are dead for sure.

    Only a process of the same boot and the same pid namespace can be judged; anything else waits
    for its lease.
    """
    if node is None or not host.boot_id():
        return False
    if node["boot_id"] != host.boot_id() or node["pid_namespace"] != host.pid_namespace():
        return False
    if host.started(int(node["pid"])) == node["pid_started"]:
        return False
    return slot_pid is None or not host.started(slot_pid)
