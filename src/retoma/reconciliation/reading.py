"""Open a statement file and read its records, from the start or from any position before."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from retoma.reconciliation.formats import delimited, ofx
from retoma.reconciliation.formats.delimited import DelimitedReader
from retoma.reconciliation.formats.delimited_header import find_header
from retoma.reconciliation.formats.detect import bom_length, detect_format, ofx_start
from retoma.reconciliation.formats.ofx import OfxReader
from retoma.reconciliation.formats.text import (
    HEAD_BYTES,
    FileFacts,
    count_line_ends,
    open_file,
    scan,
)
from retoma.reconciliation.statement import (
    FileHeader,
    Note,
    Notes,
    Position,
    ReadWarning,
    Record,
)
from retoma.reconciliation.wording import refusal, warning

_SAYS_UTF8 = re.compile(rb"(?:ENCODING\s*[:=]\s*\"?\s*UTF-?8|CHARSET\s*:\s*UTF-?8)", re.IGNORECASE)
_SAYS_SINGLE_BYTE = re.compile(
    rb"(?:CHARSET\s*:\s*(?:1252|8859-1|ISO-8859-1)|encoding\s*=\s*\"(?:ISO-8859-1|US-ASCII|"
    rb"windows-1252))",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class StatementFile:
    """A file that was recognised: what is known of it, and where its records begin."""

    path: Path
    report_header: FileHeader
    start: Position


def open_statement(path: Path | str) -> StatementFile:
    """Recognise a file by its content and decide its encoding; no record is read yet.

    The file is passed over once, for its hash. Raises StatementError, which says why a file is
    not read: another format, binary, empty, a directory, UTF-16.
    """
    where = Path(path)
    with open_file(where) as file:
        head = file.read(HEAD_BYTES)
        name = detect_format(head)
        facts = scan(file)
    start, warnings = _start(name, head, facts)
    header = FileHeader(name, facts.bytes, facts.sha256, facts.encoding, warnings)
    return StatementFile(where, header, start)


def iterate(
    path: Path | str, position: Position | None = None
) -> Iterator[tuple[Record, Position]]:
    """Yield each record with the position after it.

    With a position of an earlier call, exactly the records after it, with the same numbers,
    offsets and keys. Memory stays flat, whatever the size of the file. Raises StatementError if
    the file is not read, is not the one of the position by its size, or holds a record beyond
    the limit.
    """
    return read_records(path, position or open_statement(path).start, _ignore)


def read_records(
    path: Path | str, position: Position, notes: Notes
) -> Iterator[tuple[Record, Position]]:
    """As `iterate`, and tell `notes` what stands between the records, in the order of the file."""
    with open_file(Path(path)) as file:
        _check_size(file, position)
        yield from _reader(file, position, notes).read()


def _reader(file: BinaryIO, position: Position, notes: Notes) -> OfxReader | DelimitedReader:
    try:
        if position.context["format"] == "ofx":
            return OfxReader(file, position, notes)
        return DelimitedReader(file, position, notes)
    except (KeyError, ValueError):
        raise refusal("BAD_POSITION") from None


def _check_size(file: BinaryIO, position: Position) -> None:
    now = file.seek(0, 2)
    then = position.context.get("bytes")
    if now != then:
        raise refusal("FILE_CHANGED", now=now, then=then)


def _start(name: str, head: bytes, facts: FileFacts) -> tuple[Position, tuple[ReadWarning, ...]]:
    bom = bom_length(head)
    found: list[ReadWarning] = []
    if facts.encoding == "latin-1":
        found.append(warning("ENCODING_UNSURE", 1, 0))
    if name == "csv":
        header = find_header(head[bom:])
        if header is None:
            raise refusal("UNKNOWN_FORMAT")

        def keep(note: Note) -> None:
            if isinstance(note, ReadWarning):
                found.append(note)

        delimited.note_header(header, bom, keep)
        position = delimited.start_position(header, bom, facts.encoding, facts.bytes)
        return position, tuple(found)
    offset = max(ofx_start(head), 0)
    found.extend(_ofx_header_warnings(head[:offset], facts))
    line_no = 1 + count_line_ends(head[:offset])
    return ofx.start_position(offset, line_no, facts.encoding, facts.bytes), tuple(found)


def _ofx_header_warnings(header: bytes, facts: FileFacts) -> list[ReadWarning]:
    found: list[ReadWarning] = []
    if b"OFXHEADER" not in header.upper():
        found.append(warning("NO_HEADER", 1, 0))
    if not facts.is_ascii:
        contradicts = _SAYS_SINGLE_BYTE if facts.encoding == "utf-8" else _SAYS_UTF8
        if contradicts.search(header):
            found.append(warning("ENCODING_MISLABELLED", 1, 0, detail=f"read as {facts.encoding}"))
    return found


def _ignore(_: Note) -> None:
    """Whoever only wants the records has no use for notes."""
