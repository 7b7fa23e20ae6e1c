"""The entries that a run looks for partners of: marked once, then read in pages by a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, case, exists, func, or_, select, update

from retoma import StepContext, Transaction
from retoma.reconciliation.account_names import resolve_account, resolve_currency
from retoma.reconciliation.match_rules import Candidate
from retoma.reconciliation.statement_reader import stored_files
from retoma.reconciliation.statement_tables import (
    STATEMENT,
    TRANSACTIONS,
    recon_break,
    recon_entry,
    recon_line,
)

PAGE = 5_000
_VALUES_A_QUERY = 1_000
_ENTRY = recon_entry.c
UNMATCHED = ("OPEN", "BREAK")
Bearing = tuple[str, str, str]


def is_input(file_ids: Sequence[int]) -> ColumnElement[bool]:
    """Whether an entry was seen in one of the files."""
    line = recon_line.c
    return exists().where(
        line.natural_key == _ENTRY.natural_key,
        line.occurrence == _ENTRY.occurrence,
        line.file_id.in_(file_ids),
        line.is_conflict == 0,
    )


def seen_in(files: dict[tuple[str, str], Any]) -> ColumnElement[bool]:
    """Whether an entry was seen in one of the run's files of its own side."""
    conditions = []
    for side in (STATEMENT, TRANSACTIONS):
        ids = [row.id for key, row in files.items() if key[0] == side]
        if ids:
            conditions.append((_ENTRY.side == side) & is_input(ids))
    return or_(*conditions)


def mark(tx: Transaction, context: StepContext) -> None:
    """Mark this run's unmatched entries, and the open breaks of the same accounts carried forward."""
    seen = seen_in(stored_files(tx, context))
    bearings = [
        tuple(row)
        for row in tx.fetch(
            "match.bearings",
            select(_ENTRY.side, _ENTRY.account, _ENTRY.currency)
            .where(_ENTRY.kind == "MOVEMENT", seen)
            .distinct(),
        )
    ]
    claim = update(recon_entry).values(
        judged_by=context.instance_id,
        state=case((_ENTRY.state == "LINKED", "BREAK"), else_=_ENTRY.state),
    )
    is_open = (_ENTRY.kind == "MOVEMENT") & _ENTRY.state.in_(("OPEN", "BREAK", "LINKED"))
    tx.change("match.mark", claim.where(is_open, seen))
    accounts = _name_accounts(tx, context, bearings)
    for part in _parts(accounts):
        account = func.coalesce(_ENTRY.match_account, _ENTRY.account)
        for column in (recon_break.c.entry_id, recon_break.c.other_entry_id):
            broken = select(column).where(recon_break.c.state == "OPEN", column.is_not(None))
            is_carried = _ENTRY.id.in_(broken) & account.in_(part)
            tx.change("match.carry", claim.where(is_open, is_carried))


def _name_accounts(
    tx: Transaction, context: StepContext, bearings: Sequence[tuple[Any, ...]]
) -> set[str]:
    """Write what the transactions' accounts and unnamed currencies stand for; all accounts named."""
    statements = {account for side, account, _ in bearings if side == STATEMENT}
    accounts = {account for account in statements if account}
    judged = _ENTRY.judged_by == context.instance_id
    for account in sorted({account for side, account, _ in bearings if side == TRANSACTIONS}):
        meant = resolve_account(account, statements)
        accounts |= {name for name in (meant, account if meant is None else "") if name}
        if meant is not None and meant != account:
            tx.change(
                "match.account",
                update(recon_entry)
                .values(match_account=meant)
                .where(judged, _ENTRY.side == TRANSACTIONS, _ENTRY.account == account),
            )
    for side in (STATEMENT, TRANSACTIONS):
        currency = resolve_currency({code for other, _, code in bearings if other != side})
        if currency is not None:
            tx.change(
                "match.currency",
                update(recon_entry)
                .values(match_currency=currency)
                .where(judged, _ENTRY.side == side, _ENTRY.currency == ""),
            )
    return accounts


def pages(
    tx: Transaction, context: StepContext, column: ColumnElement[Any], *conditions: Any
) -> Iterator[list[Candidate]]:
    """The unmatched candidates in the order of ``column``; equal values are never torn apart."""
    mine = (_ENTRY.judged_by == context.instance_id, _ENTRY.state.in_(UNMATCHED), *conditions)
    last: Any = None
    while True:
        after = () if last is None else (column > last,)
        ends = select(column).where(*mine, *after).order_by(column).limit(PAGE)
        values = tx.fetch("match.page_end", ends)
        if not values:
            return
        end = values[-1][0]
        rows = select(*COLUMNS).where(*mine, *after, column <= end).order_by(column)
        yield [candidate(row) for row in tx.fetch("match.page", rows)]
        last = end


def days(tx: Transaction, context: StepContext) -> list[Any]:
    """The booking dates of the unmatched candidates."""
    statement = (
        select(_ENTRY.booking_date)
        .distinct()
        .where(_ENTRY.judged_by == context.instance_id, _ENTRY.state.in_(UNMATCHED))
        .order_by(_ENTRY.booking_date)
    )
    return [row[0] for row in tx.fetch("match.days", statement)]


COLUMNS = (
    _ENTRY.id,
    _ENTRY.side,
    _ENTRY.natural_key,
    _ENTRY.occurrence,
    func.coalesce(_ENTRY.match_account, _ENTRY.account),
    _ENTRY.booking_date,
    _ENTRY.amount_minor,
    func.coalesce(_ENTRY.match_currency, _ENTRY.currency),
    _ENTRY.e2e_id,
    _ENTRY.fitid,
)


def candidate(row: Row[Any]) -> Candidate:
    """The row of ``COLUMNS`` as the rules see it."""
    return Candidate(*tuple(row))


def _parts(values: Iterable[str]) -> Iterator[list[str]]:
    ordered = sorted(values)
    for base in range(0, len(ordered), _VALUES_A_QUERY):
        yield ordered[base : base + _VALUES_A_QUERY]
