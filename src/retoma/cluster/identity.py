"""Who a process is on its host, and whether another one is certainly dead."""

from __future__ import annotations

import os
import secrets
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from retoma.model.records import NodeIdentity


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def boot_id() -> str:
    """Names this boot of this machine; empty where the system does not tell."""
    return _read("/proc/sys/kernel/random/boot_id")


def pid_namespace() -> str:
    """Names the space in which process ids are unique; empty where the system does not tell."""
    try:
        return str(Path("/proc/self/ns/pid").readlink())
    except OSError:
        return ""


def started(pid: int) -> str:
    """When a process started, in the kernel's ticks; empty if there is none, or it is a zombie."""
    stat = _read(f"/proc/{pid}/stat")
    if not stat:
        return ""
    fields = stat.rpartition(")")[2].split()
    return "" if fields[0] in ("Z", "X") else fields[19]


def is_stopped(pid: int) -> bool:
    """Whether a process exists but stands still, by a signal or a debugger."""
    fields = _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
    return bool(fields) and fields[0] in ("T", "t")


def is_at_work(node: Mapping[str, Any] | None, slot_pid: int) -> bool:
    """Whether a slot of this host runs under a supervisor that runs and will end it in time."""
    if node is None or not started(slot_pid) or is_stopped(slot_pid):
        return False
    supervisor = int(node["pid"])
    return started(supervisor) == node["pid_started"] and not is_stopped(supervisor)


def this_node(name: str, slots: int, code_version: str) -> NodeIdentity:
    """What a supervisor says of itself; a restart is a new incarnation."""
    return NodeIdentity(
        name=name or f"{socket.gethostname()}:{os.getpid()}",
        incarnation=secrets.token_hex(16),
        slots=slots,
        code_version=code_version,
        host=socket.gethostname(),
        boot_id=boot_id(),
        pid_namespace=pid_namespace(),
        pid=os.getpid(),
        pid_started=started(os.getpid()),
    )


def is_certainly_dead(node: Mapping[str, Any] | None, slot_pid: int | None = None) -> bool:
    """Whether a node's supervisor, and the slot if given, are dead for sure.

    Only a process of the same boot and the same pid namespace can be judged; anything else waits
    for its lease.
    """
    if node is None or not boot_id():
        return False
    if node["boot_id"] != boot_id() or node["pid_namespace"] != pid_namespace():
        return False
    if started(int(node["pid"])) == node["pid_started"]:
        return False
    return slot_pid is None or not started(slot_pid)
