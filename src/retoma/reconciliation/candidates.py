"""The entries that a run looks for partners of: marked once, then read in pages by a column."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from sqlalchemy import ColumnElement, Row, Update, case, exists, func, null, or_, select, update

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
_VALUES_A_QUERY = 200
_ENTRY = recon_entry.c
UNMATCHED = ("OPEN", "BREAK")


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
    """Mark this run's unmatched entries, and the open breaks of the same accounts carried forward.

    What their accounts and unnamed currencies stand for is written in the same breath.
    """
    files = stored_files(tx, context)
    bearings = _bearings(tx, files)
    meanings = _meanings(bearings)
    for side in (STATEMENT, TRANSACTIONS):
        ids = [row.id for key, row in files.items() if key[0] == side]
        others = {code for other, _, code in bearings if other != side}
        for part in _parts({account for one, account, _ in bearings if one == side}):
            claim = _claim(
                context,
                match_account=_stands_for(
                    _ENTRY.account, {name: meanings[side, name] for name in part}
                ),
                match_currency=_stands_for(_ENTRY.currency, {"": resolve_currency(others)}),
            )
            mine = (_ENTRY.side == side, _ENTRY.account.in_(part), is_input(ids))
            tx.change("match.mark", claim.where(_is_open, *mine))
    _carry(tx, context, {meant or name for (_, name), meant in meanings.items() if meant or name})


_is_open = (_ENTRY.kind == "MOVEMENT") & _ENTRY.state.in_(("OPEN", "BREAK", "LINKED"))


def _claim(context: StepContext, **values: Any) -> Update:
    state = case((_ENTRY.state == "LINKED", "BREAK"), else_=_ENTRY.state)
    return update(recon_entry).values(judged_by=context.instance_id, state=state, **values)


def _stands_for(column: ColumnElement[Any], meanings: dict[str, str | None]) -> Any:
    """What a name means, if that is another name; else nothing is written."""
    others = {name: meant for name, meant in meanings.items() if meant not in (None, name)}
    return case(others, value=column) if others else null()


def _bearings(tx: Transaction, files: dict[tuple[str, str], Any]) -> list[tuple[str, str, str]]:
    """Side, account and currency of everything in the files, matched or not."""
    statement = (
        select(_ENTRY.side, _ENTRY.account, _ENTRY.currency)
        .where(_ENTRY.kind == "MOVEMENT", seen_in(files))
        .distinct()
    )
    return [(row[0], row[1], row[2]) for row in tx.fetch("match.bearings", statement)]


def _meanings(bearings: Sequence[tuple[str, str, str]]) -> dict[tuple[str, str], str | None]:
    """The statement's account that each account of a side stands for; None if it can't be told."""
    statements = {account for side, account, _ in bearings if side == STATEMENT}
    found: dict[tuple[str, str], str | None] = {(STATEMENT, name): name for name in statements}
    for account in {account for side, account, _ in bearings if side == TRANSACTIONS}:
        found[TRANSACTIONS, account] = resolve_account(account, statements)
    return found


def _carry(tx: Transaction, context: StepContext, accounts: set[str]) -> None:
    account = func.coalesce(_ENTRY.match_account, _ENTRY.account)
    for part in _parts(accounts):
        for column in (recon_break.c.entry_id, recon_break.c.other_entry_id):
            broken = select(column).where(recon_break.c.state == "OPEN", column.is_not(None))
            is_carried = (_ENTRY.id.in_(broken), account.in_(part))
            tx.change("match.carry", _claim(context).where(_is_open, *is_carried))


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
