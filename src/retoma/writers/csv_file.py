"""Writes CSV as RFC 4180 has it."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime
from decimal import Decimal
from typing import Any

from retoma.writers.file import FileWriter, encoded


def _exact(value: Decimal) -> str:
    if not value.is_finite():
        raise TypeError(f"{value} is no number")
    return format(value, "f")


_TEXTS: dict[type, Callable[[Any], str]] = {
    str: str,
    int: str,
    bool: lambda value: "true" if value else "false",
    type(None): lambda _: "",
    Decimal: _exact,
    date: date.isoformat,
    datetime: datetime.isoformat,
}


@dataclass(frozen=True, kw_only=True)
class CsvWriter(FileWriter):
    """One line a row, a tuple of one value for each of the ``columns``; lines end with CR LF.

    The first line has the columns' names, unless ``header`` is False. Fields are quoted where they
    must be. Values are texts, whole numbers, ``Decimal`` (written out, never with an exponent),
    dates, booleans (``true``, ``false``) or None (nothing). A float is refused: it is not exact.
    """

    columns: tuple[str, ...]
    delimiter: str = ","
    encoding: str = "utf-8"
    header: bool = True

    def _head(self) -> bytes:
        return encoded(self._text([self.columns]), self.encoding, "columns") if self.header else b""

    def _encode(self, rows: Sequence[Any]) -> bytes:
        texts = [self._texts(number, row) for number, row in enumerate(rows, start=1)]
        try:
            return self._text(texts).encode(self.encoding)
        except UnicodeEncodeError:
            for number, one in enumerate(texts, start=1):  # which one it is
                encoded(self._text([one]), self.encoding, f"row {number} of the chunk")
            raise

    def _texts(self, number: int, row: Any) -> list[str]:
        if not isinstance(row, tuple | list) or len(row) != len(self.columns):
            what = f"{len(row)} values" if isinstance(row, tuple | list) else type(row).__name__
            raise TypeError(
                f"row {number} of the chunk: the job's function returned {what} where a tuple of"
                f" {len(self.columns)} is written: {', '.join(self.columns)}"
            )
        try:
            return [_TEXTS[type(value)](value) for value in row]
        except (KeyError, TypeError):
            wrong = next(n for n, value in enumerate(row) if not _is_text(value))
            raise TypeError(
                f"row {number} of the chunk, column {self.columns[wrong]}:"
                f" a {type(row[wrong]).__name__} can't be written exactly"
            ) from None

    def _text(self, rows: Sequence[Sequence[str]]) -> str:
        buffer = io.StringIO()
        # With CR LF as its line end the module quotes a field that holds a lone CR or LF.
        csv.writer(buffer, delimiter=self.delimiter, lineterminator="\r\n").writerows(rows)
        return buffer.getvalue()


def _is_text(value: Any) -> bool:
    return type(value) in _TEXTS and not (isinstance(value, Decimal) and not value.is_finite())
