"""Formats are told by content, and what is not read is named."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from retoma.reconciliation.formats.text import scan
from retoma.reconciliation.reading import open_statement
from retoma.reconciliation.statement import StatementError
from tests.formats.samples import ALL, RUNNING, ofx, trn, write


def refusal(path: Path) -> StatementError:
    with pytest.raises(StatementError) as caught:
        open_statement(path)
    return caught.value


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_the_name_of_a_file_is_never_asked(tmp_path: Path, path: Path) -> None:
    expected = path.suffix.removeprefix(".")
    disguised = write(tmp_path, path.read_bytes(), "statement.pdf")
    assert open_statement(disguised).report_header.format == expected


@pytest.mark.parametrize(
    ("content", "what"),
    [
        (b"PK\x03\x04....[Content_Types].xml", "Excel"),
        (b"PK\x03\x04....", "ZIP"),
        (b"\x1f\x8b\x08\x00", "gzip"),
        (b"%PDF-1.7\n", "PDF"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1", "Excel"),
        (b"00100000         2...\r\n", "CNAB 240"),
        (b"02RETORNO01COBRANCA\r\n", "CNAB 400"),
        (b"A2" + b"0" * 140 + b"      \r\n", "FEBRABAN 150"),
        (b":20:REF\r\n:25:1\r\n", "MT940"),
        (b"{1:F01AAAABB99}", "MT940"),
        (b"01,SENDER,RECEIVER,260101,0000,1,,,2/\n", "BAI2"),
        (b'<?xml version="1.0"?>\n<Document xmlns="urn:iso:std:iso:20022:camt.053">', "camt"),
        (b'<?xml version="1.0"?><other/>', "XML"),
        (b"<!DOCTYPE html><html>", "HTML"),
        (b"!Type:Bank\nD1\n", "QIF"),
        (b'[{"valor": 1}]', "JSON"),
    ],
)  # fmt: skip
def test_another_format_is_refused_by_its_name(tmp_path: Path, content: bytes, what: str) -> None:
    error = refusal(write(tmp_path, content))
    assert error.code == "NOT_READ"
    assert what in error.message
    assert error.hint


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "EMPTY_FILE"),
        (b"  \r\n\t\n", "BLANK_FILE"),
        (b"\xef\xbb\xbf", "BLANK_FILE"),
        (ofx(trn()).encode("utf-16"), "UTF16"),
        (ofx(trn()).encode("utf-16-le"), "UTF16"),
        (ofx(trn()).encode("utf-16-be"), "UTF16"),
        (b"\x00\x01\x02\x00binary", "NUL_BYTE"),
        (b"a letter, without any table\nin it\n", "UNKNOWN_FORMAT"),
        (b"x" * 5_000_000, "UNKNOWN_FORMAT"),
    ],
)
def test_what_cannot_be_read_is_told(tmp_path: Path, content: bytes, code: str) -> None:
    assert refusal(write(tmp_path, content)).code == code


def test_a_nul_byte_far_inside_is_found_with_its_place(tmp_path: Path) -> None:
    content = bytearray(ofx(trn(memo="x" * 700_000)).encode())
    content[600_000] = 0
    error = refusal(write(tmp_path, bytes(content)))
    assert (error.code, error.offset) == ("NUL_BYTE", 600_000)


def test_what_is_no_file_is_told(tmp_path: Path) -> None:
    assert refusal(tmp_path / "missing").code == "NO_SUCH_FILE"
    assert refusal(tmp_path).code == "IS_DIRECTORY"
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refusal(pipe).code == "NOT_A_FILE"


@pytest.mark.parametrize(
    ("encoding", "named"),
    [("ascii", "utf-8"), ("utf-8", "utf-8"), ("cp1252", "cp1252")],
)
def test_the_encoding_is_decided_on_the_whole_file(
    tmp_path: Path, encoding: str, named: str
) -> None:
    # The only letter that tells stands far beyond the first block.
    last = "é" if encoding != "ascii" else "e"
    path = write(tmp_path, (ofx(trn() * 9000) + last).encode(encoding))
    assert open_statement(path).report_header.encoding == named


def test_a_letter_cut_by_a_block_is_still_utf8(tmp_path: Path) -> None:
    for shift in range(4):
        path = write(tmp_path, b"a" * (2**18 - shift) + "é€".encode() * 10)
        with path.open("rb") as file:
            assert scan(file).encoding == "utf-8"


def test_bytes_that_no_windows_text_has_are_latin_1_and_said(tmp_path: Path) -> None:
    header = open_statement(write(tmp_path, RUNNING.read_bytes() + b"\x81\xe9")).report_header
    assert header.encoding == "latin-1"
    assert [one.code for one in header.warnings] == ["ENCODING_UNSURE", "PREAMBLE_SKIPPED"]
