"""Reader of CSV: bank statements and internal transactions, restartable at every record."""

from collections.abc import Iterator
from typing import BinaryIO, Final

from retoma.reconciliation.formats.delimited_header import Header, role_of, split_fields
from retoma.reconciliation.formats.delimited_row import Row, build_line
from retoma.reconciliation.formats.text import RECORD_LIMIT, LineReader, RawLine
from retoma.reconciliation.statement import (
    BadRecord,
    Json,
    Notes,
    Position,
    Record,
    StatementStart,
)
from retoma.reconciliation.wording import refusal, warning

# A quoted field may go over several lines; a stray quote must not swallow the rest of the file.
_MOST_LINES_QUOTED: Final = 50


def start_position(header: Header, bom: int, encoding: str, size: int) -> Position:
    """Return the position of the first row after the column names."""
    context: dict[str, Json] = {
        "format": "csv",
        "encoding": encoding,
        "bytes": size,
        "delimiter": header.delimiter,
        "columns": list(header.roles),
        "currency": header.currency,
        "record_no": 0,
        "line_no": header.line_no + 1,
    }
    return Position(bom + header.end, context)


def note_header(header: Header, bom: int, notes: Notes) -> None:
    """Tell what was odd about the lines up to the column names."""
    if header.line_no > 1:
        lines = header.line_no - 1
        notes(warning("PREAMBLE_SKIPPED", 1, bom, detail=f"{lines} lines"))
    for role in header.duplicates:
        notes(warning("DUPLICATE_COLUMN", header.line_no, bom + header.start, role))


class DelimitedReader:
    """Rows from a position on. What is odd outside the rows goes to `notes`."""

    def __init__(self, file: BinaryIO, position: Position, notes: Notes) -> None:
        context = position.context
        columns = context["columns"]
        if not isinstance(columns, list):
            raise refusal("BAD_POSITION")
        self._columns = [str(column) for column in columns]
        self._encoding = str(context["encoding"])
        self._delimiter = str(context["delimiter"])
        self._currency = str(context["currency"])
        self._record_no = int(str(context["record_no"]))
        self._line_no = int(str(context["line_no"]))
        self._fixed = dict(context)
        self._start = position.offset
        self._lines = LineReader(file, position.offset)
        self._notes = notes

    def read(self) -> Iterator[tuple[Record, Position]]:
        """Yield each record with the position after it."""
        if self._record_no == 0:
            self._notes(StatementStart(1, "", self._currency, self._line_no, self._start))
        while (line := self._lines.read()) is not None:
            row = self._row(line)
            if row is None:
                continue
            record = row if isinstance(row, BadRecord) else build_line(row)
            yield record, self._position(record.next_offset)

    def _row(self, line: RawLine) -> Row | BadRecord | None:
        """Return the row that begins with `line`, or None if nothing is to be read there."""
        line_no = self._line_no
        self._line_no += 1
        if not line.content.strip():
            return None
        fields, end = self._fields(line)
        if not line.ended and fields is not None:
            self._notes(warning("NO_FINAL_NEWLINE", line_no, line.start))
        if fields is not None and self._is_skipped(fields, line_no, line.start):
            return None
        self._record_no += 1
        if fields is None:
            return self._bad(line, line_no, "UNCLOSED_QUOTE", "a quoted field is not closed")
        problem = self._column_problem(fields, line)
        if problem:
            return self._bad(line, line_no, "COLUMN_COUNT", problem, end)
        cells = {
            role: fields[i].strip()
            for i, role in enumerate(self._columns)
            if role and i < len(fields)
        }
        short = len(fields) < len(self._columns)
        return Row(self._record_no, line.start, end, line_no, cells, self._currency, short)

    def _fields(self, line: RawLine) -> tuple[list[str] | None, int]:
        """Split a record; go on over line ends while a quote is open, or come back."""
        content, end, first_line = line.content, line.end, self._line_no
        fields = self._split(content)
        extra = 0
        while fields is None and extra < _MOST_LINES_QUOTED and len(content) < RECORD_LIMIT:
            following = self._lines.read()
            if following is None:
                break
            extra += 1
            content += b"\n" + following.content
            if b'"' in following.content:
                fields = self._split(content)
            end = following.end
        if fields is None:
            self._lines.seek(line.end)
            return None, line.end
        self._line_no = first_line + extra
        return fields, end

    def _split(self, content: bytes) -> list[str] | None:
        return split_fields(content.decode(self._encoding, "replace"), self._delimiter)

    def _is_skipped(self, fields: list[str], line_no: int, offset: int) -> bool:
        if not any(field.strip() for field in fields):
            self._notes(warning("EMPTY_ROW", line_no, offset))
            return True
        at = self._columns.index("booking_date")
        if at < len(fields) and role_of(fields[at]) == "booking_date":
            self._notes(warning("REPEATED_HEADER", line_no, offset))
            return True
        return False

    def _column_problem(self, fields: list[str], line: RawLine) -> str:
        expected, got = len(self._columns), len(fields)
        if got > expected and any(field.strip() for field in fields[expected:]):
            return f"{got} columns instead of {expected}: a separator inside a text?"
        if got >= expected:
            return ""
        missing = [role for role in self._columns[got:] if role in _NEEDED]
        if missing or not line.ended:
            return f"{got} columns instead of {expected}: the row is cut off"
        return ""

    def _bad(
        self, line: RawLine, line_no: int, code: str, message: str, end: int | None = None
    ) -> BadRecord:
        next_offset = line.end if end is None else end
        return BadRecord(self._record_no, line.start, next_offset, line_no, code, "", message)

    def _position(self, offset: int) -> Position:
        context = self._fixed | {"record_no": self._record_no, "line_no": self._line_no}
        return Position(offset, context)


_NEEDED: Final = {
    "booking_date", "amount", "debit", "credit", "direction", "maybe_direction", "currency",
    "account",
}  # fmt: skip
