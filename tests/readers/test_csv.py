"""CSV: the fields that Python's csv module finds, at exact offsets, from every record on."""

from __future__ import annotations

import csv
import io
import itertools
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma import CsvReader
from retoma.errors import NeedsPerson, PermanentFailure, UsageError
from tests.readers.reading import fields, items, pages, plans_of, processed, told, write


def reader(*paths: Path, **more: Any) -> CsvReader:
    return CsvReader(files=lambda context: paths, **more)


def read(folder: Path, content: str | bytes, **more: Any) -> list[Any]:
    path = write(folder, content)
    return fields(lambda: reader(path, **more))


def test_the_first_row_names_the_columns(tmp_path: Path) -> None:
    assert read(tmp_path, "a,b\n1,2\n3,\n") == [{"a": "1", "b": "2"}, {"a": "3", "b": ""}]


def test_given_names_mean_that_no_row_has_them(tmp_path: Path) -> None:
    assert read(tmp_path, "a;b\n1;2", columns=("x", "y"), delimiter=";") == [
        {"x": "a", "y": "b"},
        {"x": "1", "y": "2"},
    ]


def test_a_quoted_field_may_hold_anything(tmp_path: Path) -> None:
    text = 'a,b\r\n"1,\r\n""2""\n",x\r\n3,4\r\n'
    path = write(tmp_path, text)
    first, second = items(lambda: reader(path))
    assert dict(first) == {"a": '1,\r\n"2"\n', "b": "x"}
    assert (first.line, first.offset, first.file) == (2, 5, "in.txt")
    assert (second.line, second.offset) == (5, text.index("3,4"))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_line_ends_a_mark_at_the_start_and_blank_lines_change_nothing(
    tmp_path: Path, end: str
) -> None:
    text = f"\ufeffa,b{end}{end}1,2{end}3,4"
    assert read(tmp_path, text) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]
    assert read(tmp_path, text + end + end) == [{"a": "1", "b": "2"}, {"a": "3", "b": "4"}]


@pytest.mark.parametrize("content", [b"", b"\xef\xbb\xbf", b"\n\n", b"a,b\n", b"a,b"])
@pytest.mark.parametrize("splits", [False, True])
def test_a_file_without_a_record_has_none(tmp_path: Path, content: bytes, splits: bool) -> None:
    assert read(tmp_path, content, splits=splits) == []


BAD = {
    b"1": "COLUMN_COUNT",
    b"1,2,3": "COLUMN_COUNT",
    b'"1"x,2': "MALFORMED",
    b"1,a\rb": "MALFORMED",
    b"1,\xff": "WRONG_ENCODING",
    b"1,\0": "NUL_BYTE",
}


@pytest.mark.parametrize("splits", [False, True])
@pytest.mark.parametrize("line", BAD, ids=repr)
def test_a_bad_row_is_bad_and_the_rest_goes_on(tmp_path: Path, line: bytes, splits: bool) -> None:
    content = b"a,b\n0,0\n" + line + b"\n9,9\n"
    assert read(tmp_path, content, splits=splits) == [
        {"a": "0", "b": "0"},
        BAD[line],
        {"a": "9", "b": "9"},
    ]


def test_a_bad_record_is_set_aside_without_code_and_keeps_no_content(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n0,0\n529.982.247-25,\xc3\x28\n")
    for process in (
        lambda item, _: (item["a"],),
        lambda item, _: (item.get("a"),),
        lambda item, _: tuple(item.values()),
        lambda item, _: dict(item),
        lambda item, _: {**item},
        lambda item, _: "a" in item,
        lambda item, _: (bool(item), len(item)),
    ):
        page = reader(path).read(None, _context(path), {"offset": 4, "line": 1}, None, 10)
        done = processed(reader(path), page, process)
        assert len(done.rows) == 1
        (fault,) = done.faults
        assert fault.reason == "WRONG_ENCODING"
        assert fault.message == "in.txt, line 3, byte 8: byte 23 is no utf-8"
        assert fault.item_key == "in.txt @8"
        assert fault.payload == {"file": "in.txt", "line": 3, "offset": 8}
        assert "529" not in repr(page.items)


def _context(path: Path) -> Any:
    from tests.readers.reading import context_of

    return context_of(plans_of(reader(path))[0])


@pytest.mark.parametrize(
    "opening",
    ['"x"y,"\n666,666\n"', 'q\rq,"\n666,666\n"', '"\n666,666\n"z'],
)
def test_the_inside_of_a_quoted_text_is_never_a_record(tmp_path: Path, opening: str) -> None:
    assert read(tmp_path, f"a,b\n{opening}\n9,9\n") == ["MALFORMED", {"a": "9", "b": "9"}]


def test_an_open_quote_takes_the_rest_of_the_file_and_says_so(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,b\n1,2\n"3,4\n5,6\n7,8\n')
    good, bad = items(lambda: reader(path))
    assert dict(good) == {"a": "1", "b": "2"}
    assert str(bad) == (
        "in.txt, line 3, byte 8: a quoted field is not closed (the record takes 3 lines)"
    )


def test_with_splits_an_open_quote_ends_with_its_line(tmp_path: Path) -> None:
    content = 'a,b\n"3,4\n5,6\n"7,8'
    assert read(tmp_path, content, splits=True) == ["MALFORMED", {"a": "5", "b": "6"}, "MALFORMED"]


def test_a_record_beyond_the_limit_is_refused_with_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1,2\n3," + "x" * 100 + "\n")
    assert len(items(lambda: reader(path, longest_record=103))) == 2
    for bad in (path, write(tmp_path, 'a,b\n1,2\n"3,4\n' + "5,6\n" * 50, "open.txt")):
        (plan,) = plans_of(reader(bad, longest_record=102))
        one = reader(bad, longest_record=102)
        from tests.readers.reading import context_of

        assert len(one.read(None, context_of(plan), plan.low, None, 1).items) == 1
        with pytest.raises(PermanentFailure, match=r"line 3, byte 8: .* longer than 102 bytes"):
            one.read(None, context_of(plan), plan.low, None, 2)


def test_a_field_beyond_the_module_s_own_limit_is_read(tmp_path: Path) -> None:
    content = 'a,b\n1,"' + "x\n" * 100_000 + '"\n3,4\n'
    assert [len(row["b"]) for row in read(tmp_path, content)] == [200_000, 1]


@pytest.mark.parametrize("encoding", ["utf-16", "utf-7", "shift_jis", "iso2022_jp", "cp037", "x"])
def test_an_encoding_whose_lines_are_not_in_the_bytes_is_refused(encoding: str) -> None:
    with pytest.raises(UsageError, match="encoding"):
        reader(encoding=encoding)


def test_single_byte_encodings_are_read(tmp_path: Path) -> None:
    content = "a,b\nção,€\n".encode("cp1252")
    assert read(tmp_path, content, encoding="cp1252") == [{"a": "ção", "b": "€"}]
    assert read(tmp_path, content + b"\x81,\n", encoding="cp1252")[1] == "WRONG_ENCODING"
    assert read(tmp_path, content) == ["WRONG_ENCODING"]


@pytest.mark.parametrize("head", ["a,a", "x,,", '"a"b,c', "a,\0"])
def test_columns_that_can_not_be_told_apart_are_refused(tmp_path: Path, head: str) -> None:
    path = write(tmp_path, head + "\n1,2\n")
    with pytest.raises(NeedsPerson, match=r"in\.txt, line 1"):
        plans_of(reader(path))


def test_utf_16_is_refused_by_its_mark(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n".encode("utf-16"))
    with pytest.raises(NeedsPerson, match="iconv"):
        plans_of(reader(path))


@pytest.mark.parametrize("delimiter", ["", ",,", '"', "\n", "\r", "é"])
def test_a_delimiter_is_one_plain_character(delimiter: str) -> None:
    with pytest.raises(UsageError, match="delimiter"):
        reader(delimiter=delimiter)


HOSTILE = b'a,b\r\n1,2\n"x\n,""y""",3\n\n4\n"5"5,"\n6,6\n"\n\xff,1\n7,"8\r\n"\r\n\n9,10\n\n'


@pytest.mark.parametrize("content", [HOSTILE, HOSTILE.rstrip(), b"\xef\xbb\xbf" + HOSTILE])
def test_taken_up_after_each_record_the_items_are_the_same(tmp_path: Path, content: bytes) -> None:
    path = write(tmp_path, content)
    whole = [told(item) for item in items(lambda: reader(path))]
    assert len(whole) == 7
    for size in range(1, 9):
        cut = items(lambda: reader(path), size)
        assert [told(item) for item in cut] == whole
        assert [item.line for item in cut] == [2, 3, 6, 7, 10, 11, 14]


PIECES = st.sampled_from(["a", "b", "é", ",", '"', '""', "\n", "\r\n", " ", "1", "\r", '"\n', ',"'])


@given(st.lists(PIECES, max_size=30).map("".join), st.integers(1, 4))
def test_whatever_csv_makes_of_a_text_is_what_is_read(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "property.csv"
    write(path.parent, text, path.name)
    names = ("x", "y")
    found = items(lambda: reader(path, columns=names), size)
    good = [list(item.values()) for item in found if told(item)[1].__class__ is dict]
    assert [item.offset for item in found] == sorted({item.offset for item in found})
    try:
        rows = list(csv.reader(io.StringIO(text, newline="\n"), strict=True))
    except csv.Error:
        assert any(told(item)[1] == "MALFORMED" for item in found)
        for one, two in itertools.pairwise([*found, None]):
            if told(one)[1].__class__ is dict:
                part = text.encode()[one.offset : None if two is None else two.offset].decode()
                rows = [row for row in csv.reader(io.StringIO(part, newline="\n")) if row]
                assert rows == [list(one.values())]
        return
    assert good == [row for row in rows if len(row) == 2]
    assert len(found) == len([row for row in rows if row])


def test_two_files_of_one_name_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "x").mkdir()
    first, second = write(tmp_path, "a\n1\n"), write(tmp_path / "x", "a\n2\n")
    found = items(lambda: reader(first, second))
    assert [item.file for item in found] == [str(first), str(second)]
    assert len({reader(first).key_of(item) for item in found}) == 2


def test_a_chunk_holds_its_records_only(tmp_path: Path) -> None:
    path = write(tmp_path, "a\n" + "1\n" * 25)
    assert [len(page.items) for page in pages(lambda: reader(path), 10)] == [10, 10, 5]
