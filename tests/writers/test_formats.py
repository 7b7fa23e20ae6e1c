"""What stands in the files, byte by byte, and what is refused."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma import CsvReader, CsvWriter, JsonLinesReader, JsonLinesWriter, LinesWriter
from retoma.errors import PermanentFailure
from retoma.readers.record import BadRecord
from tests.readers.reading import fields, write


def csv_writer(*columns: str, **more: Any) -> CsvWriter:
    return CsvWriter(path=lambda context: "/x", columns=columns or ("a", "b"), **more)


def json_writer() -> JsonLinesWriter:
    return JsonLinesWriter(path=lambda context: "/x")


def encode(writer: Any, *rows: Any) -> bytes:
    return writer._head() + writer._encode(rows)


def test_csv_values_are_written_exactly() -> None:
    row = ("ç", 10**30, Decimal("1E+3"), Decimal("0.10"), date(2026, 11, 30), None, True, "")
    more = (datetime(2026, 11, 30, 1, 2, 3, tzinfo=UTC),)
    names = [f"c{n}" for n in range(9)]
    assert encode(csv_writer(*names, header=False, delimiter=";"), row + more).decode() == (
        f"ç;{10**30};1000;0.10;2026-11-30;;true;;2026-11-30T01:02:03+00:00\r\n"
    )


TEXTS = st.lists(st.tuples(st.text(), st.text()), min_size=1)


@given(TEXTS)
def test_what_is_written_as_csv_is_read_the_same(
    tmp_path_factory: pytest.TempPathFactory, rows: Sequence[tuple[str, str]]
) -> None:
    rows = [tuple(value.replace("\0", "") for value in row) for row in rows]  # type: ignore[misc]
    content = encode(csv_writer(), *rows)
    path = write(tmp_path_factory.getbasetemp(), content, "written.csv")
    found = fields(lambda: CsvReader(files=lambda context: [path]))
    assert [tuple(row.values()) for row in found] == rows
    parsed = list(csv.reader(io.StringIO(content.decode(), newline=""), strict=True))
    assert [tuple(row) for row in parsed[1:]] == rows


def test_a_single_empty_field_is_no_blank_line(tmp_path: Path) -> None:
    path = write(tmp_path, encode(csv_writer("a"), ("",), (None,)))
    assert fields(lambda: CsvReader(files=lambda context: [path])) == [{"a": ""}, {"a": ""}]


REFUSED = [
    (1.5, "a float can't be written exactly"),
    (Decimal("NaN"), "a Decimal can't be written exactly"),
    (b"x", "a bytes can't be written exactly"),
]


@pytest.mark.parametrize(("value", "reason"), REFUSED)
def test_a_value_that_is_not_exact_is_refused(value: Any, reason: str) -> None:
    with pytest.raises(TypeError, match=f"row 2 of the chunk, column b: {reason}"):
        encode(csv_writer(), (1, 2), (1, value))
    for row in ({"a": value}, {"a": [{"b": value}]}):
        with pytest.raises(TypeError, match=f"row 2 of the chunk: {reason}"):
            encode(json_writer(), {}, row)


BAD = BadRecord("f", 0, 1, "MALFORMED", "bad")


@pytest.mark.parametrize("row", [(1,), (1, 2, 3), "ab", None, BAD])
def test_a_row_of_another_shape_is_refused(row: Any) -> None:
    with pytest.raises(
        TypeError, match=r"row 1 of the chunk: .* where a tuple of 2 is written: a, b"
    ):
        encode(csv_writer(), row)


@pytest.mark.parametrize("row", [(1,), "ab", None, [1]])
def test_a_row_that_is_no_mapping_is_refused(row: Any) -> None:
    with pytest.raises(TypeError, match=r"row 1 of the chunk: .* not a mapping"):
        encode(json_writer(), row)


def test_a_character_that_can_not_be_written_is_named() -> None:
    place = r"row 2 of the chunk: the character U\+20AC can't be written in iso8859-1"
    with pytest.raises(PermanentFailure, match=place):
        encode(csv_writer(encoding="iso8859-1"), ("é", "x"), ("€", "x"))
    with pytest.raises(PermanentFailure, match=r"row 1 .* U\+D800"):
        encode(json_writer(), {"a": "\ud800"})


def test_json_numbers_keep_their_digits(tmp_path: Path) -> None:
    rows = [
        {"a": Decimal("0.10"), "b": [Decimal("1E+2"), {"c": Decimal(-7)}], "d": date(2026, 1, 2)},
        {"text": 'ç\n"\\ \u2028', "n": 10**30, "none": None, "yes": True},
    ]
    content = encode(json_writer(), *rows)
    assert content.splitlines()[0] == b'{"a":0.10,"b":[1E+2,{"c":-7}],"d":"2026-01-02"}'
    path = write(tmp_path, content)
    first, second = fields(lambda: JsonLinesReader(files=lambda context: [path]))
    assert first == {"a": Decimal("0.10"), "b": [Decimal("1E+2"), {"c": -7}], "d": "2026-01-02"}
    assert second == rows[1]


def test_lines_are_what_a_function_makes_of_rows() -> None:
    def line(row: Any) -> str:
        return f"{row[0]:<5}{row[1]:>05}"

    lines = LinesWriter(path=lambda context: "/x", line=line, encoding="cp1252", end="\r\n")
    assert encode(lines, ("ção", 7), ("x", 12345)) == "ção  00007\r\nx    12345\r\n".encode(
        "cp1252"
    )
    with pytest.raises(PermanentFailure, match="row 2 of the chunk: its line holds a line end"):
        encode(lines, ("x", 1), ("a\nb", 1))
    with pytest.raises(PermanentFailure, match=r"row 1 of the chunk: the character U\+2260"):
        encode(lines, ("≠", 1))
