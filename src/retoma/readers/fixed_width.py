"""Reads lines whose columns stand at fixed places."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from retoma.errors import UsageError
from retoma.readers.encoding import plain_encoding, text_of
from retoma.readers.file import FileReader
from retoma.readers.lines import Lines
from retoma.readers.record import BadRecord, Record


@dataclass(frozen=True, kw_only=True)
class FixedWidthReader(FileReader):
    """The lines of files of fixed width: each a ``Record`` of texts, with their blanks.

    ``columns`` are the columns' names with start and width, counted as the descriptions of such
    files count: from 1, in characters of the ``encoding``. Columns may overlap or leave gaps, as
    where a file has several kinds of lines. ``length`` is how long each line is, in characters and
    without its line end: a line of another length is a ``BadRecord``, for a character too many
    would move all that follows it. So are NUL and bytes that are not of the encoding. Empty lines
    are passed over. ``splits`` is always sound. Raises ``UsageError`` for columns beyond the line.
    """

    columns: Mapping[str, tuple[int, int]]
    length: int
    encoding: str = "utf-8"

    def __post_init__(self) -> None:
        object.__setattr__(self, "encoding", plain_encoding(self.encoding))
        for name, (start, width) in self.columns.items():
            if start < 1 or width < 1 or start + width - 1 > self.length:
                raise UsageError(
                    f"column {name!r}, {width} characters from {start} on, is not within a line of"
                    f" {self.length} characters, the first of which is 1"
                )

    def _records(self, lines: Lines, head: Mapping[str, Any]) -> Iterator[Record | BadRecord]:
        cuts = [
            (n, slice(start - 1, start - 1 + width)) for n, (start, width) in self.columns.items()
        ]
        name, length, encoding = lines.name, self.length, self.encoding
        while lines.begin():
            raw = lines.next().removesuffix(b"\n").removesuffix(b"\r")
            if not raw:
                continue
            text = text_of(raw, encoding, lines.start)
            if isinstance(text, tuple):
                yield lines.bad(*text)
            elif len(text) != length:
                yield lines.bad("LENGTH", f"{len(text)} characters instead of {length}")
            else:
                record = Record([(column, text[cut]) for column, cut in cuts])
                record.file, record.offset, record.line = name, lines.start, lines.number
                yield record
