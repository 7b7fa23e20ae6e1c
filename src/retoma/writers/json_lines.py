"""Writes JSON lines, with exact numbers."""

from __future__ import annotations

import json
import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any

from retoma.writers.file import FileWriter, encoded

# The json module has no way to write a Decimal as a number: it is marked in a text, and bared then.
_MARK = secrets.token_hex(16)


@dataclass(frozen=True, kw_only=True)
class JsonLinesWriter(FileWriter):
    """One JSON object a line, in UTF-8: each row is a mapping.

    A ``Decimal`` is written as a number with just its digits, a date as its ISO text. A float is
    refused: it is not exact. So is what JSON does not know.
    """

    def _encode(self, rows: Sequence[Any]) -> bytes:
        return b"".join(_line(number, row) for number, row in enumerate(rows, start=1))


def _line(number: int, row: Any) -> bytes:
    where = f"row {number} of the chunk"
    if not isinstance(row, Mapping):
        raise TypeError(f"{where}: the job's function returned {type(row).__name__}, not a mapping")
    try:
        _refuse_floats(row)
        text = json.dumps(
            dict(row), ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain
        )
    except TypeError as error:
        raise TypeError(f"{where}: {error}") from None
    text = text.replace(f'"{_MARK}', "").replace(f'{_MARK}"', "")
    return encoded(text + "\n", "utf-8", where)


def _plain(value: Any) -> Any:
    if isinstance(value, Decimal) and value.is_finite():
        return f"{_MARK}{value}{_MARK}"
    if isinstance(value, date):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(value)
    raise TypeError(f"a {type(value).__name__} can't be written exactly")


def _refuse_floats(value: Any) -> None:
    if isinstance(value, float):
        raise TypeError("a float can't be written exactly")
    if isinstance(value, Mapping):
        for each in value.values():
            _refuse_floats(each)
    elif isinstance(value, list | tuple):
        for each in value:
            _refuse_floats(each)
