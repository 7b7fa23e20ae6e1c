"""Reads CSV by the rules of Python's csv module, with the exact byte at which each record begins."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retoma.errors import NeedsPerson, UsageError
from retoma.readers.encoding import plain_encoding, text_of
from retoma.readers.file import FileReader
from retoma.readers.lines import Lines
from retoma.readers.record import BadRecord, Record, place


@dataclass(frozen=True, kw_only=True)
class CsvReader(FileReader):
    r"""The rows of CSV files: each a ``Record`` of texts.

    ``columns`` None: the first row of each file names them; else no file has such a row, and these
    are the names. A field may be quoted with ``"`` and then hold delimiters, line ends and doubled
    quotes. With ``splits`` the author says that no quoted field holds a line end: one file is read
    by several slots, and a quote that is still open at the end of its line makes a bad record.

    A row with more or fewer fields, with quotes that are not CSV, NUL, or bytes that are not of the
    ``encoding`` is a ``BadRecord``. Blank lines are passed over. Raises ``UsageError`` for an
    encoding in which lines can't be told by bytes.
    """

    columns: tuple[str, ...] | None = None
    delimiter: str = ","
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", plain_encoding(self.encoding))
        if len(self.delimiter) != 1 or not self.delimiter.isascii() or self.delimiter in '"\r\n\0':
            raise UsageError(f"delimiter {self.delimiter!r}: it must be one ASCII character")
        if self.columns is not None:
            _require_names(self.columns, "columns")

    def _head(self, lines: Lines) -> Mapping[str, Any]:
        if self.columns is not None:
            return {"columns": self.columns}
        for names in self._rows(lines):
            where = place(lines.name, lines.number, lines.start)
            if isinstance(names, BadRecord):
                raise NeedsPerson(f"the row of column names can't be read: {names}")
            _require_names(names, where)
            return {"columns": names}
        return {"columns": ()}

    def _records(self, lines: Lines, head: Mapping[str, Any]) -> Iterator[Record | BadRecord]:
        names = head["columns"]
        width, name = len(names), lines.name
        for row in self._rows(lines):
            if isinstance(row, BadRecord):
                yield row
            elif len(row) != width:
                yield lines.bad("COLUMN_COUNT", f"{len(row)} columns instead of {width}")
            else:
                record = Record(zip(names, row, strict=True))
                record.file, record.offset, record.line = name, lines.start, lines.number
                yield record

    def _rows(self, lines: Lines) -> Iterator[list[str] | BadRecord]:
        """The fields of each record that is not blank."""
        # The module's limit is the process's; a record that it breaks off would be read on inside.
        csv.field_size_limit(max(csv.field_size_limit(), self.longest_record))
        text = _Text(lines, self.encoding, ends_with_line=self.splits)
        reader = csv.reader(text, delimiter=self.delimiter, strict=True)
        while lines.begin():
            text.begin()
            try:
                row = next(reader)
            except StopIteration:
                return
            except (csv.Error, _StillOpen) as error:
                if not self.splits:
                    self._pass_over(lines, text)
                yield lines.bad("MALFORMED", _WORDS.get(str(error)[:8], f"not CSV: {error}"))
                continue
            if text.fault is not None:
                yield lines.bad(*text.fault)
            elif row:
                yield row

    def _pass_over(self, lines: Lines, text: _Text) -> None:
        """Go behind a record that is not CSV: to where a reader that forgives it sees its end.

        Going on with its next line instead could read the inside of a quoted text as a record.
        """
        lines.back()
        text.begin(forgives=True)
        next(csv.reader(text, delimiter=self.delimiter))


# By the beginning of what the csv module says, which is meant for programmers.
_WORDS = {
    "unexpect": "a quoted field is not closed",
    "new-line": "a carriage return outside quotes ends no line",
}


class _StillOpen(Exception):
    """A quoted field goes on in the next line, where no field may."""


class _Text:
    """The lines as text for the csv module, which asks for as many as a record takes."""

    def __init__(self, lines: Lines, encoding: str, *, ends_with_line: bool) -> None:
        self._lines = lines
        self._encoding = encoding
        self._ends_with_line = ends_with_line
        self._forgives = False
        self._is_fresh = True
        self.fault: tuple[str, str] | None = None

    def begin(self, *, forgives: bool = False) -> None:
        """The next line is the first one of a record."""
        self._is_fresh = True
        self._forgives = forgives
        self.fault = None

    def __iter__(self) -> _Text:
        return self

    def __next__(self) -> str:
        if self._ends_with_line and not self._is_fresh:
            raise _StillOpen("a quoted field is not closed in its line")
        self._is_fresh = False
        at = self._lines.end
        raw = self._lines.next()
        if not raw:
            raise StopIteration
        text = text_of(raw, self._encoding, at)
        if isinstance(text, tuple):
            self.fault = self.fault or text
            text = raw.replace(b"\0", b"?").decode(self._encoding, "replace")
        # A CR that ends no line is refused by the module even when it forgives.
        return text.replace("\r", " ") if self._forgives else text


def _require_names(names: tuple[str, ...] | list[str], where: str) -> None:
    twice = {name for name in names if names.count(name) > 1}
    if twice or not names:
        what = f"the name {min(twice)!r} stands there twice" if twice else "there are no names"
        raise NeedsPerson(f"{where}: {what}, so fields can't be told by their column's name")
