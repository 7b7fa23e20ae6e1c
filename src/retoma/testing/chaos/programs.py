"""Real ``retoma`` commands: started as an operator would, signalled as no one should."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from retoma.clock import SYSTEM_CLOCK

T = TypeVar("T")
_PROC = Path("/proc")
_END_SECONDS = 60.0


class CellFailed(Exception):
    """The cell is not clean; the text says what was found."""


def until(what: str, look: Callable[[], T], seconds: float) -> T:
    """The first truthy answer of ``look``; raises ``CellFailed`` if none comes in time."""
    end = SYSTEM_CLOCK.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        if SYSTEM_CLOCK.monotonic() > end:
            raise CellFailed(f"not within {seconds:g} s: {what}")
        SYSTEM_CLOCK.sleep(0.01)


def _state(pid: int) -> str:
    """The kernel's letter for what a process does; X if it is gone."""
    try:
        fields = (_PROC / str(pid) / "stat").read_text("ascii", "replace").rpartition(")")[2]
    except OSError:
        return "X"
    return fields.split()[0]


def _is_alive(pid: int) -> bool:
    return _state(pid) not in ("Z", "X")


def stands_still(pid: int) -> bool:
    """Whether a process is stopped or dead."""
    return _state(pid) in ("T", "t", "Z", "X")


@dataclass(slots=True)
class Program:
    """One command in a session of its own, so that nothing of it can get away."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        """The process id of the supervisor."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the command has not ended."""
        return self.process.poll() is None

    def family(self) -> list[int]:
        """The supervisor, if it lives, then all else of it that lives, orphans included."""
        found = []
        for entry in _PROC.iterdir():
            if entry.name.isdecimal():
                pid = int(entry.name)
                with suppress(ProcessLookupError):
                    if os.getsid(pid) == self.pid and _is_alive(pid):
                        found.append(pid)
        return sorted(found, key=lambda pid: pid != self.pid)

    def signal_all(self, number: signal.Signals) -> None:
        """To the supervisor first, then to its slots."""
        for pid in self.family():
            send(pid, number)

    def kill(self) -> None:
        """SIGKILL to everything at once, and see it gone."""
        self.signal_all(signal.SIGKILL)
        self.process.wait(10)
        until("the killed processes are gone", lambda: not self.family(), 10.0)

    def code(self, seconds: float = _END_SECONDS) -> int:
        """The exit code, once the command has ended by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise CellFailed(f"a command still runs after {seconds:g} s") from None


def send(pid: int, number: signal.Signals) -> None:
    """A signal to a process that may have ended already."""
    with suppress(ProcessLookupError):
        os.kill(pid, number)


def launch(arguments: list[str], environment: Mapping[str, str], log: Path) -> Program:
    """Start ``retoma …``; what it prints goes to the log."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "retoma", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, **environment},
            start_new_session=True,
        )
    return Program(process, log)
