"""Imports only go down, and each library has the packages that may know it.

The order of the packages is a contract in pyproject.toml, checked by import-linter. What that tool
cannot say while packages come and go, or says only for installed libraries, is checked here.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SRC = ROOT / "src"

# Library -> the packages and modules of retoma that may import it.
LIBRARIES = {
    "sqlalchemy": {"store", "readers", "writers", "operations", "reconciliation", "testing"},
    "alembic": {"store"},
    "psycopg": {"store", "testing"},
    "pymysql": {"store", "testing"},
    "sqlite3": {"store", "testing"},
    "greenlet": {"testing"},
    "click": {"cli", "reconciliation"},
    "rich": {"cli", "reconciliation"},
    "starlette": {"console"},
    "uvicorn": {"console"},
    "opentelemetry": {"telemetry"},
    "prometheus_client": {"telemetry"},
    "polars": {"readers", "writers", "engine"},
    "pyarrow": {"readers", "writers", "engine"},
    "pytest": {"testing"},
    "hypothesis": {"testing"},
}
# They are used before anything is installed, or from outside the package: standard library only.
STANDARD_LIBRARY_ONLY = {"embedded", "server_guard"}
# The flagship application stands where a user's job stands.
APPLICATION = "reconciliation"
# What it may import of retoma, beside its own modules.
PUBLIC = {
    "retoma": "the public names",
    "retoma.embedded": "the demo's own database server, which stands beside the framework",
}

FILES = sorted(path.relative_to(SRC).as_posix() for path in (SRC / "retoma").rglob("*.py"))


def place_of(path: str) -> str:
    """The package, or the single module, directly under retoma."""
    return path.split("/")[1].removesuffix(".py")


def imports_of(path: str) -> Iterator[tuple[int, str]]:
    """Line and module of each import."""
    for node in ast.walk(ast.parse((SRC / path).read_text("utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            yield node.lineno, node.module


def test_imports_only_go_down() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    answer = subprocess.run(
        [lint_imports, "--no-cache"], capture_output=True, text=True, cwd=ROOT, check=False
    )
    assert answer.returncode == 0, answer.stdout + answer.stderr
    assert "Contracts: 2 kept, 0 broken" in answer.stdout


@pytest.mark.parametrize("path", FILES)
def test_a_library_is_known_only_where_it_belongs(path: str) -> None:
    place = place_of(path)
    strays = []
    for line, name in imports_of(path):
        top = name.partition(".")[0]
        if top == "retoma" or top in sys.stdlib_module_names - {"sqlite3"}:
            continue
        if place in STANDARD_LIBRARY_ONLY or place not in LIBRARIES.get(top, set()):
            owners = LIBRARIES.get(top, "nobody")
            strays.append(f"{path}:{line}: {name} may be imported by {owners}")
    assert not strays, "\n".join(strays)


def test_the_application_uses_only_public_names() -> None:
    inner = [
        f"{path}:{line}: {name}"
        for path in FILES
        if place_of(path) == APPLICATION
        for line, name in imports_of(path)
        if name.startswith("retoma.") and not name.startswith(f"retoma.{APPLICATION}")
        if name not in PUBLIC
    ]
    assert not inner, f"only {', '.join(PUBLIC)} is public:\n" + "\n".join(inner)
