"""The matching step: ordered passes, each entry consumed once, what disagrees linked as a break."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from itertools import groupby
from typing import Any

from sqlalchemy import exists, select, update

from retoma import StepContext, Transaction
from retoma.reconciliation.break_rows import Break, store_breaks
from retoma.reconciliation.candidates import UNMATCHED, days, mark, pages
from retoma.reconciliation.match_rules import (
    BANK_ID,
    CONTENT,
    END_TO_END,
    SHORTEST_STRONG_ID,
    Candidate,
    Pair,
    break_type,
    match_id,
    pair_by_content,
    pair_by_identifier,
)
from retoma.reconciliation.statement_tables import recon_break, recon_entry, recon_match

_ENTRY = recon_entry.c
_COLUMNS = (
    "match_id", "rule", "statement_entry_id", "transaction_entry_id", "amount_minor", "currency",
    "instance_id",
)  # fmt: skip


def match(tx: Transaction, context: StepContext) -> None:
    """Pair the run's entries, in one transaction: all of it is true together, or none of it.

    1. The same end-to-end id, amount and currency. 2. The same id with another amount or currency:
    linked as a break, and kept from weaker rules. Then both again by bank id within an account.
    3. The same account, date, amount and currency, k identical lines against k. At last, short bank
    ids of the same account and day link what is left.
    """
    mark(tx, context)
    _by_identifier(tx, context, _ENTRY.e2e_id, END_TO_END, lambda one: one.e2e_id)
    _by_identifier(
        tx,
        context,
        _ENTRY.fitid,
        BANK_ID,
        lambda one: (one.fitid, one.account),
        shortest=SHORTEST_STRONG_ID,
    )
    _by_content(tx, context)
    _by_identifier(
        tx, context, _ENTRY.fitid, BANK_ID, lambda one: (one.fitid, one.account, one.booking_date)
    )


def _by_identifier(
    tx: Transaction,
    context: StepContext,
    column: Any,
    rule: str,
    key: Callable[[Candidate], Hashable],
    *,
    shortest: int = 1,
) -> None:
    for page in pages(tx, context, column, column != ""):
        pairs: list[Pair] = []
        breaks: list[Break] = []
        for group in _groups(page, key):
            if rule == BANK_ID and len(group[0].fitid) < shortest:
                continue
            found = pair_by_identifier(group)
            pairs += found.pairs
            breaks += [Break(break_type(*pair), pair) for pair in found.linked]
            breaks += [Break("DUPLICATE_SOURCE", (one,)) for one in found.surplus]
        _store_pairs(tx, context, pairs, rule)
        store_breaks(tx, context, breaks)
    _settle(tx, context)


def _by_content(tx: Transaction, context: StepContext) -> None:
    for day in days(tx, context):
        for page in pages(tx, context, _ENTRY.amount_minor, _ENTRY.booking_date == day):
            pairs: list[Pair] = []
            for group in _groups(page, lambda one: (one.account, one.amount, one.currency)):
                pairs += pair_by_content(group)
            _store_pairs(tx, context, pairs, CONTENT)
    _settle(tx, context)


def _groups(
    page: Iterable[Candidate], key: Callable[[Candidate], Any]
) -> Iterable[list[Candidate]]:
    for _, group in groupby(sorted(page, key=key), key):
        yield list(group)


def _store_pairs(tx: Transaction, context: StepContext, pairs: list[Pair], rule: str) -> None:
    rows = [
        (
            match_id(pair, rule),
            rule,
            pair[0].id,
            pair[1].id,
            pair[0].amount,
            pair[0].currency,
            context.instance_id,
        )
        for pair in pairs
    ]
    tx.insert(recon_match, _COLUMNS, rows)


def _settle(tx: Transaction, context: StepContext) -> None:
    """Take out of the candidates what the pass has matched or linked."""
    mine = (_ENTRY.judged_by == context.instance_id, _ENTRY.state.in_(UNMATCHED))
    found, broken = recon_match.c, recon_break.c
    for column in (found.statement_entry_id, found.transaction_entry_id):
        of_entry = select(found.match_id).where(column == _ENTRY.id).scalar_subquery()
        tx.change(
            "match.settle",
            update(recon_entry)
            .values(state="MATCHED", match_id=of_entry)
            .where(*mine, exists().where(column == _ENTRY.id)),
        )
    is_current = (broken.last_seen_instance == context.instance_id) & (broken.state == "OPEN")
    for column in (broken.entry_id, broken.other_entry_id):
        tx.change(
            "match.link",
            update(recon_entry)
            .values(state="LINKED")
            .where(*mine, exists().where(column == _ENTRY.id, is_current)),
        )
