"""Real processes, real SIGKILLs, several slots at one file: the result is what it should be."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.databases import Servers
from tests.writers.export import expected, write_input

ROOT = Path(__file__).parents[2]


@pytest.mark.timeout(300)
@pytest.mark.slow
@pytest.mark.parametrize("splits", ["0", "1"])
@pytest.mark.parametrize("backend", ["sqlite", "postgres"])
def test_killed_slots_and_a_killed_supervisor_change_nothing(
    servers: Servers, tmp_path: Path, backend: str, splits: str
) -> None:
    numbers = list(range(1, 1501))
    write_input(tmp_path, numbers)
    (tmp_path / "out").mkdir()
    environment = {
        **os.environ,
        "EXPORT_FOLDER": str(tmp_path),
        "EXPORT_SPLITS": splits,
        "PYTHONPATH": str(ROOT),
    }
    with servers.database(backend, tmp_path) as url:
        command = [sys.executable, "-m", "retoma", "run", "export", "--slots", "3"]
        command += ["--app", "tests.writers.night_jobs", "--database", url]
        codes = []
        for _ in range(5):
            ended = subprocess.run(
                command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False
            )
            codes.append(ended.returncode)
            if ended.returncode == 5:
                break
        assert codes == [-9, 5], ended.stderr
    assert len(list(tmp_path.glob("died-at-*"))) == 5
    found = (tmp_path / "out" / "rows.csv").read_bytes().decode()
    assert found == expected(numbers)
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["rows.csv"]
