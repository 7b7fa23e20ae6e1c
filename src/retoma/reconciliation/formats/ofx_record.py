"""One STMTTRN of OFX, made into a statement line or a bad record with its reason."""

import re
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from retoma.reconciliation.formats.dates import parse_ofx_date
from retoma.reconciliation.formats.description import (
    find_end_to_end_id,
    names_balance,
    normalise_description,
)
from retoma.reconciliation.formats.markup import decode_text
from retoma.reconciliation.masking import shape_of
from retoma.reconciliation.money import AmountError, is_known_currency, parse_amount
from retoma.reconciliation.natural_key import has_id, natural_key
from retoma.reconciliation.statement import (
    BadRecord,
    EmptyRecord,
    LineKind,
    ReadWarning,
    Record,
    StatementLine,
)
from retoma.reconciliation.wording import warning

FIELDS: Final = frozenset(
    b"TRNTYPE DTPOSTED DTAVAIL VALUEDATE TRNAMT FITID CHECKNUM REFNUM NAME MEMO CURSYM".split()
)
_JOINED: Final = frozenset((b"NAME", b"MEMO"))
_ONCE: Final = frozenset((b"TRNAMT", b"DTPOSTED"))
_MOST_TEXT: Final = 1 << 16

_DEBIT: Final = frozenset(["DEBIT", "FEE", "SRVCHG", "PAYMENT", "CHECK", "DIRECTDEBIT", "OUT"])
_CREDIT: Final = frozenset(["CREDIT", "DIV", "DEP", "DIRECTDEP", "IN"])
_TYPES: Final = (_DEBIT | _CREDIT) - {"IN", "OUT"} | frozenset(
    ["INT", "ATM", "POS", "XFER", "CASH", "REPEATPMT", "HOLD", "OTHER"]
)
# Payments to a card and refunded fees bear the "wrong" sign rightly; only these two never do.
_STRICT_SIGN: Final = {"DEBIT": 1, "CREDIT": -1}
_CURRENCY = re.compile(r"[A-Z]{3}", re.ASCII)


@dataclass(slots=True)
class RawRecord:
    """The fields of one STMTTRN as they come, and where it stands."""

    record_no: int
    offset: int
    line_no: int
    account: str
    currency: str
    encoding: str
    values: dict[bytes, bytes] = field(default_factory=dict)
    inside: bytes = b""
    conflict: str = ""
    warnings: list[ReadWarning] = field(default_factory=list)

    def add(self, name: bytes, text: bytes) -> None:
        """Keep a field. Names and memos that repeat are joined; else the first one counts."""
        text = text.strip()
        known = self.values.get(name)
        if not known:
            self.values[name] = text[:_MOST_TEXT]
        elif not text or text == known:
            return
        elif name in _JOINED:
            self.values[name] = (known + b" " + text)[:_MOST_TEXT]
        elif name in _ONCE:
            self.conflict = name.decode()
        else:
            self.warn("DUPLICATE_FIELD", name.decode())

    def warn(self, code: str, name: str = "") -> None:
        """Add a warning to this record."""
        self.warnings.append(warning(code, self.line_no, self.offset, name))

    def bad(self, next_offset: int, code: str, name: str, message: str) -> BadRecord:
        """Return this record as one that could not be read."""
        return BadRecord(
            self.record_no, self.offset, next_offset, self.line_no, code, name, message
        )

    def take(self, name: bytes) -> str:
        """Return a field as text, '' if it is not there; what was odd becomes a warning."""
        raw = self.values.get(name)
        if not raw:
            return ""
        text, codes = decode_text(raw, self.encoding)
        for code in codes:
            self.warn(code, name.decode())
        return text


def build_line(raw: RawRecord, next_offset: int) -> Record:
    """Return the line, or a BadRecord if its amount or its date is missing or unreadable."""
    if not any(raw.values.values()):
        return EmptyRecord(raw.record_no, raw.offset, next_offset, raw.line_no)
    if not raw.values.get(b"TRNAMT") and not raw.values.get(b"TRNTYPE"):
        return raw.bad(next_offset, "NO_AMOUNT", "TRNAMT", "it has neither type nor amount")
    if raw.conflict:
        return raw.bad(
            next_offset, "MALFORMED_RECORD", raw.conflict, f"it has two different {raw.conflict}"
        )
    currency = _currency(raw)
    description = _description(raw)
    description_norm = normalise_description(description)
    fitid = raw.take(b"FITID")
    try:
        kind, amount, balance = _amount(raw, currency, description_norm, fitid)
    except AmountError as error:
        return raw.bad(next_offset, error.code, "TRNAMT", error.reason)
    booking_date = _booking_date(raw)
    if booking_date is None:
        shape = shape_of(raw.take(b"DTPOSTED"))
        return raw.bad(next_offset, "BAD_DATE", "DTPOSTED", f"{shape!r} is no date")
    _check_type(raw, amount, kind)
    if not has_id(fitid):
        raw.warn("NO_FITID", "FITID")
    if not raw.account:
        raw.warn("NO_ACCOUNT", "ACCTID")
    document_no = raw.take(b"CHECKNUM")
    reference = raw.take(b"REFNUM")
    return StatementLine(
        record_no=raw.record_no,
        offset=raw.offset,
        next_offset=next_offset,
        line_no=raw.line_no,
        account=raw.account,
        currency=currency,
        booking_date=booking_date,
        value_date=_value_date(raw),
        amount_minor=amount,
        kind=kind,
        fitid=fitid,
        e2e_id=find_end_to_end_id(description, fitid, reference),
        document_no=document_no or reference,
        description=description,
        description_norm=description_norm,
        natural_key=natural_key(
            account=raw.account, bank_id=fitid, booking_date=booking_date, amount_minor=amount,
            currency=currency, description_norm=description_norm,
        ),
        balance_minor=balance,
        warnings=tuple(raw.warnings),
    )  # fmt: skip


def clean_currency(text: str) -> str | None:
    """Return an upper-case three-letter code, '' for blank, None for anything else."""
    code = text.strip().upper()
    return code if not code or _CURRENCY.fullmatch(code) else None


def _currency(raw: RawRecord) -> str:
    # CURRENCY names the currency of this very amount; ORIGCURRENCY, which the reader leaves
    # out, only tells what it was converted from.
    own = clean_currency(raw.take(b"CURSYM"))
    if own is None:
        raw.warn("BAD_CURRENCY", "CURSYM")
    if own and raw.currency and own != raw.currency:
        raw.warn("CURRENCY_DIFFERS", "CURSYM")
    currency = own or raw.currency
    if not currency:
        raw.warn("NO_CURRENCY", "CURDEF")
    elif not is_known_currency(currency):
        raw.warn("UNKNOWN_CURRENCY", "CURDEF")
    return currency


def _description(raw: RawRecord) -> str:
    name = " ".join(raw.take(b"NAME").split())
    memo = " ".join(raw.take(b"MEMO").split())
    if memo.startswith(name):
        return memo
    return f"{name} {memo}" if memo else name


def _amount(
    raw: RawRecord, currency: str, description_norm: str, fitid: str
) -> tuple[LineKind, int, int | None]:
    """Return kind, amount and, for a balance line, the balance if it is readable."""
    text = raw.take(b"TRNAMT")
    if not names_balance(description_norm):
        return "MOVEMENT", parse_amount(text, currency), None
    if text in ("", ".", ","):
        raw.warn("BALANCE_LINE", "TRNAMT")
        return "BALANCE", 0, None
    amount = parse_amount(text, currency)
    if not has_id(fitid):
        raw.warn("BALANCE_LINE", "FITID")
        return "BALANCE", amount, amount
    raw.warn("LOOKS_LIKE_BALANCE", "FITID")
    return "MOVEMENT", amount, None


def _booking_date(raw: RawRecord) -> date | None:
    found, is_regular = parse_ofx_date(raw.take(b"DTPOSTED"))
    if found is not None and not is_regular:
        raw.warn("DATE_FORMAT", "DTPOSTED")
    return found


def _value_date(raw: RawRecord) -> date | None:
    for name in (b"DTAVAIL", b"VALUEDATE"):
        text = raw.take(name)
        if text:
            found, _ = parse_ofx_date(text)
            if found is None:
                raw.warn("BAD_DATE", name.decode())
            return found
    return None


def _check_type(raw: RawRecord, amount: int, kind: LineKind) -> None:
    trntype = raw.take(b"TRNTYPE").upper()
    if not trntype:
        raw.warn("NO_TRNTYPE", "TRNTYPE")
    elif trntype not in _TYPES:
        raw.warn("UNKNOWN_TRNTYPE", "TRNTYPE")
    if kind == "MOVEMENT" and amount * _STRICT_SIGN.get(trntype, 0) > 0:
        raw.warn("SIGN_DISAGREES", "TRNTYPE")
