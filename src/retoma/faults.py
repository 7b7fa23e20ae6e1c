"""Crash points armed in a real process: it is killed or frozen where a name is passed.

Nothing happens at a point unless a process was started with ``RETOMA_ALLOW_FAULTS=1`` and
``RETOMA_FAULTS`` names the point, as in ``chunk.finish.after=stop@/tmp/marker``: the action happens
once for all processes that share the marker file, so that the successor passes the point unharmed.
The names are those of ``retoma.crash_points``. A store marked as production is never opened with the
flag set.
"""

from __future__ import annotations

import difflib
import os
import signal
import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from retoma.crash_points import EVERY_NAME
from retoma.errors import UsageError

Point = Callable[[str], None]
FLAG = "RETOMA_ALLOW_FAULTS"


def no_point(name: str) -> None:
    """The scheduling point of production: nothing happens."""


def are_allowed(environment: Mapping[str, str]) -> bool:
    """Whether the process was started with the flag that allows faults."""
    return environment.get(FLAG) == "1"


def _once(marker: str) -> bool:
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    except FileExistsError:
        return False
    Path(marker).write_text(str(os.getpid()), encoding="ascii")
    return True


_ACTIONS = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


def point_from(environment: Mapping[str, str]) -> Point:
    """The scheduling point that the environment asks for; ``no_point`` unless faults are allowed.

    Raises ``UsageError`` for a point that is not in the catalogue and for anything but
    ``POINT=kill@MARKER`` and ``POINT=stop@MARKER``.
    """
    wanted = environment.get("RETOMA_FAULTS", "")
    if not are_allowed(environment) or not wanted:
        return no_point
    armed = dict(_fault(part) for part in wanted.split(","))

    def point(name: str) -> None:
        fault = armed.get(name)
        if fault is not None and _once(fault[1]):
            # To this very thread: sent to the process, another thread may take a stop, and this one
            # would go a little further.
            signal.pthread_kill(threading.get_ident(), fault[0])

    return point


def _fault(part: str) -> tuple[str, tuple[signal.Signals, str]]:
    name, _, action = (text.strip() for text in part.partition("="))
    verb, _, marker = action.partition("@")
    if name not in EVERY_NAME:
        near = difflib.get_close_matches(name, sorted(EVERY_NAME), n=3, cutoff=0.6)
        raise UsageError(
            f"RETOMA_FAULTS names {name!r}, which is no crash point",
            safe="Nothing was started.",
            next_step=f"did you mean {', '.join(near)}?" if near else "see docs/reference/chaos.md",
        )
    if verb not in _ACTIONS or not marker:
        raise UsageError(
            f"RETOMA_FAULTS has {part.strip()!r}, which says no action for {name}",
            safe="Nothing was started.",
            next_step=f"write {name}=kill@MARKERFILE or {name}=stop@MARKERFILE",
        )
    return name, (_ACTIONS[verb], marker)
