"""Reads JSON lines: one object a line, with exact numbers."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from retoma.readers.encoding import text_of
from retoma.readers.file import FileReader
from retoma.readers.lines import Lines
from retoma.readers.record import BadRecord, Record


@dataclass(frozen=True, kw_only=True)
class JsonLinesReader(FileReader):
    """The objects of files with one JSON object a line, in UTF-8: each a ``Record``.

    A number with a fraction or an exponent is a ``Decimal``, never a float. A line that is no JSON,
    NaN and Infinity included, that holds another thing than an object, or an object that has a name
    twice, is a ``BadRecord``. Blank lines are passed over. ``splits`` is always sound.
    """

    def _records(self, lines: Lines, head: Mapping[str, Any]) -> Iterator[Record | BadRecord]:
        decode, name = _DECODER.decode, lines.name
        while lines.begin():
            raw = lines.next()
            if raw.isspace() or not raw:
                continue
            text = text_of(raw, "utf-8", lines.start)
            if isinstance(text, tuple):
                yield lines.bad(*text)
                continue
            try:
                found = decode(text)
            except json.JSONDecodeError as error:
                yield lines.bad("MALFORMED", f"not JSON: {error.msg} at character {error.pos + 1}")
            except (ValueError, ArithmeticError, RecursionError) as error:
                yield lines.bad("MALFORMED", f"not read as JSON: {_words(error)}")
            else:
                if not isinstance(found, dict):
                    yield lines.bad("NO_OBJECT", "the line holds JSON, but no object")
                    continue
                record = Record(found)
                record.file, record.offset, record.line = name, lines.start, lines.number
                yield record


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("an object has a name twice")
    return found


def _refuse(constant: str) -> Any:
    raise ValueError(f"{constant} is no number")


def _words(error: Exception) -> str:
    """What an error says, unless it could quote the line."""
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    return "a number is out of range" if isinstance(error, ArithmeticError) else str(error)


_DECODER = json.JSONDecoder(object_pairs_hook=_object, parse_float=Decimal, parse_constant=_refuse)
