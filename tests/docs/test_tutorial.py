"""The tutorial is walked through, command by command, as its reader would."""

from __future__ import annotations

import os
import re
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "tutorial" / "README.md").read_text("utf-8")
CODE = (ROOT / "src" / "retoma" / "cli" / "project" / "jobs.py.txt").read_text("utf-8")
LINE = re.compile(r"^\$ (?P<command>.*?)(?:  # exit (?P<code>\d+))?$", re.MULTILINE)


@pytest.mark.timeout(300)
def test_the_tutorial_leads_to_a_job_that_survives_a_kill(tmp_path: Path) -> None:
    script = ["set -u"]
    for block in re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL):
        for line in LINE.finditer(block):
            command, code = line["command"], int(line["code"] or 0)
            script.append(f"{command}\nfound=$?; echo '$ {command.split()[0]}' $found")
            script.append(f"[ $found = {code} ] || exit 99")
    assert sum("retoma run" in line for line in script) == 3
    settings = {k: v for k, v in os.environ.items() if not k.startswith("RETOMA_")}
    settings["PATH"] = f"{Path(sys.executable).parent}:{settings['PATH']}"
    answer = subprocess.run(
        ["bash", "-c", "\n".join(script)],
        cwd=tmp_path,
        env=settings,
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "run 1 of job payments: RUNNING" in answer.stdout.partition("$ kill 0")[2]
    assert "(299700, 299700)" in answer.stdout
    assert "already complete" in answer.stdout
    with closing(sqlite3.connect(tmp_path / "first" / "retoma.db")) as database:
        (total,) = database.execute("SELECT SUM(cents) FROM payment").fetchone()
    good = (number for number in range(1, 300_001) if number % 1_000)
    assert total == sum((number % 90_000 + 1) * 100 + number % 100 for number in good)


def test_the_users_code_is_at_most_forty_lines() -> None:
    lines = [line for line in CODE.splitlines() if line.strip() and not line.startswith('"""')]
    assert len(lines) <= 40


def test_a_project_is_never_written_over_another(tmp_path: Path) -> None:
    (tmp_path / "jobs.py").write_text("mine", encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "retoma", "init", str(tmp_path)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert answer.returncode == 2
    assert "has jobs.py already" in answer.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["jobs.py"]
