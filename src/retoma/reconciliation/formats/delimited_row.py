"""One row of a CSV, made into a statement line or a bad record with its reason."""

from dataclasses import dataclass, field
from datetime import date
from typing import Final

from retoma.reconciliation.documents import is_valid_document, normalise_document
from retoma.reconciliation.formats.dates import parse_plain_date
from retoma.reconciliation.formats.description import (
    find_end_to_end_id,
    names_balance,
    normalise_description,
)
from retoma.reconciliation.masking import shape_of
from retoma.reconciliation.money import AmountError, is_known_currency, parse_amount
from retoma.reconciliation.natural_key import has_id, natural_key
from retoma.reconciliation.statement import BadRecord, LineKind, ReadWarning, Record, StatementLine
from retoma.reconciliation.wording import warning

_DEBIT: Final = frozenset(["D", "DB", "DR", "-", "DEBITO", "DEBIT", "SAIDA", "DESPESA"])
_CREDIT: Final = frozenset(["C", "CR", "+", "CREDITO", "CREDIT", "ENTRADA", "RECEITA"])


@dataclass(slots=True)
class Row:
    """The cells of a row by their meaning, and its place in the file."""

    record_no: int
    offset: int
    next_offset: int
    line_no: int
    cells: dict[str, str]
    declared_currency: str
    is_short: bool
    warnings: list[ReadWarning] = field(default_factory=list)

    def cell(self, role: str) -> str:
        """Return the cell of that meaning, '' if there is none."""
        return self.cells.get(role, "")

    def warn(self, code: str, name: str = "") -> None:
        """Add a warning to this row."""
        self.warnings.append(warning(code, self.line_no, self.offset, name))


class _BadRowError(Exception):
    def __init__(self, code: str, field_name: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.field = field_name
        self.message = message


def build_line(row: Row) -> Record:
    """Return the line of a row; a BadRecord if its date or its amount cannot be read."""
    try:
        return _build(row)
    except _BadRowError as bad:
        return BadRecord(
            row.record_no, row.offset, row.next_offset, row.line_no,
            bad.code, bad.field, bad.message,
        )  # fmt: skip


def _build(row: Row) -> StatementLine:
    if row.is_short:
        row.warn("SHORT_ROW")
    currency = _currency(row)
    booking_date = _booking_date(row)
    description = " ".join(row.cell("description").split())
    description_norm = normalise_description(description)
    fitid, document_no = row.cell("fitid"), row.cell("document_no")
    balance = _balance(row, currency)
    kind, amount = _kind_and_amount(row, currency, description_norm, balance)
    account = row.cell("account")
    return StatementLine(
        record_no=row.record_no,
        offset=row.offset,
        next_offset=row.next_offset,
        line_no=row.line_no,
        account=account,
        currency=currency,
        booking_date=booking_date,
        value_date=_value_date(row),
        amount_minor=amount,
        kind=kind,
        fitid=fitid,
        e2e_id=row.cell("e2e_id") or find_end_to_end_id(description, fitid),
        document_no=document_no,
        description=description,
        description_norm=description_norm,
        natural_key=natural_key(
            account=account, bank_id=fitid, booking_date=booking_date, amount_minor=amount,
            currency=currency, description_norm=description_norm, reference=document_no,
        ),
        counterparty_document=_counterparty(row, document_no),
        status=row.cell("status"),
        balance_minor=amount if kind == "BALANCE" else balance,
        warnings=tuple(row.warnings),
    )  # fmt: skip


def _currency(row: Row) -> str:
    text = row.cell("currency").upper()
    if text == "R$":
        text = "BRL"
    if text and not (len(text) == 3 and text.isascii() and text.isalpha()):
        raise _BadRowError("BAD_CURRENCY", "currency", f"{shape_of(text)!r} is no currency code")
    currency = text or row.declared_currency
    if not currency:
        row.warn("NO_CURRENCY", "currency")
    elif not is_known_currency(currency):
        row.warn("UNKNOWN_CURRENCY", "currency")
    return currency


def _booking_date(row: Row) -> date:
    text = row.cell("booking_date")
    found = parse_plain_date(text)
    if found is None:
        raise _BadRowError(
            "BAD_DATE",
            "booking_date",
            f"{shape_of(text)!r} is no date written yyyy-mm-dd, dd/mm/yyyy or yyyymmdd",
        )
    return found


def _value_date(row: Row) -> date | None:
    text = row.cell("value_date")
    found = parse_plain_date(text) if text else None
    if text and found is None:
        row.warn("BAD_DATE", "value_date")
    return found


def _balance(row: Row, currency: str) -> int | None:
    text = row.cell("balance")
    if not text:
        return None
    try:
        return parse_amount(text, currency)
    except AmountError:
        row.warn("BALANCE_UNREADABLE", "balance")
        return None


def _kind_and_amount(
    row: Row, currency: str, description_norm: str, balance: int | None
) -> tuple[LineKind, int]:
    is_balance = names_balance(description_norm) and not has_id(row.cell("fitid"))
    has_amount = any(row.cell(role) for role in ("amount", "debit", "credit"))
    if is_balance:
        row.warn("BALANCE_LINE", "description")
        if has_amount and balance is None:
            return "BALANCE", _amount(row, currency)
        if balance is not None:
            return "BALANCE", balance
        raise _BadRowError("MALFORMED_AMOUNT", "balance", "a balance line without a balance")
    if not has_amount:
        raise _BadRowError("MALFORMED_AMOUNT", "amount", "the amount is empty")
    return "MOVEMENT", _amount(row, currency)


def _amount(row: Row, currency: str) -> int:
    debit, credit = row.cell("debit"), row.cell("credit")
    if not debit and not credit:
        amount = _parse(row.cell("amount"), "amount", currency)
        return _directed(row, amount)
    out = -abs(_parse(debit, "debit", currency)) if debit else 0
    into = _parse(credit, "credit", currency) if credit else 0
    if (out and into) or into < 0:
        raise _BadRowError("DIRECTION", "debit", "debit and credit contradict each other")
    return out or into


def _directed(row: Row, amount: int) -> int:
    """Apply a D/C column; a credit with a minus sign is a contradiction, not a guess."""
    strict = row.cell("direction")
    word = normalise_description(strict or row.cell("maybe_direction"))
    if word in _DEBIT:
        return -abs(amount)
    if word in _CREDIT:
        if amount < 0:
            raise _BadRowError("DIRECTION", "direction", "a credit with a negative amount")
        return amount
    if "direction" in row.cells:
        raise _BadRowError("DIRECTION", "direction", f"{shape_of(strict)!r} is neither D nor C")
    return amount


def _parse(text: str, name: str, currency: str) -> int:
    try:
        return parse_amount(text, currency)
    except AmountError as error:
        raise _BadRowError(error.code, name, error.reason) from None


def _counterparty(row: Row, document_no: str) -> str:
    """Return CPF or CNPJ without mask; as written if it has no such shape, to be judged later."""
    text = row.cell("counterparty_document")
    if text or "counterparty_document" in row.cells:
        return normalise_document(text) or text
    if len(document_no) >= 11 and is_valid_document(document_no):
        return normalise_document(document_no) or ""
    return ""
