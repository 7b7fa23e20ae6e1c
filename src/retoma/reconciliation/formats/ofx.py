"""Reader of OFX 1.x and 2.x bank and card statements, restartable after every record.

One machine over a stream of tags. It needs neither header nor end tags: a record ends where its
end tag stands or where something begins that cannot be inside it, and every guess of that sort is
a warning. Each statement of a file has its own account and currency.
"""

from collections.abc import Iterator
from typing import BinaryIO, Final

from retoma.reconciliation.formats.dates import parse_ofx_date
from retoma.reconciliation.formats.markup import Tag, decode_text, read_tags
from retoma.reconciliation.formats.ofx_record import FIELDS, RawRecord, build_line, clean_currency
from retoma.reconciliation.formats.text import count_line_ends
from retoma.reconciliation.money import AmountError, parse_amount
from retoma.reconciliation.statement import (
    BalanceKind,
    DeclaredBalance,
    Json,
    Notes,
    Position,
    Record,
    StatementStart,
)
from retoma.reconciliation.wording import warning

_STATEMENTS: Final = frozenset((b"STMTRS", b"CCSTMTRS", b"INVSTMTRS"))
_STATEMENT_ENDS: Final = frozenset(b"/" + name for name in _STATEMENTS)
_LISTS: Final = frozenset((b"BANKTRANLIST", b"INVTRANLIST"))
_LIST_ENDS: Final = frozenset(b"/" + name for name in _LISTS)
_BALANCES: Final[dict[bytes, BalanceKind]] = {b"LEDGERBAL": "LEDGER", b"AVAILBAL": "AVAILABLE"}
_BALANCE_ENDS: Final = frozenset(b"/" + name for name in _BALANCES)
_ACCOUNT: Final = {b"BANKID": 0, b"BROKERID": 0, b"BRANCHID": 1, b"ACCTID": 2}
_DATES: Final = frozenset((b"DTSERVER", b"DTSTART", b"DTEND"))
_BOUNDARIES: Final = _STATEMENTS | _STATEMENT_ENDS | _LISTS | _LIST_ENDS
_OUTSIDE_RECORD: Final = (
    _BOUNDARIES | frozenset(_BALANCES)
    | frozenset((b"STMTTRN", b"OFX", b"/OFX", b"/STMTTRNRS", b"/CCSTMTTRNRS"))
)  # fmt: skip
_INSIDE: Final = frozenset((b"CURRENCY", b"ORIGCURRENCY", b"BANKACCTTO", b"CCACCTTO"))
_INSIDE_ENDS: Final = frozenset(b"/" + name for name in _INSIDE)


def start_position(offset: int, line_no: int, encoding: str, size: int) -> Position:
    """Return the position of the `<OFX>` tag, which stands at `offset`."""
    context: dict[str, Json] = {
        "format": "ofx",
        "encoding": encoding,
        "bytes": size,
        "statement": 0,
        "account": ["", "", ""],
        "currency": "",
        "in_list": False,
        "record_no": 0,
        "line_no": line_no,
    }
    return Position(offset, context)


class OfxReader:
    """Records from a position on. What is odd outside the records goes to `notes`."""

    def __init__(self, file: BinaryIO, position: Position, notes: Notes) -> None:
        context = position.context
        account = context["account"]
        self._tags = read_tags(file, position.offset)
        self._notes = notes
        self._fixed = {name: context[name] for name in ("format", "encoding", "bytes")}
        self._encoding = str(context["encoding"])
        self._statement = int(str(context["statement"]))
        self._account = [str(part) for part in account] if isinstance(account, list) else [""] * 3
        self._currency = str(context["currency"])
        self._in_list = bool(context["in_list"])
        self._record_no = int(str(context["record_no"]))
        self._line_no = int(str(context["line_no"]))
        self._record: RawRecord | None = None
        self._balance: dict[bytes, str] | None = None
        self._balance_kind: BalanceKind = "LEDGER"
        self._balance_at = (0, 0)
        self._period_end = ""
        self._begun_at = (self._line_no, position.offset)
        self._announced = self._record_no > 0 and self._statement > 0
        self._documents = 0
        self._is_closed = False

    def read(self) -> Iterator[tuple[Record, Position]]:
        """Yield each record with the position after it."""
        for tag in self._tags:
            record = self._record
            if record is not None:
                next_offset = self._within_record(record, tag)
                if next_offset >= 0:
                    ends = count_line_ends(tag.raw[: next_offset - tag.start])
                    yield self._finish(record, next_offset, self._line_no + ends)
            if self._record is None:
                self._outside_record(tag)
            self._line_no += count_line_ends(tag.raw)
        if self._record is not None:
            yield self._cut_off(self._record)
        self._end_of_file()

    def _within_record(self, record: RawRecord, tag: Tag) -> int:
        """Take a tag into the record; return where the record ends, or -1 if it goes on."""
        name = tag.name
        if tag.stray and name != b"/STMTTRN":
            record.warn("STRAY_MARKUP", name.decode())
        if name in FIELDS:
            if name != b"CURSYM" or record.inside != b"ORIGCURRENCY":
                record.add(name, tag.text)
        elif name == b"/STMTTRN":
            return tag.tag_end
        elif name in _INSIDE:
            record.inside = name
            if name == b"CURRENCY" and tag.text.strip():
                record.add(b"CURSYM", tag.text)
        elif name in _INSIDE_ENDS:
            record.inside = b""
        elif name in _OUTSIDE_RECORD:
            record.warn("MISSING_END_TAG", "STMTTRN")
            return tag.start
        return -1

    def _finish(self, record: RawRecord, next_offset: int, line_no: int) -> tuple[Record, Position]:
        self._record = None
        context = self._fixed | {
            "statement": self._statement,
            "account": list(self._account),
            "currency": self._currency,
            "in_list": self._in_list,
            "record_no": self._record_no,
            "line_no": line_no,
        }
        return build_line(record, next_offset), Position(next_offset, context)

    def _cut_off(self, record: RawRecord) -> tuple[Record, Position]:
        # Its last field may have lost digits: an amount of a cut file is not to be believed.
        _, position = self._finish(record, self._size(), self._line_no)
        message = "the file ends in the middle of this record"
        return record.bad(self._size(), "TRUNCATED_RECORD", "STMTTRN", message), position

    def _size(self) -> int:
        return int(str(self._fixed["bytes"]))

    def _outside_record(self, tag: Tag) -> None:
        name = tag.name
        if tag.stray:
            self._warn("STRAY_MARKUP", tag, name.decode())
        if name == b"STMTTRN":
            self._begin_record(tag)
        elif name in _ACCOUNT:
            self._take_account(_ACCOUNT[name], tag)
        elif name == b"CURDEF" and self._statement:
            self._take_currency(tag)
        elif name in _BOUNDARIES:
            self._boundary(tag)
        elif name in _BALANCES:
            self._begin_balance(tag)
        elif name in _BALANCE_ENDS:
            self._end_balance()
        elif self._balance is not None and name in (b"BALAMT", b"DTASOF"):
            self._balance[name] = self._text(tag)
        elif name in _DATES:
            self._take_date(tag)
        else:
            self._document_tag(tag)

    def _boundary(self, tag: Tag) -> None:
        if tag.name in _STATEMENTS:
            self._begin_statement(tag)
        elif tag.name in _STATEMENT_ENDS:
            self._end_statement(tag)
        else:
            self._announce()
            self._in_list = tag.name in _LISTS

    def _begin_record(self, tag: Tag) -> None:
        self._announce()
        self._record_no += 1
        self._record = RawRecord(
            self._record_no, tag.start, self._line_no, self._account_key(), self._currency,
            self._encoding,
        )  # fmt: skip

    def _begin_statement(self, tag: Tag) -> None:
        if self._in_list:
            self._end_statement(tag)
        self._statement += 1
        self._account = ["", "", ""]
        self._currency, self._period_end = "", ""
        self._announced = False
        self._begun_at = (self._line_no, tag.start)
        if tag.name == b"INVSTMTRS":
            self._warn("INVESTMENTS_NOT_READ", tag)

    def _end_statement(self, tag: Tag) -> None:
        self._announce()
        if self._in_list:
            self._warn("MISSING_END_TAG", tag, "BANKTRANLIST")
            self._in_list = False
        self._end_balance()

    def _announce(self) -> None:
        """Say whose lines follow, once the account is known."""
        if not self._announced:
            self._announced = True
            account = self._account_key()
            line, offset = self._begun_at
            self._notes(StatementStart(self._statement, account, self._currency, line, offset))

    def _take_account(self, part: int, tag: Tag) -> None:
        if self._statement and not self._account[part] and not self._announced:
            self._account[part] = self._text(tag)

    def _take_currency(self, tag: Tag) -> None:
        currency = clean_currency(self._text(tag))
        if currency is None:
            self._warn("BAD_CURRENCY", tag, "CURDEF")
        self._currency = currency or ""

    def _account_key(self) -> str:
        return "/".join(part for part in self._account if part)

    def _begin_balance(self, tag: Tag) -> None:
        if self._in_list:
            self._warn("MISSING_END_TAG", tag, "BANKTRANLIST")
            self._in_list = False
        self._announce()
        self._end_balance()
        self._balance = {}
        self._balance_kind = _BALANCES[tag.name]
        self._balance_at = (self._line_no, tag.start)

    def _end_balance(self) -> None:
        if self._balance is None:
            return
        values, self._balance = self._balance, None
        line, offset = self._balance_at
        as_of, _ = parse_ofx_date(values.get(b"DTASOF", ""))
        if as_of is None:
            self._notes(warning("BAD_DATE", line, offset, "DTASOF"))
        try:
            amount = parse_amount(values.get(b"BALAMT", ""), self._currency)
        except AmountError:
            self._notes(warning("BALANCE_UNREADABLE", line, offset, "BALAMT"))
            return
        period_end, _ = parse_ofx_date(self._period_end)
        self._notes(
            DeclaredBalance(self._balance_kind, amount, self._currency, as_of, period_end, line)
        )

    def _take_date(self, tag: Tag) -> None:
        text = self._text(tag)
        if tag.name == b"DTEND":
            self._period_end = text
        if text and parse_ofx_date(text)[0] is None:
            self._warn("BAD_DATE", tag, tag.name.decode())

    def _document_tag(self, tag: Tag) -> None:
        if tag.name == b"OFX":
            self._documents += 1
            self._is_closed = False
            if self._documents == 2:
                self._warn("SEVERAL_DOCUMENTS", tag)
        elif tag.name == b"/OFX":
            self._is_closed = True
            if tag.text.strip() and b"OFX" not in tag.text:
                self._warn("TRAILING_DATA", tag)
        elif tag.name == b"SEVERITY" and tag.text.strip().upper() == b"ERROR":
            self._warn("BANK_SAYS_ERROR", tag)

    def _end_of_file(self) -> None:
        self._end_balance()
        if not self._statement and not self._record_no:
            self._notes(warning("NO_STATEMENT", self._line_no, self._size()))
        if not self._is_closed:
            self._notes(warning("NO_END_OF_FILE", self._line_no, self._size()))

    def _text(self, tag: Tag) -> str:
        return decode_text(tag.text, self._encoding)[0]

    def _warn(self, code: str, tag: Tag, field: str = "") -> None:
        self._notes(warning(code, self._line_no, tag.start, field))
