"""The demo kills for real, ends what it started, and believes only the proof."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from array import array
from pathlib import Path
from typing import Any

import pytest

from retoma import RetomaError, UsageError
from retoma.reconciliation import demo_night
from retoma.reconciliation.demo import Plan, run_demo
from retoma.reconciliation.demo_display import PlainLines
from retoma.reconciliation.demo_job import traced_job
from retoma.reconciliation.demo_trace import SideFile, chunks_with, last_item, rework_of

PROGRAM = "import sys; from retoma.reconciliation.demo_command import demo; sys.exit(demo.main("
PROGRAM += "args=sys.argv[1:], standalone_mode=False))"


def side_file(directory: Path, name: str, *ids: int, torn: bytes = b"") -> Path:
    path = directory / name
    path.write_bytes(array("q", ids).tobytes() + torn)
    return path


def test_a_side_file_tells_what_was_seen_twice(tmp_path: Path) -> None:
    side_file(tmp_path, "1.1", 10, 11, 12)
    side_file(tmp_path, "2.2", 12, 13, 12, 11, torn=b"\1\2")
    side_file(tmp_path, "3.3")
    found = rework_of(tmp_path)
    assert (found.items_seen, found.items_recomputed) == (7, 3)
    assert sorted(found.repeated_ids) == [11, 12]


def test_nothing_seen_is_nothing_repeated(tmp_path: Path) -> None:
    assert rework_of(tmp_path).items_recomputed == 0


def test_ids_that_lie_too_far_apart_are_refused(tmp_path: Path) -> None:
    side_file(tmp_path, "1.1", 1, 2**62)
    with pytest.raises(UsageError, match="too far apart"):
        rework_of(tmp_path)


def test_the_last_item_is_the_last_whole_one(tmp_path: Path) -> None:
    assert last_item(side_file(tmp_path, "1.1", 5, -6, torn=b"\1")) == -6
    assert last_item(side_file(tmp_path, "1.2", torn=b"\1")) is None


def test_a_chunk_holds_what_is_above_its_start_up_to_its_end() -> None:
    ranges = [(0, 10), (10, 20), (30, 40)]
    assert chunks_with([10], ranges) == 1
    assert chunks_with([1, 10, 11], ranges) == 2
    assert chunks_with([0, 25, 30, 41], ranges) == 0


def test_an_item_is_noted_before_anything_else(tmp_path: Path) -> None:
    step: Any = traced_job(SideFile(tmp_path), 5).step("post")
    assert step.chunk_size == 5
    with pytest.raises(ValueError):  # the item is no row, so the rules can't read it
        step.process((7,), None)
    child = os.fork()
    if child == 0:
        step.process((8,) + (None,) * 10, None)
        os._exit(0)
    os.waitpid(child, 0)
    mine, other = f"{os.getsid(0)}.{os.getpid()}", f"{os.getsid(0)}.{child}"
    assert last_item(tmp_path / mine) == 7
    assert last_item(tmp_path / other) == 8


@pytest.mark.parametrize("wrong", [{"transactions": 0}, {"workers": 0}, {"workers": 65}])
def test_senseless_plans_are_refused(wrong: dict[str, int]) -> None:
    with pytest.raises(UsageError):
        Plan(**wrong)  # type: ignore[arg-type]


def test_a_night_is_posted_under_kills(database_url: str) -> None:
    plan = Plan(transactions=90_000, database=database_url, seed=2)
    result = run_demo(plan, PlainLines())
    assert result["is_clean"], result
    assert result["kills"] >= 2
    assert result["items_recomputed"] > 0
    assert 1 <= result["chunks_repeated"] <= result["kills"]
    assert (result["missing"], result["duplicate"], result["unexpected"]) == (0, 0, 0)
    assert result["sum_difference"] == "0.00"
    parts = ("entries", "item_errors", "deferred", "already_done")
    assert sum(result[part] for part in parts) == result["transactions"] == 90_000


def test_workers_that_can_not_work_are_told_of(
    sqlite_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(demo_night, "APP", "no_such_module")
    monkeypatch.setattr(demo_night, "_MOST_WORKERS_LOST", 2)
    with pytest.raises(RetomaError, match="no_such_module") as caught:
        run_demo(Plan(transactions=100, database=sqlite_url), PlainLines())
    assert "logs are in" in caught.value.next_step


def processes_with(text: str) -> list[int]:
    found = []
    for path in Path("/proc").glob("[0-9]*/environ"):
        try:
            if text.encode() in path.read_bytes():
                found.append(int(path.parent.name))
        except OSError:
            continue  # it is gone, or somebody else's
    return found


def test_a_signal_ends_everything_that_was_started(tmp_path: Path) -> None:
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, "--transactions", "200000"],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    until = time.monotonic() + 60
    while not list(tmp_path.glob("retoma-demo-*/traces/*")) and time.monotonic() < until:
        time.sleep(0.05)
    assert len(processes_with(str(tmp_path))) >= 3
    process.send_signal(signal.SIGTERM)
    output, _ = process.communicate(timeout=30)
    assert process.returncode != 0
    assert output == b""
    while processes_with(str(tmp_path)) and time.monotonic() < until:
        time.sleep(0.05)
    assert processes_with(str(tmp_path)) == []
    assert list(tmp_path.iterdir()) == []


def test_json_is_one_object() -> None:
    answer = subprocess.run(
        [sys.executable, "-c", PROGRAM, "--transactions", "500", "--workers", "1", "--json"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(answer.stdout)["transactions"] == 500
