"""Time is the database's, and only few places sleep."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src" / "retoma"

# Path under src/retoma -> why it may read the machine's clock.
CLOCKS = {
    "clock.py": "the one place for it",
    "embedded.py": "it starts the database, so there is none to ask",
}
# Path under src/retoma -> why it may sleep. Everything else is a tick of somebody else's timer.
SLEEPERS = {
    "clock.py": "its wall clock sleeps for those who were given it",
    "resilience/guard.py": "it waits between two tries",
    "cluster/service.py": "the timer around every tick",
    "server_guard.py": "it waits for a server to end, with no database left to wait on",
}

WALL_CLOCKS = {
    "time.time",
    "time.time_ns",
    "datetime.now",
    "datetime.utcnow",
    "datetime.today",
    "date.today",
}
SLEEPS = {"time.sleep"}

FILES = sorted(path.relative_to(SRC).as_posix() for path in SRC.rglob("*.py"))


def calls(path: str) -> Iterator[tuple[int, str]]:
    """Line and name of each call: `a.b.c()` as `b.c`, and names bound by `from time import ...`."""
    tree = ast.parse((SRC / path).read_text("utf-8"))
    bound = {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module == "time"
        for alias in node.names
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):  # a reference counts too: it is called somewhere
            owner = node.value
            if isinstance(owner, ast.Name):
                yield node.lineno, f"{owner.id}.{node.attr}"
            elif isinstance(owner, ast.Attribute):
                yield node.lineno, f"{owner.attr}.{node.attr}"
        elif isinstance(node, ast.Name) and node.id in bound:
            yield node.lineno, bound[node.id]


@pytest.mark.parametrize("path", FILES)
def test_nobody_reads_the_wall_clock(path: str) -> None:
    found = [f"{path}:{line}: {name}" for line, name in calls(path) if name in WALL_CLOCKS]
    assert not found or path in CLOCKS, "\n".join(found)


@pytest.mark.parametrize("path", FILES)
def test_only_those_sleep_who_may(path: str) -> None:
    found = [f"{path}:{line}: {name}" for line, name in calls(path) if name in SLEEPS]
    assert not found or path in SLEEPERS, "\n".join(found)
