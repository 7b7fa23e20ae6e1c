"""For those who test their own jobs: time wound by hand, deaths at will, runs without processes.

Everything public is reachable from here and is loaded when it is first used. With Retoma installed,
pytest finds the fixtures ``retoma_clock``, ``retoma_store`` and ``retoma_crash_everywhere`` by
itself.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from retoma.testing.clock import FakeClock as FakeClock
    from retoma.testing.crash import CrashReport as CrashReport
    from retoma.testing.crash import crash_everywhere as crash_everywhere
    from retoma.testing.death import Killed as Killed
    from retoma.testing.death import KilledAt as KilledAt
    from retoma.testing.one_slot import Ended as Ended
    from retoma.testing.one_slot import run_in_process as run_in_process

_HOMES = {
    "CrashReport": "retoma.testing.crash",
    "Ended": "retoma.testing.one_slot",
    "FakeClock": "retoma.testing.clock",
    "Killed": "retoma.testing.death",
    "KilledAt": "retoma.testing.death",
    "crash_everywhere": "retoma.testing.crash",
    "run_in_process": "retoma.testing.one_slot",
}

__all__ = list(_HOMES)


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'retoma.testing' has no attribute {name!r}")
