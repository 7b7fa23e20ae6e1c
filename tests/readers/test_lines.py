"""JSON lines and fixed width: one record a line, bad ones by their reason, from every record on."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from retoma import FixedWidthReader, JsonLinesReader
from retoma.errors import PermanentFailure, UsageError
from tests.readers.reading import fields, items, told, write


def json_reader(*paths: Path, **more: Any) -> JsonLinesReader:
    return JsonLinesReader(files=lambda context: paths, **more)


def fixed_reader(*paths: Path, **more: Any) -> FixedWidthReader:
    columns = {"kind": (1, 1), "name": (2, 4), "cents": (6, 3)}
    return FixedWidthReader(files=lambda context: paths, columns=columns, length=8, **more)


def test_numbers_are_exact(tmp_path: Path) -> None:
    path = write(tmp_path, '{"a": 0.10, "b": 12345678901234567890.123, "c": 7, "d": [1e2]}\n')
    (found,) = fields(lambda: json_reader(path))
    assert found == {
        "a": Decimal("0.10"),
        "b": Decimal("12345678901234567890.123"),
        "c": 7,
        "d": [Decimal("1E+2")],
    }
    assert str(found["a"]) == "0.10"
    assert type(found["c"]) is int


BAD_JSON = {
    b"{": "MALFORMED",
    b'{"a": NaN}': "MALFORMED",
    b'{"a": -Infinity}': "MALFORMED",
    b'{"a": 1, "a": 2}': "MALFORMED",
    b'{"a": {"b": 1, "b": 1}}': "MALFORMED",
    b'{"a": 1} {"a": 2}': "MALFORMED",
    b'{"a": 1e99999999999999999999}': "MALFORMED",
    b'{"a": ' + b"9" * 5000 + b"}": "MALFORMED",
    b'{"a": ' + b"[" * 100_000 + b"}": "MALFORMED",
    b"[1]": "NO_OBJECT",
    b"null": "NO_OBJECT",
    b'{"a": "\xff"}': "WRONG_ENCODING",
    b'{"a": "\0"}': "NUL_BYTE",
}


@pytest.mark.parametrize("line", BAD_JSON, ids=lambda line: repr(line[:30]))
def test_a_line_that_is_no_object_is_bad_and_the_rest_goes_on(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, b'{"a": 1}\n' + line + b'\r\n\n  \n{"a": 2}')
    assert fields(lambda: json_reader(path)) == [{"a": 1}, BAD_JSON[line], {"a": 2}]


def test_a_bad_line_shows_nothing_of_itself(tmp_path: Path) -> None:
    path = write(tmp_path, '{"529.982.247-25": 1, "529.982.247-25": 2}\n{"card": 4111111111111111')
    assert [str(item) for item in items(lambda: json_reader(path))] == [
        "in.txt, line 1, byte 0: not read as JSON: an object has a name twice",
        "in.txt, line 2, byte 43: not JSON: Expecting ',' delimiter at character 26",
    ]


def test_columns_are_cut_by_characters_with_their_blanks(tmp_path: Path) -> None:
    path = write(tmp_path, "\ufeffHçã€ 007\r\nT    123")
    assert fields(lambda: fixed_reader(path)) == [
        {"kind": "H", "name": "çã€ ", "cents": "007"},
        {"kind": "T", "name": "    ", "cents": "123"},
    ]


BAD_FIXED = {
    b"Hxxxx12": "LENGTH",
    b"Hxxxx1234": "LENGTH",
    b" ": "LENGTH",
    b"Hxx\xff\xff123": "WRONG_ENCODING",
    b"Hxx\x00\x00123": "NUL_BYTE",
}


@pytest.mark.parametrize("line", BAD_FIXED, ids=repr)
def test_a_line_that_does_not_fit_is_bad_and_the_rest_goes_on(tmp_path: Path, line: bytes) -> None:
    path = write(tmp_path, b"Axxxx111\n" + line + b"\n\nBxxxx222\n")
    kinds = [told(item)[1] for item in items(lambda: fixed_reader(path))]
    assert [kinds[0]["kind"], kinds[1], kinds[2]["kind"]] == ["A", BAD_FIXED[line], "B"]


@pytest.mark.parametrize("column", [(0, 1), (1, 0), (8, 2), (9, 1)])
def test_a_column_is_within_the_line(column: tuple[int, int]) -> None:
    with pytest.raises(UsageError, match="column 'x'"):
        FixedWidthReader(files=lambda context: [], columns={"x": column}, length=8)


MIXED = (
    b'\xef\xbb\xbf{"a": "x"}\n\n[]\r\n{"a": "\xc3\xa9"}\n{\n   \n{"a": "'
    + b"y" * 50
    + b'"}\n{"a": 0}'
)


def test_taken_up_after_each_line_the_items_are_the_same(tmp_path: Path) -> None:
    path = write(tmp_path, MIXED)
    whole = [(told(item), item.line) for item in items(lambda: json_reader(path))]
    assert [line for _, line in whole] == [1, 3, 4, 5, 7, 8]
    for size in range(1, 7):
        assert [(told(i), i.line) for i in items(lambda: json_reader(path), size)] == whole


@pytest.mark.parametrize("size", [1, 2, 3, 100])
@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 200])
def test_cut_at_line_ends_the_items_are_the_same(
    tmp_path: Path, size: int, partitions: int
) -> None:
    path = write(tmp_path, MIXED)
    whole = [told(item) for item in items(lambda: json_reader(path))]
    cut = items(lambda: json_reader(path, splits=True), size, partitions)
    assert [told(item) for item in cut] == whole
    assert {item.line for item in cut} == {None}


def test_any_range_of_bytes_holds_the_records_that_begin_in_it(tmp_path: Path) -> None:
    from tests.readers.reading import context_of, plans_of

    path = write(tmp_path, MIXED)
    reader = json_reader(path, splits=True)
    (plan,) = plans_of(reader)
    context = context_of(plan)
    whole = [told(item) for item in items(lambda: json_reader(path))]
    for middle in range(plan.low + 1, plan.high):
        halves = [(plan.low, middle), (middle, plan.high)]
        found = [reader.read(None, context, *half, 9).items for half in halves]
        assert [told(item) for half in found for item in half] == whole


def test_a_huge_line_is_refused_with_its_place_in_flat_memory(tmp_path: Path) -> None:
    import tracemalloc

    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(b'{"a": 1}\n')
        file.truncate(1 << 30)  # a line of a gigabyte, without its bytes on the disk
    reader = json_reader(path)
    tracemalloc.start()
    try:
        with pytest.raises(PermanentFailure, match=r"line 2, byte 9: .* longer than 1048576 bytes"):
            items(lambda: reader)
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_a_file_that_is_only_line_ends_is_passed_over_in_flat_memory(tmp_path: Path) -> None:
    path = write(tmp_path, b"\n" * 100_000)
    assert items(lambda: json_reader(path), 10) == []
