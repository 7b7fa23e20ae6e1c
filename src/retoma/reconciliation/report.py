"""The report on one file: counts, sums, declared and computed balances, warnings, proof."""

from dataclasses import dataclass, field
from typing import Final

from retoma.reconciliation.formats.description import names_opening
from retoma.reconciliation.masking import mask_tail
from retoma.reconciliation.proof import BalanceChain, OpeningAndClosing
from retoma.reconciliation.statement import (
    AccountReport,
    BadRecord,
    DeclaredBalance,
    EmptyRecord,
    FileHeader,
    FileReport,
    Note,
    Proof,
    ReadWarning,
    Record,
    StatementLine,
    StatementStart,
    WarningCount,
)
from retoma.reconciliation.wording import warning

_EXAMPLES: Final = 3
MOST_ACCOUNTS: Final = 1000
# What casts doubt on whether all lines are there, so that nothing can be proven.
_INCOMPLETE: Final = ("NO_END_OF_FILE", "INVESTMENTS_NOT_READ", "EMPTY_RECORD")


@dataclass(slots=True)
class _Account:
    statement: int
    account: str
    currency: str
    movements: int = 0
    balances: int = 0
    sum_minor: int = 0
    chain: BalanceChain = field(default_factory=BalanceChain)
    ofx: OpeningAndClosing = field(default_factory=OpeningAndClosing)


class ReportBuilder:
    """Takes what a reader yields and notes, in order; memory does not grow with the file."""

    def __init__(self, header: FileHeader) -> None:
        self._header = header
        self._accounts: dict[tuple[int, str, str], _Account] = {}
        self._left_out = 0
        self._start = StatementStart(0, "", "", 0, 0)
        self._statements = 0
        self._records_of_statement = 0
        self._movements = 0
        self._balances = 0
        self._sums: dict[str, int] = {}
        self._empty = 0
        self._bad = 0
        self._bad_examples: list[BadRecord] = []
        self._counts: dict[str, int] = {}
        self._examples: dict[str, list[ReadWarning]] = {}
        for one in header.warnings:
            self._count(one)

    def note(self, note: Note) -> None:
        """Take what stands between the records."""
        if isinstance(note, ReadWarning):
            self._count(note)
        elif isinstance(note, StatementStart):
            self._end_statement()
            self._start = note
            self._statements += 1
            self._records_of_statement = 0
        elif isinstance(note, DeclaredBalance) and note.kind == "LEDGER":
            account = self._account(self._start.account, self._start.currency)
            if account is not None:
                account.ofx.see_ledger(note)

    def record(self, record: Record) -> None:
        """Take a line or a bad record."""
        self._records_of_statement += 1
        if isinstance(record, BadRecord):
            self._bad += 1
            if len(self._bad_examples) < _EXAMPLES:
                self._bad_examples.append(record)
            return
        if isinstance(record, EmptyRecord):
            self._empty += 1
            self._count(warning("EMPTY_RECORD", record.line_no, record.offset))
            return
        for one in record.warnings:
            self._count(one)
        account = self._account(record.account, record.currency)
        if record.kind == "BALANCE":
            self._balances += 1
        else:
            self._movements += 1
            total = self._sums.get(record.currency, 0)
            self._sums[record.currency] = total + record.amount_minor
        if account is not None:
            _add(account, record)

    def finish(self) -> FileReport:
        """Return the report on all that was taken."""
        self._end_statement()
        accounts = tuple(self._report(account) for account in self._accounts.values())
        proof, reason = self._overall(accounts)
        return FileReport(
            header=self._header,
            statements=self._statements,
            accounts=accounts,
            accounts_left_out=self._left_out,
            movements=self._movements,
            balances=self._balances,
            empty_records=self._empty,
            bad_records=self._bad,
            bad_examples=tuple(self._bad_examples),
            sums=dict(sorted(self._sums.items())),
            proof=proof,
            reason=reason,
            warnings=tuple(
                WarningCount(code, self._counts[code], tuple(self._examples[code]))
                for code in sorted(self._counts)
            ),
        )

    def _count(self, one: ReadWarning) -> None:
        self._counts[one.code] = self._counts.get(one.code, 0) + 1
        examples = self._examples.setdefault(one.code, [])
        if len(examples) < _EXAMPLES:
            examples.append(one)

    def _end_statement(self) -> None:
        if self._statements and not self._records_of_statement:
            self._count(warning("EMPTY_STATEMENT", self._start.line, self._start.offset))

    def _account(self, account: str, currency: str) -> _Account | None:
        """Return the tally of an account; None beyond the number that is kept apart."""
        key = (self._start.number, account, currency)
        found = self._accounts.get(key)
        if found is None:
            if len(self._accounts) >= MOST_ACCOUNTS:
                self._left_out += 1
                return None
            found = self._accounts[key] = _Account(*key)
        return found

    def _report(self, account: _Account) -> AccountReport:
        if self._header.format == "ofx":
            opening, closing = account.ofx.ends()
            verdict = account.ofx.verdict(account.sum_minor)
        else:
            opening, closing = account.chain.ends()
            verdict = account.chain.verdict()
        proof, reason = self._doubt() or verdict
        return AccountReport(
            statement=account.statement,
            account=mask_tail(account.account),
            currency=account.currency,
            movements=account.movements,
            balances=account.balances,
            sum_minor=account.sum_minor,
            opening_minor=opening,
            closing_minor=closing,
            computed_closing_minor=None if opening is None else opening + account.sum_minor,
            proof=proof,
            reason=reason,
        )

    def _doubt(self) -> tuple[Proof, str] | None:
        """Return why nothing can be proven, if lines may be missing."""
        if self._bad:
            return "NOT_PROVABLE", "some records could not be read"
        for code in _INCOMPLETE:
            if code in self._counts:
                return "NOT_PROVABLE", self._examples[code][0].message
        return None

    def _overall(self, accounts: tuple[AccountReport, ...]) -> tuple[Proof, str]:
        failed = [one for one in accounts if one.proof == "FAILED"]
        if failed:
            return "FAILED", failed[0].reason
        if self._left_out:
            return "NOT_PROVABLE", "it holds too many accounts to prove each"
        open_ones = [one for one in accounts if one.proof == "NOT_PROVABLE"]
        if open_ones:
            return "NOT_PROVABLE", open_ones[0].reason
        if not accounts:
            return "NOT_PROVABLE", "it holds no lines"
        return "PROVEN", accounts[0].reason


def _add(account: _Account, line: StatementLine) -> None:
    is_opening = line.kind == "BALANCE" and names_opening(line.description_norm)
    amount = 0
    if line.kind == "BALANCE":
        account.balances += 1
        if is_opening and line.balance_minor is not None:
            account.ofx.see_opening(line)
    else:
        account.movements += 1
        account.sum_minor += line.amount_minor
        amount = line.amount_minor
    account.chain.add(
        amount, line.balance_minor, line.line_no, line.booking_date, opening=is_opening
    )
