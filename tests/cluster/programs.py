"""Real processes under test: started as an operator would, signalled as no one should."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

import psutil

from retoma.testing.chaos import programs as chaos

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
class Program(chaos.Program):
    """One ``retoma`` command, of which a test asks more than the crash matrix does."""

    def slots(self) -> list[int]:
        """The process ids of the slots that are alive."""
        found = []
        for pid in self.family():
            with suppress(psutil.NoSuchProcess):
                if SLOT in psutil.Process(pid).cmdline():
                    found.append(pid)
        return found

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
