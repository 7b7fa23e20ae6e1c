"""The job that the reference shows is executed, as a user would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "jobs.md").read_text("utf-8")


def test_the_job_over_files_runs(tmp_path: Path) -> None:
    block = re.search(r"```python\n(# export\.py\n.*?)```", PAGE, re.DOTALL)
    assert block is not None
    code = block.group(1).replace("/tmp/", f"{tmp_path}/")
    (tmp_path / "export.py").write_text(code, encoding="utf-8")
    given = tmp_path / "in.csv"
    given.write_text("id,amount\n1,100.00\n2\n3,-1\n4,0.50\n", encoding="utf-8")
    command = [sys.executable, "-m", "retoma", "run", "fees", "--app", "export"]
    command += ["--database", f"sqlite:///{tmp_path / 'work.db'}"]
    command += ["-p", "day=2026-11-30", "-p", f"input={given}"]
    answer = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, timeout=120, check=False
    )
    assert answer.returncode == 5, answer.stdout + answer.stderr
    found = (tmp_path / "fees-2026-11-30.csv").read_bytes()
    assert found == b"id,fee\r\n1,1.50000\r\n4,0.00750\r\n"


def test_the_reference_names_every_reason_of_a_bad_record() -> None:
    folder = Path(__file__).parents[2] / "src" / "retoma" / "readers"
    code = "".join(path.read_text("utf-8") for path in folder.glob("*.py"))
    reasons = set(re.findall(r'(?:bad\(|return )"([A-Z_]{4,})"', code))
    assert len(reasons) == 6
    assert {reason for reason in reasons if f"`{reason}`" not in PAGE} == set()
