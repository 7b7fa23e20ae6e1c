"""``retoma chaos simulate`` at its borders: what it refuses, and how it is stopped."""

from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from retoma.errors import ExitCode
from tests.cli.command import retoma

SIMULATE = ("chaos", "simulate")
PROOF = Path(__file__).parents[2] / "docs" / "reference" / "proof.md"


@pytest.fixture(params=["postgres", "mariadb"])
def server_url(request: pytest.FixtureRequest) -> str:
    """A fresh database; the test runs once on each server."""
    return str(request.getfixturevalue(f"{request.param}_url"))


def test_a_record_that_cannot_be_written_is_said_before_a_seed_is_played(tmp_path: Path) -> None:
    said = retoma(tmp_path, *SIMULATE, "--seeds", "1", "--record", "nowhere/proof.md")
    assert said.returncode == ExitCode.USAGE
    assert "nowhere/proof.md can't be written" in said.stderr
    assert "seeds" not in said.stdout


def test_a_record_gets_one_row_more(tmp_path: Path) -> None:
    record = tmp_path / "proof.md"
    record.write_text("| before |\n", encoding="utf-8")
    said = retoma(tmp_path, *SIMULATE, "--seeds", "2", "--first", "7", "--record", str(record))
    assert said.returncode == ExitCode.COMPLETED, said.stderr
    before, row = record.read_text(encoding="utf-8").splitlines()
    assert before == "| before |"
    assert "| SQLite | 7 … 8 | 2 |" in row


def test_the_page_of_proof_ends_with_its_table_so_that_a_row_appended_belongs_to_it() -> None:
    head, _, rows = PROOF.read_text(encoding="utf-8").partition("| day | protocol |")
    assert "## Runs" in head
    cells = {line.count("|") for line in rows.splitlines()[1:]}
    assert cells == {9}


def started(folder: Path, *arguments: str) -> subprocess.Popen[str]:
    """A simulation that has begun to play: its first seed's setting is printed."""
    process = subprocess.Popen(
        [sys.executable, "-m", "retoma", *SIMULATE, "--trace", "--seeds", "100000", *arguments],
        cwd=folder,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline().startswith("Setting(")
    return process


def test_a_second_simulation_on_a_database_is_refused_and_the_first_goes_on(
    tmp_path: Path, server_url: str
) -> None:
    with started(tmp_path, "--database", server_url) as first:
        began = time.monotonic()
        second = retoma(tmp_path, *SIMULATE, "--seeds", "1", "--database", server_url)
        assert time.monotonic() - began < 60
        assert second.returncode == ExitCode.RUNNING_ELSEWHERE, second.stderr
        assert "another simulation is at work on" in second.stderr
        assert first.poll() is None
        first.kill()
        first.communicate()
    third = retoma(tmp_path, *SIMULATE, "--seeds", "1", "--database", server_url)
    assert third.returncode == ExitCode.COMPLETED, third.stderr


def test_a_signal_stops_a_simulation_at_the_end_of_its_seed(tmp_path: Path) -> None:
    with started(tmp_path) as process:
        process.send_signal(signal.SIGINT)
        out, said = process.communicate(timeout=60)
    assert process.returncode == ExitCode.STOPPED
    assert said == "retoma: stopping at the end of this seed …\n"
    assert out.rstrip().endswith("all invariants held")
