"""What the code may ask of the machine about processes; a simulation answers for a machine of its own."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Protocol

_LOCK_QUESTION = """
import fcntl, os, struct, sys
fd = os.open(sys.argv[1], os.O_RDWR)
flock = struct.pack("hhqqi4x", fcntl.F_WRLCK, os.SEEK_SET, int(sys.argv[2]), 1, 0)
kind, _, _, _, pid = struct.unpack("hhqqi4x", fcntl.fcntl(fd, fcntl.F_GETLK, flock))
print(pid if kind != fcntl.F_UNLCK else 0)
"""


class Host(Protocol):
    """One machine and the processes on it."""

    def name(self) -> str:
        """The host's name, for people."""

    def boot_id(self) -> str:
        """Names this boot of this machine; empty where the system does not tell."""

    def pid_namespace(self) -> str:
        """Names the space in which process ids are unique; empty where the system does not tell."""

    def pid(self) -> int:
        """The process that asks."""

    def started(self, pid: int) -> str:
        """When a process started, in the kernel's ticks; empty if there is none, or it is a zombie."""

    def is_stopped(self, pid: int) -> bool:
        """Whether a process exists but stands still, by a signal or a debugger."""

    def kill(self, pid: int) -> None:
        """SIGKILL; raises ``ProcessLookupError`` or ``PermissionError``."""

    def lock_holder(self, file: Path, byte: int) -> int | None:
        """The process that holds a POSIX lock on a byte of a file; None if nobody does."""


class ThisHost:
    """The machine that this process runs on."""

    def name(self) -> str:
        return socket.gethostname()

    def boot_id(self) -> str:
        return _read("/proc/sys/kernel/random/boot_id")

    def pid_namespace(self) -> str:
        try:
            return str(Path("/proc/self/ns/pid").readlink())
        except OSError:
            return ""

    def pid(self) -> int:
        return os.getpid()

    def started(self, pid: int) -> str:
        fields = _stat(pid)
        return "" if not fields or fields[0] in ("Z", "X") else fields[19]

    def is_stopped(self, pid: int) -> bool:
        fields = _stat(pid)
        return bool(fields) and fields[0] in ("T", "t")

    def kill(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)

    def lock_holder(self, file: Path, byte: int) -> int | None:
        # Asked by a helper process: closing any descriptor of a file drops all POSIX locks that the
        # closing process has on it, so asking from here could end our own connections' locks.
        if not file.exists():
            return None
        answer = subprocess.run(
            [sys.executable, "-I", "-S", "-c", _LOCK_QUESTION, str(file), str(byte)],
            capture_output=True,
            text=True,
            timeout=10,
            check=False,
        )
        return int(answer.stdout.strip() or 0) or None if answer.returncode == 0 else None


THIS_HOST = ThisHost()


def _read(path: str) -> str:
    try:
        return Path(path).read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _stat(pid: int) -> list[str]:
    return _read(f"/proc/{pid}/stat").rpartition(")")[2].split()
