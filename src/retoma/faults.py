"""Named points at which a test can kill or freeze a real process.

Nothing happens at a point unless a process was started with ``RETOMA_ALLOW_FAULTS=1`` and
``RETOMA_FAULTS`` names the point, as in ``chunk.finish.after=stop@/tmp/marker``: the action happens
once for all processes that share the marker file, so that the successor passes the point unharmed.
"""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping
from pathlib import Path

Point = Callable[[str], None]


def no_point(name: str) -> None:
    """The scheduling point of production: nothing happens."""


def _once(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    Path(marker).write_text(str(os.getpid()), encoding="ascii")
    return True


_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def point_from(environment: Mapping[str, str]) -> Point:
    """The scheduling point that the environment asks for; ``no_point`` unless faults are allowed."""
    wanted = environment.get("RETOMA_FAULTS", "")
    if environment.get("RETOMA_ALLOW_FAULTS") != "1" or not wanted:
        return no_point
    armed: dict[str, tuple[signal.Signals, str]] = {}
    for part in wanted.split(","):
        name, _, action = part.partition("=")
        verb, _, marker = action.partition("@")
        armed[name.strip()] = (_ACTIONS[verb], marker)

    def point(name: str) -> None:
        fault = armed.get(name)
        if fault is not None and _once(fault[1]):
            os.kill(os.getpid(), fault[0])

    return point
