"""A transaction that is longer than the lease is no dead worker."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

JOB = """
import time
import sqlalchemy as sa
from retoma import Job, TaskStep

tables = sa.MetaData()
done = sa.Table("done", tables, sa.Column("id", sa.Integer, primary_key=True))

def work(tx, context):
    tx.insert(done, ("id",), [(1,)])
    time.sleep(9)

JOB = Job(name="long", prepare=tables.create_all, steps=(TaskStep(name="t", work=work),))
"""


def test_a_task_longer_than_the_lease_commits_on_sqlite(tmp_path: Path) -> None:
    (tmp_path / "long_job.py").write_text(JOB, encoding="utf-8")
    command = [sys.executable, "-m", "retoma", "run", "long", "--app", "long_job"]
    answer = subprocess.run(
        [*command, "--database", f"sqlite:///{tmp_path / 'work.db'}", "--slots", "2"],
        cwd=tmp_path,
        env={**os.environ, "RETOMA_ALLOW_FAULTS": "1", "RETOMA_TIME_SCALE": "0.1"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stderr
    assert "chunk.lost" not in answer.stderr
    assert "done 1" in answer.stdout
