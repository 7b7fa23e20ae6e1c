"""A file has one screenful of ideas, and a function fits the eye."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
MOST_LINES_A_FILE = 400
MOST_LINES_A_FUNCTION = 60

# Path from the root -> why it may be longer. Keep it empty if you can.
LONG_FILES: dict[str, str] = {}
LONG_FUNCTIONS: dict[str, str] = {}

FILES = sorted(
    path.relative_to(ROOT).as_posix()
    for folder in ("src", "tests")
    for path in (ROOT / folder).rglob("*.py")
)


def functions(source: str) -> Iterator[tuple[str, int]]:
    """Every function with its number of lines, its decorators not counted."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("path", FILES)
def test_a_file_is_no_longer_than_400_lines(path: str) -> None:
    lines = len((ROOT / path).read_text("utf-8").splitlines())
    assert lines <= MOST_LINES_A_FILE or path in LONG_FILES, f"{path} has {lines} lines: split it"


@pytest.mark.parametrize("path", FILES)
def test_a_function_is_no_longer_than_60_lines(path: str) -> None:
    long = {
        f"{path}:{name}": lines
        for name, lines in functions((ROOT / path).read_text("utf-8"))
        if lines > MOST_LINES_A_FUNCTION and f"{path}:{name}" not in LONG_FUNCTIONS
    }
    assert not long, f"longer than {MOST_LINES_A_FUNCTION} lines: {long}"


def test_an_allowance_that_nobody_uses_is_withdrawn() -> None:
    assert set(LONG_FILES) <= set(FILES)
    assert {name.split(":")[0] for name in LONG_FUNCTIONS} <= set(FILES)
