"""Real processes under test: started as an operator would, signalled as no one should."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

T = TypeVar("T")
ROOT = Path(__file__).parents[2]
SLOT = "retoma.cluster.slot"


def until(what: str, look: Callable[[], T], seconds: float = 60.0) -> T:
    """The first truthy answer of ``look``; fails with ``what`` if none comes in time."""
    end = time.monotonic() + seconds
    while True:
        found = look()
        if found:
            return found
        assert time.monotonic() < end, f"not within {seconds:g} s: {what}"
        time.sleep(0.02)


@dataclass(slots=True)
class Program:
    """One ``retoma`` command in a session of its own, so that nothing of it can get away."""

    process: subprocess.Popen[bytes]
    log: Path

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        return self.process.poll() is None

    def family(self) -> Iterator[psutil.Process]:
        """The command itself and all its children that are alive, orphans included."""
        for pid in psutil.pids():
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                if os.getsid(pid) == self.pid:
                    process = psutil.Process(pid)
                    if process.status() != psutil.STATUS_ZOMBIE:
                        yield process

    def slots(self) -> list[int]:
        """The process ids of the slots that are alive."""
        found = []
        for process in self.family():
            with suppress(psutil.NoSuchProcess):
                if SLOT in process.cmdline():
                    found.append(process.pid)
        return found

    def signal_all(self, number: signal.Signals) -> None:
        """To the supervisor first, then to whatever else is left of it."""
        for process in sorted(self.family(), key=lambda p: p.pid != self.pid):
            with suppress(ProcessLookupError):
                os.kill(process.pid, number)

    def kill(self) -> None:
        """SIGKILL to everything at once, and see it gone."""
        self.signal_all(signal.SIGKILL)
        self.process.wait(10)
        until("the killed processes are gone", lambda: not list(self.family()))

    def code(self, seconds: float = 90.0) -> int:
        """The exit code, once the command has ended by itself."""
        try:
            return self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            raise AssertionError(f"still running after {seconds:g} s:\n{self.said()}") from None

    def said(self) -> str:
        """The last lines of what the command printed."""
        return "\n".join(self.log.read_text("utf-8", "replace").splitlines()[-30:])


def _die_with_the_test() -> None:
    """In the child, before it is exec'd: a test run that is killed leaves no program behind."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(1, signal.SIGKILL, 0, 0, 0)


def launch(arguments: list[str], environment: dict[str, str], log: Path) -> Program:
    """Start ``retoma …``; what it prints goes to the log."""
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    with log.open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "retoma", *arguments],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=log.parent,
            env={**os.environ, "PYTHONPATH": path, **environment},
            start_new_session=True,
            preexec_fn=_die_with_the_test,  # noqa: PLW1509 - it takes no lock
        )
    return Program(process, log)
