"""Words that do not belong in this project."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

# A module with such a name has no job of its own: it collects what nobody wanted to place.
NAMELESS = {"utils", "util", "common", "helpers", "helper", "base", "misc"}

# Pattern -> why nobody should read it here.
FORBIDDEN = {
    r"(?<![\w.])/(?:work|root|home/\w+)/": "a path of somebody's machine",
    r"(?i)\bsub-?agents?\b": "the project speaks of itself alone",
    r"\b(?:TODO|FIXME|XXX)\b": "do it, or leave it: a note to oneself is neither",
}
UNFINISHED = r"\bNotImplementedError\b"  # in src only: what is shipped is finished

# Path -> why its text is exempt.
EXEMPT = {"tests/house/test_words.py": "it names the words that it forbids"}

TEXTS = {".py", ".md", ".toml", ".mako", ".ini", ".html", ".css", ".js", ".sql", ".yml", ".yaml"}
FOLDERS = ("src", "tests", "docs", "examples", "bench", ".ci")


def texts() -> list[str]:
    found = [path for path in ROOT.iterdir() if path.is_file() and path.suffix in TEXTS]
    found += [ROOT / "Makefile", ROOT / ".ci" / "run"]
    for folder in FOLDERS:
        found += [path for path in (ROOT / folder).rglob("*") if path.suffix in TEXTS]
    return sorted({path.relative_to(ROOT).as_posix() for path in found} - set(EXEMPT))


@pytest.mark.parametrize("path", texts())
def test_no_forbidden_word_is_written(path: str) -> None:
    forbidden = dict(FORBIDDEN)
    if path.startswith("src/"):
        forbidden[UNFINISHED] = "what is shipped is finished"
    text = (ROOT / path).read_text("utf-8")
    found = [
        f"{path}:{number}: {line.strip()!r}: {why}"
        for number, line in enumerate(text.splitlines(), start=1)
        for pattern, why in forbidden.items()
        if re.search(pattern, line)
    ]
    assert not found, "\n".join(found)


def test_no_module_is_named_after_nothing() -> None:
    sources = [path for folder in ("src", "tests") for path in (ROOT / folder).rglob("*.py")]
    names = {path: {path.stem, path.parent.name} for path in sources}
    nameless = [str(path.relative_to(ROOT)) for path, own in names.items() if own & NAMELESS]
    assert sources
    assert not nameless
