"""The lists of a run as CSV files that a spreadsheet can open without running what is in them."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import retoma
from retoma import Store, UsageError
from retoma.reconciliation.statement_lists import breaks, matches

_AMOUNT: Final = re.compile(r"-?[0-9]+(\.[0-9]+)?", re.ASCII)
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r", "\n")
_AMOUNT_COLUMNS: Final = frozenset(("amount", "other_amount", "amount_at_risk"))
_MATCHES: Final = (
    "match_id", "rule", "account", "statement_date", "transaction_date", "amount", "currency",
    "statement_id", "transaction_id", "end_to_end_id", "statement_description",
    "transaction_description",
)  # fmt: skip
_BREAKS: Final = (
    "break_id", "type", "state", "side", "account", "booking_date", "amount", "currency",
    "other_amount", "other_currency", "amount_at_risk", "id", "end_to_end_id", "document_no",
    "description", "other_description",
)  # fmt: skip
_SET_ASIDE: Final = ("item_key", "reason", "field", "message", "state")


def check_directory(directory: str) -> None:
    """Make the directory; raises ``UsageError`` if that can't be."""
    try:
        Path(directory).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{directory}: the output directory can't be made: {error.strerror}",
            safe="Nothing was stored.",
        ) from None


def write_lists(store: Store, directory: str, instance_id: int, run_id: int) -> list[str]:
    """Write matches.csv, breaks.csv and set_aside.csv, each whole or not at all; their paths."""
    folder = Path(directory)
    with store.engine.connect() as connection:
        return [
            _write(folder / "matches.csv", _MATCHES, matches(connection, instance_id)),
            _write(folder / "breaks.csv", _BREAKS, breaks(connection, instance_id)),
            _write(folder / "set_aside.csv", _SET_ASIDE, retoma.item_errors(store, run_id)),
        ]


def cell(name: str, value: Any) -> str:
    """The value as text; what a spreadsheet would take for a formula is quoted with an apostrophe.

    A plain negative number in a column of amounts stays a number.
    """
    text = "" if value is None else str(value)
    if not text.startswith(_FORMULA):
        return text
    if name in _AMOUNT_COLUMNS and _AMOUNT.fullmatch(text):
        return text
    return "'" + text


def _write(path: Path, columns: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> str:
    part = path.with_name(path.name + ".part")
    with part.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(columns)
        writer.writerows([cell(name, row[name]) for name in columns] for row in rows)
    part.replace(path)
    return str(path)
