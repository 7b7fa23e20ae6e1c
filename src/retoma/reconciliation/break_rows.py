"""Breaks as they are stored: one row a break for all time, and a sighting for each run."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import or_, select, update

from retoma import StepContext, Transaction
from retoma.reconciliation.candidates import UNMATCHED, pages
from retoma.reconciliation.match_rules import Candidate, break_id
from retoma.reconciliation.statement_tables import (
    STATEMENT,
    recon_break,
    recon_break_sighting,
    recon_entry,
)

_COLUMNS = (
    "break_id", "type", "entry_id", "other_entry_id", "side", "amount_at_risk_minor", "currency",
    "booking_date", "first_seen_instance", "last_seen_instance", "state",
)  # fmt: skip
_IDS_A_QUERY = 1_000
_BREAK = recon_break.c
_ENTRY = recon_entry.c


@dataclass(frozen=True, slots=True)
class Break:
    """What did not reconcile: one entry alone, or a statement's line linked to a transaction."""

    type: str
    entries: tuple[Candidate, ...]

    @property
    def id(self) -> str:
        """The same in every run."""
        return break_id(self.entries, self.type)

    @property
    def amount_at_risk(self) -> int:
        """The difference of a linked pair in one currency; else the amount."""
        first = self.entries[0]
        if len(self.entries) == 2 and first.currency == self.entries[1].currency:
            return abs(first.amount - self.entries[1].amount)
        return abs(first.amount)


def store_breaks(tx: Transaction, context: StepContext, breaks: Sequence[Break]) -> None:
    """Add the new ones; of known ones only the last sighting changes, and they are open again."""
    by_id = {one.id: one for one in breaks}
    known: set[str] = set()
    for part in _parts(list(by_id)):
        statement = select(_BREAK.break_id).where(_BREAK.break_id.in_(part))
        found = [row[0] for row in tx.fetch("break.known", statement)]
        known.update(found)
        if found:
            tx.change(
                "break.seen",
                update(recon_break)
                .values(last_seen_instance=context.instance_id, state="OPEN")
                .where(_BREAK.break_id.in_(found)),
            )
    fresh = [_row(ident, one, context) for ident, one in by_id.items() if ident not in known]
    tx.insert(recon_break, _COLUMNS, fresh)
    tx.insert(
        recon_break_sighting,
        ("instance_id", "break_id"),
        [(context.instance_id, ident) for ident in by_id],
    )


def close_breaks(tx: Transaction, context: StepContext) -> None:
    """Every candidate left over becomes a break; breaks whose entries found a partner are resolved."""
    for page in pages(tx, context, _ENTRY.id):
        store_breaks(tx, context, [Break(_type_of(one), (one,)) for one in page])
    mine = select(_ENTRY.id).where(_ENTRY.judged_by == context.instance_id)
    tx.change(
        "break.resolve",
        update(recon_break)
        .values(state="RESOLVED")
        .where(
            _BREAK.state == "OPEN",
            _BREAK.last_seen_instance != context.instance_id,
            or_(_BREAK.entry_id.in_(mine), _BREAK.other_entry_id.in_(mine)),
        ),
    )
    tx.change(
        "break.state",
        update(recon_entry)
        .values(state="BREAK")
        .where(_ENTRY.judged_by == context.instance_id, _ENTRY.state.in_((*UNMATCHED, "LINKED"))),
    )


def _type_of(one: Candidate) -> str:
    if one.occurrence > 1 and one.natural_key.startswith("I:"):
        return "DUPLICATE_SOURCE"
    return "MISSING_RIGHT" if one.side == STATEMENT else "MISSING_LEFT"


def _row(ident: str, one: Break, context: StepContext) -> tuple[Any, ...]:
    first = one.entries[0]
    return (
        ident,
        one.type,
        first.id,
        one.entries[1].id if len(one.entries) == 2 else None,
        first.side,
        one.amount_at_risk,
        first.currency,
        first.booking_date.isoformat(),
        context.instance_id,
        context.instance_id,
        "OPEN",
    )


def _parts(values: list[str]) -> Iterator[list[str]]:
    for base in range(0, len(values), _IDS_A_QUERY):
        yield values[base : base + _IDS_A_QUERY]
