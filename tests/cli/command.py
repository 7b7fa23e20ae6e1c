"""The command line as a user calls it, in a process of its own."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

_SETTINGS = ("RETOMA_DATABASE", "RETOMA_APPS", "RETOMA_DEBUG")


def retoma(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """The answer of ``retoma`` in a folder, with no settings from outside."""
    return subprocess.run(
        [sys.executable, "-m", "retoma", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
        env={name: value for name, value in os.environ.items() if name not in _SETTINGS},
    )
