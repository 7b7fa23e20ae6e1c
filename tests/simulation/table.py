"""The table of mutants in the reference: read, and written again."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

REFERENCE = Path(__file__).parents[2] / "docs" / "reference" / "mutants.md"
HEAD = (
    "| mutant | what is left out | database | invariant | seed | unit tests | calm nights |\n"
    "| --- | --- | --- | --- | ---: | --- | --- |\n"
)
_ROW = re.compile(
    r"^\| `(\w+)` \| (.+?) \| (\w+) \| (\S+) \| (\S+) \| (\S+) \| (\S+) \|$", re.MULTILINE
)
_PLACES = {"sqlite": "SQLite", "postgresql": "PostgreSQL"}
_OPEN = "?"


@dataclass(frozen=True, slots=True)
class Row:
    """What is recorded of a mutant; None: it was not tried, or not found."""

    name: str
    words: str
    database: str
    invariant: str | None = None
    seed: int | None = None
    unit_tests: bool | None = None
    calm_night: bool | None = None

    def __str__(self) -> str:
        seed = _OPEN if self.seed is None else f"{self.seed:,}"
        place = _PLACES[self.database]
        told = [_said(self.unit_tests), _said(self.calm_night)]
        cells = [f"`{self.name}`", self.words, place, self.invariant or _OPEN, seed, *told]
        return f"| {' | '.join(cells)} |"


def recorded() -> dict[str, Row]:
    """The rows of the reference, by the mutant's name."""
    names = {shown: name for name, shown in _PLACES.items()}
    return {
        name: Row(
            name,
            words,
            names[place],
            None if invariant == _OPEN else invariant,
            None if seed == _OPEN else int(seed.replace(",", "")),
            _meant(unit_tests),
            _meant(calm_night),
        )
        for name, words, place, invariant, seed, unit_tests, calm_night in _ROW.findall(
            REFERENCE.read_text("utf-8")
        )
    }


def record(rows: list[Row]) -> None:
    """Put these rows in place of those in the reference."""
    text = REFERENCE.read_text("utf-8")
    begin = text.index("| mutant |")
    end = text.find("\n\n", begin)
    rest = text[end:] if end >= 0 else "\n"
    REFERENCE.write_text(text[:begin] + HEAD + "\n".join(map(str, rows)) + rest, "utf-8")


def _said(passes: bool | None) -> str:
    return _OPEN if passes is None else ("pass" if passes else "fail")


def _meant(text: str) -> bool | None:
    return {"pass": True, "fail": False}.get(text)
