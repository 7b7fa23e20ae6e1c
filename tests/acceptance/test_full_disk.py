"""A full disk costs nothing: a clear message at the start, a pause in the middle."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OWN_MOUNTS = ("unshare", "-m") if os.geteuid() == 0 else ("unshare", "-Urm")


def has_own_mounts() -> bool:
    """Whether this machine lets a test mount a disk that only the test can see."""
    try:
        probe = [*OWN_MOUNTS, "mount", "-t", "tmpfs", "tmpfs", "/mnt"]
        return subprocess.run(probe, capture_output=True, check=False).returncode == 0
    except OSError:
        return False


@pytest.mark.skipif(
    not has_own_mounts(), reason="needs unshare and mount: run as root, or allow user namespaces"
)
def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    command = [*OWN_MOUNTS, sys.executable, "-m", "tests.acceptance.full_disk", str(tmp_path)]
    ended = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stdout + ended.stderr
