"""The export as an application whose slots and supervisor are killed with SIGKILL at their work."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import Any

from retoma import Job, StepContext
from tests.writers.export import export, to_row

_FOLDER = Path(os.environ["EXPORT_FOLDER"])
_SLOT_DEATHS = {50, 333, 600, 1111}
_SUPERVISOR_DEATHS = {800}


def _is_first(number: int) -> bool:
    try:
        (_FOLDER / f"died-at-{number}").touch(exist_ok=False)
    except FileExistsError:
        return False
    return True


def deadly(item: Any, context: StepContext) -> Any:
    """What ``to_row`` says; the first process that meets one of these items dies of it."""
    number = item["n"]
    if number in _SUPERVISOR_DEATHS and _is_first(number):
        os.kill(os.getppid(), signal.SIGKILL)
        os.kill(os.getpid(), signal.SIGKILL)
    if number in _SLOT_DEATHS and _is_first(number):
        os.kill(os.getpid(), signal.SIGKILL)
    return to_row(item, context)


JOB: Job = export(
    _FOLDER / "in.jsonl",
    _FOLDER / "out" / "rows.csv",
    chunk_size=100,
    process=deadly,
    splits=os.environ.get("EXPORT_SPLITS") == "1",
)
