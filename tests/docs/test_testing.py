"""The test that the reference shows to users is executed, as a user would."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from retoma import testing

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "testing.md").read_text("utf-8")


def test_the_test_in_the_reference_passes(tmp_path: Path) -> None:
    block = re.search(r"```python\n(# test_billing\.py\n.*?)```", PAGE, re.DOTALL)
    assert block is not None
    (tmp_path / "test_billing.py").write_text(block.group(1), encoding="utf-8")
    answer = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert answer.returncode == 0, answer.stdout
    assert "2 passed" in answer.stdout


def test_the_reference_names_all_that_is_public() -> None:
    unnamed = {name for name in testing.__all__ if name not in PAGE}
    assert unnamed <= {"CrashReport"}  # what it holds is shown at work
