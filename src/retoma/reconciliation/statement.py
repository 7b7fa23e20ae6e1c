"""What a statement file is made of, once read: lines, bad records, positions, the report.

Amounts are signed integers of minor units (credit to the account is positive); dates are the
bank's local dates, as written; identifiers are text. Everything here is immutable.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Literal

LineKind = Literal["MOVEMENT", "BALANCE"]
Proof = Literal["PROVEN", "NOT_PROVABLE", "FAILED"]
BalanceKind = Literal["LEDGER", "AVAILABLE"]
Json = str | int | bool | None | list[str] | list[int]


class StatementError(Exception):
    """A file that cannot be read at all: what is wrong, where, and what to do about it.

    `line` counts from 1 and `offset` from 0, in bytes; both are None where no place is meant.
    The text holds no personal data.
    """

    def __init__(
        self,
        code: str,
        message: str,
        *,
        line: int | None = None,
        offset: int | None = None,
        field: str = "",
        hint: str = "",
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.line = line
        self.offset = offset
        self.field = field
        self.hint = hint


@dataclass(frozen=True, slots=True)
class ReadWarning:
    """Something odd that was understood all the same. Counted, never fatal."""

    code: str
    message: str
    line: int
    offset: int
    field: str = ""


@dataclass(frozen=True, slots=True)
class StatementLine:
    """One line of a statement, or one internal transaction: the same shape for both sides.

    The bytes [offset, next_offset) are the record. `currency` is '' when the file names none;
    nothing is assumed. `balance_minor` is the account's balance after this line, if the file
    says it; on a line of kind BALANCE it repeats the amount, and is None if that is unreadable.
    `natural_key` depends on the content only, not on the encoding, the file's name or the place.
    """

    record_no: int
    offset: int
    next_offset: int
    line_no: int
    account: str
    currency: str
    booking_date: date
    value_date: date | None
    amount_minor: int
    kind: LineKind
    fitid: str
    e2e_id: str
    document_no: str
    description: str
    description_norm: str
    natural_key: str
    counterparty_document: str = ""
    status: str = ""
    balance_minor: int | None = None
    warnings: tuple[ReadWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class BadRecord:
    """A record that could not be read: to be set aside with its reason, the file goes on."""

    record_no: int
    offset: int
    next_offset: int
    line_no: int
    code: str
    field: str
    message: str


@dataclass(frozen=True, slots=True)
class EmptyRecord:
    """A record in which no field is filled: there is nothing to read, and it is counted."""

    record_no: int
    offset: int
    next_offset: int
    line_no: int


Record = StatementLine | BadRecord | EmptyRecord


@dataclass(frozen=True, slots=True)
class Position:
    """Everything before `offset` is read; `context` (JSON) is what reading on needs to know."""

    offset: int
    context: Mapping[str, Json]


@dataclass(frozen=True, slots=True)
class StatementStart:
    """From here on lines belong to this account; a file may hold several statements."""

    number: int
    account: str
    currency: str
    line: int
    offset: int


@dataclass(frozen=True, slots=True)
class DeclaredBalance:
    """A balance that the file states apart from its lines, as of a day if it names one."""

    kind: BalanceKind
    amount_minor: int
    currency: str
    as_of: date | None
    period_end: date | None
    line: int


Note = ReadWarning | StatementStart | DeclaredBalance
Notes = Callable[[Note], None]


@dataclass(frozen=True, slots=True)
class FileHeader:
    """What is known of a file before its records are read."""

    format: str
    bytes: int
    sha256: str
    encoding: str
    warnings: tuple[ReadWarning, ...] = ()


@dataclass(frozen=True, slots=True)
class WarningCount:
    """How often a warning occurred, with its first examples."""

    code: str
    count: int
    examples: tuple[ReadWarning, ...]


@dataclass(frozen=True, slots=True)
class AccountReport:
    """One account and currency of one statement; the account is masked."""

    statement: int
    account: str
    currency: str
    movements: int
    balances: int
    sum_minor: int
    opening_minor: int | None
    closing_minor: int | None
    computed_closing_minor: int | None
    proof: Proof
    reason: str


@dataclass(frozen=True, slots=True)
class FileReport:
    """What a whole file gave: counts, sums in minor units by currency, proof, warnings."""

    header: FileHeader
    statements: int
    accounts: tuple[AccountReport, ...]
    accounts_left_out: int
    movements: int
    balances: int
    empty_records: int
    bad_records: int
    bad_examples: tuple[BadRecord, ...]
    sums: Mapping[str, int]
    proof: Proof
    reason: str
    warnings: tuple[WarningCount, ...]
