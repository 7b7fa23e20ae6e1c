"""What the README shows is executed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import sqlalchemy as sa

README = (Path(__file__).parents[2] / "README.md").read_text("utf-8")


def _retoma(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "retoma", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_the_job_in_the_readme_runs_and_is_complete_when_asked_again(tmp_path: Path) -> None:
    block = re.search(r"```python\n(# jobs\.py\n.*?)```", README, re.DOTALL)
    assert block is not None
    (tmp_path / "jobs.py").write_text(block.group(1), encoding="utf-8")
    assert len(block.group(1).splitlines()) <= 25
    url = f"sqlite:///{tmp_path / 'work.db'}"
    engine = sa.create_engine(url)
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE orders (id BIGINT PRIMARY KEY, cents BIGINT)"))
        connection.execute(sa.text("INSERT INTO orders VALUES (1, 100), (2, NULL), (3, 250)"))

    first = _retoma(tmp_path, "run", "billing", "--app", "jobs", "--database", url)
    assert first.returncode == 5, first.stderr
    assert "set aside 1" in first.stdout
    again = _retoma(tmp_path, "run", "billing", "--app", "jobs", "--database", url)
    assert (again.returncode, "already complete" in again.stdout) == (5, True), again.stderr
    with engine.connect() as connection:
        rows = connection.execute(sa.text("SELECT bill_key, cents FROM bills ORDER BY 1")).all()
    assert [tuple(row) for row in rows] == [("BILL:1", 100), ("BILL:3", 250)]


def test_every_command_that_the_readme_names_exists(tmp_path: Path) -> None:
    command = r"(?:^|`)retoma ((?:errors|reconcile|db|job) [a-z]+|[a-z]+)"
    shown = set(re.findall(command, README, re.MULTILINE))
    assert {"run", "worker", "submit", "status", "verify", "errors list", "db sql"} <= shown
    for name in sorted(shown):
        answer = _retoma(tmp_path, *name.split(), "--help")
        assert answer.returncode == 0, f"retoma {name} --help: {answer.stderr}"


def test_the_exit_codes_in_the_readme_are_those_of_the_code() -> None:
    from retoma.errors import ExitCode

    codes = {value for name, value in vars(ExitCode).items() if name.isupper()}
    told = re.search(r"Exit codes, the same for all: (.*?)\.\n", README, re.DOTALL)
    assert told is not None
    assert {int(part.split()[0]) for part in told.group(1).split("·")} == codes
