"""Finds the truth of a reconciliation from files, entries, matches, breaks and ledger alone."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    Select,
    and_,
    case,
    column,
    exists,
    func,
    or_,
    select,
    table,
)

from retoma import Finding, StepContext
from retoma.reconciliation.candidates import seen_in
from retoma.reconciliation.money import format_amount
from retoma.reconciliation.statement_files import files_of
from retoma.reconciliation.statement_tables import (
    STATEMENT,
    TRANSACTIONS,
    recon_break,
    recon_entry,
    recon_file,
    recon_line,
    recon_match,
)
from retoma.reconciliation.tables import ledger_entry

_ENTRY, _MATCH, _BREAK, _LEDGER = recon_entry.c, recon_match.c, recon_break.c, ledger_entry.c
_item_error = table("batch_item_error", column("instance_id"), column("step_name"), column("kind"),
                    column("reason"))  # fmt: skip


def audit_statement(connection: Connection, context: StepContext) -> Finding:
    """What is missing, twice, or should not be there, of the instance in ``context``.

    ``missing``: lines of a file that are neither stored nor set aside, entries of the inputs that
    are neither matched nor in an open break nor a balance, matches without their ledger entry.
    ``duplicate``: entries that are matched and in an open break, or posted twice. ``unexpected``:
    matches of entries that disagree, ledger entries without a match or with another amount.
    ``sum_difference``: over accounts and currencies, the statement's sum less the transactions' sum
    less the open breaks. ``expected`` and ``found`` count the ledger entries. Only reads.
    """
    tally = _Tally(connection, context)
    tally.files()
    tally.entries()
    tally.matches()
    tally.ledger()
    return tally.finding()


_in_match = exists().where(
    or_(_MATCH.statement_entry_id == _ENTRY.id, _MATCH.transaction_entry_id == _ENTRY.id)
)
_in_open_break = exists().where(
    or_(_BREAK.entry_id == _ENTRY.id, _BREAK.other_entry_id == _ENTRY.id), _BREAK.state == "OPEN"
)


@dataclass(slots=True)
class _Tally:
    connection: Connection
    context: StepContext
    expected: int = 0
    found: int = 0
    missing: int = 0
    duplicate: int = 0
    unexpected: int = 0
    difference: int = 0
    reasons: Counter[str] = field(default_factory=Counter)
    inputs: ColumnElement[bool] | None = None

    def files(self) -> None:
        """Each file's lines, counted when it was proven, are stored or set aside."""
        stored = {}
        for one in files_of(self.context.parameters):
            statement = select(recon_file).where(
                recon_file.c.side == one.side, recon_file.c.sha256 == one.sha256
            )
            row = self.connection.execute(statement).first()
            if row is None:
                self._note("missing", "files never read", 1)
                continue
            stored[one.side, one.sha256] = row
        if stored:
            self.inputs = and_(_ENTRY.kind == "MOVEMENT", seen_in(stored))
        ids = [row.id for row in stored.values()]
        told = sum(row.movements + row.balances for row in stored.values())
        sighted = self._count(select(func.count()).where(recon_line.c.file_id.in_(ids)))
        left_out = self._count(
            select(func.count()).where(
                _item_error.c.instance_id == self.context.instance_id,
                _item_error.c.step_name == "ingest",
                _item_error.c.reason.in_(("REFUSED_BY_DATABASE", "FIELD_TOO_LONG")),
            )
        )
        self._note(
            "missing", "lines neither stored nor set aside", max(told - sighted - left_out, 0)
        )
        self._note("unexpected", "lines that no file has", max(sighted + left_out - told, 0))

    def entries(self) -> None:
        """Each entry has one outcome, and the sums agree by account and currency."""
        if self.inputs is None:
            return
        count = select(func.count()).select_from(recon_entry).where(self.inputs)
        self._note(
            "missing", "entries without an outcome",
            self._count(count.where(~_in_match, ~_in_open_break)),
        )  # fmt: skip
        self._note(
            "duplicate", "entries both matched and in an open break",
            self._count(count.where(_in_match, _in_open_break)),
        )  # fmt: skip
        for account, currency, gap in self.connection.execute(self._gaps(self.inputs)):
            if gap:
                self.difference += abs(int(gap))
                shown = format_amount(int(gap), currency)
                self.reasons[f"account …{account[-2:]} {currency}: {shown} is unexplained"] += 1

    def _gaps(self, inputs: ColumnElement[bool]) -> Select[Any]:
        """Statement less transactions less what breaks and partners outside the inputs explain."""
        signed = case((_ENTRY.side == STATEMENT, _ENTRY.amount_minor), else_=-_ENTRY.amount_minor)
        partner = recon_entry.alias("partner")
        is_partner = or_(
            and_(
                _MATCH.statement_entry_id == _ENTRY.id, _MATCH.transaction_entry_id == partner.c.id
            ),
            and_(
                _MATCH.transaction_entry_id == _ENTRY.id, _MATCH.statement_entry_id == partner.c.id
            ),
        )
        paired = select(
            case(
                (partner.c.side == STATEMENT, partner.c.amount_minor), else_=-partner.c.amount_minor
            )
        ).where(is_partner)
        explained = case(
            (_in_open_break, -signed), else_=func.coalesce(paired.scalar_subquery(), 0)
        )
        account = func.coalesce(_ENTRY.match_account, _ENTRY.account).label("account")
        currency = func.coalesce(_ENTRY.match_currency, _ENTRY.currency).label("currency")
        rows = select(account, currency, (signed + explained).label("gap")).where(inputs).subquery()
        return select(rows.c.account, rows.c.currency, func.sum(rows.c.gap)).group_by(
            rows.c.account, rows.c.currency
        )

    def matches(self) -> None:
        """The two entries of a match agree."""
        left, right = recon_entry.alias("l"), recon_entry.alias("r")
        agrees = and_(
            left.c.side == STATEMENT,
            right.c.side == TRANSACTIONS,
            left.c.amount_minor == right.c.amount_minor,
            left.c.amount_minor == _MATCH.amount_minor,
            func.coalesce(left.c.match_currency, left.c.currency)
            == func.coalesce(right.c.match_currency, right.c.currency),
        )
        joined = (
            select(func.count())
            .select_from(recon_match)
            .join(left, left.c.id == _MATCH.statement_entry_id)
            .join(right, right.c.id == _MATCH.transaction_entry_id)
            .where(_MATCH.instance_id == self.context.instance_id)
        )
        self.expected = self._count(
            select(func.count()).where(_MATCH.instance_id == self.context.instance_id)
        )
        agreeing = self._count(joined.where(agrees))
        self._note("unexpected", "matches of entries that disagree", self.expected - agreeing)

    def ledger(self) -> None:
        """Each match is posted once with its amount, and nothing else is."""
        posted = and_(
            _LEDGER.transaction_id == _MATCH.transaction_entry_id, _LEDGER.job == self.context.job
        )
        mine = _MATCH.instance_id == self.context.instance_id
        joined = (
            select(func.count()).select_from(recon_match).join(ledger_entry, posted).where(mine)
        )
        self.found = self._count(joined)
        distinct = self._count(
            select(func.count()).select_from(recon_match).where(mine, exists().where(posted))
        )
        self._note("missing", "matches without a ledger entry", self.expected - distinct)
        self._note("duplicate", "matches posted twice", self.found - distinct)
        other = or_(
            _LEDGER.amount_minor != _MATCH.amount_minor, _LEDGER.currency != _MATCH.currency
        )
        self._note(
            "unexpected", "ledger entries with another amount than their match",
            self._count(joined.where(other)),
        )  # fmt: skip
        strays = select(func.count()).where(
            _LEDGER.job == self.context.job,
            _LEDGER.reference_date == self.context.parameters["reference_date"],
            ~exists().where(_MATCH.transaction_entry_id == _LEDGER.transaction_id),
        )
        self._note("unexpected", "ledger entries without a match", self._count(strays))

    def finding(self) -> Finding:
        """All of it, in the words of ``retoma verify``."""
        return Finding(
            expected=self.expected,
            found=self.found,
            missing=self.missing,
            duplicate=self.duplicate,
            unexpected=self.unexpected,
            sum_difference=format_amount(self.difference, ""),
            notes=tuple(f"{count} {reason}" for reason, count in sorted(self.reasons.items())),
        )

    def _count(self, statement: Select[Any]) -> int:
        return int(self.connection.execute(statement).scalar_one())

    def _note(self, kind: str, reason: str, count: int) -> None:
        if count:
            setattr(self, kind, getattr(self, kind) + count)
            self.reasons[reason] += count
