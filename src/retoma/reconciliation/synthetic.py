"""A made-up night of transactions, each labelled with what must become of it.

The labels are the other side of the proof: they are written by code that shares nothing with the
rules, not even the arithmetic of check digits. All people, companies and amounts are invented.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date
from itertools import islice
from random import Random

from sqlalchemy import Connection, Engine, func, select

from retoma import UsageError
from retoma.reconciliation.synthetic_faults import SPOILS, Row
from retoma.reconciliation.synthetic_load import Loader, refresh_statistics
from retoma.reconciliation.synthetic_people import document
from retoma.reconciliation.tables import (
    ENTRY_TYPES,
    create_tables,
    financial_transaction,
    synthetic_truth,
)

_ROWS_A_BLOCK = 10_000
_LARGEST_NIGHT = 100_000_000
_ROWS_A_BAD_ONE = 66  # some 98.5 % are clean

_SOURCE_COLUMNS = (
    "id",
    "external_id",
    "business_date",
    "amount",
    "currency",
    "document",
    "status",
    "entry_type",
    "payload",
)
_CHANNELS = ("app", "web", "api", "app")
_LABEL_COLUMNS = ("transaction_id", "outcome", "amount_minor")

Label = tuple[int, str, int | None]
"""Transaction, outcome (POSTED or a reason), and the minor units to be posted."""


@dataclass(slots=True)
class NightTotals:
    """What a night holds: rows by outcome, and the minor units to be posted by currency."""

    reference_date: date
    transactions: int = 0
    first_id: int = 0
    last_id: int = 0
    outcomes: Counter[str] = field(default_factory=Counter)
    posted_minor: Counter[str] = field(default_factory=Counter)

    @property
    def entries(self) -> int:
        """How many ledger entries the night must give."""
        return self.outcomes["POSTED"]

    @property
    def deferred(self) -> int:
        """How many transactions are not settled yet."""
        return self.outcomes["PENDING_STATUS"]

    @property
    def item_errors(self) -> int:
        """How many transactions must be set aside, the deferred ones not among them."""
        return self.transactions - self.entries - self.deferred

    def add(self, row: Row, label: Label) -> None:
        """Count one row."""
        self.transactions += 1
        self.first_id = self.first_id or row[0]
        self.last_id = row[0]
        self.outcomes[label[1]] += 1
        if label[2] is not None:
            self.posted_minor[row[4]] += label[2]


def make_night(engine: Engine, transactions: int, seed: int, reference_date: date) -> NightTotals:
    """Write a night of ``transactions`` rows and their labels, in one transaction.

    The same seed, date and first free id give the same rows. Some 98.5 % are clean; from 1,000
    rows on there is at least one of each bad kind. Ids go on after the highest one, with gaps.
    Creates the tables if need be. Raises ``UsageError`` if that date has rows already.
    """
    if not 1 <= transactions <= _LARGEST_NIGHT:
        raise UsageError(
            f"a night has between 1 and {_LARGEST_NIGHT:,} transactions, not {transactions:,}",
            safe="Nothing was stored or started.",
        )
    create_tables(engine)
    totals = NightTotals(reference_date)
    with engine.begin() as connection:
        loader = Loader(connection, (financial_transaction, synthetic_truth))
        highest = _highest_id(connection, reference_date)
        # The date is part of the seed: two nights of one seed are alike, but not the same.
        rng = Random(f"{seed}:{reference_date}")
        rows = night_rows(rng, transactions, highest, reference_date)
        while block := list(islice(rows, _ROWS_A_BLOCK)):
            for row, label in block:
                totals.add(row, label)
            loader.load(financial_transaction, _SOURCE_COLUMNS, [row for row, _ in block])
            loader.load(synthetic_truth, _LABEL_COLUMNS, [label for _, label in block])
        loader.finish()
    refresh_statistics(engine, (financial_transaction, synthetic_truth))
    return totals


def _highest_id(connection: Connection, reference_date: date) -> int:
    source = financial_transaction.c
    if connection.execute(
        select(source.id).where(source.business_date == reference_date).limit(1)
    ).first():
        raise UsageError(
            f"the source has transactions of {reference_date} already",
            safe="They are left as they are; nothing was stored.",
            next_step="take another date, or an empty database",
        )
    return int(connection.execute(select(func.max(source.id))).scalar() or 0)


def night_rows(
    rng: Random, transactions: int, highest: int, day: date
) -> Iterator[tuple[Row, Label]]:
    """The rows of a night with their labels, in the order of their ids, from ``highest`` on.

    One row in each stretch of 66 is bad, at a random place but never the first, so that there is
    always a clean row before it that a duplicate can repeat.
    """
    kinds = list(SPOILS)
    rng.shuffle(kinds)
    before: Row = []
    ident, bad_place, day_text = highest, 0, day.isoformat()
    for number in range(transactions):
        stretch, place = divmod(number, _ROWS_A_BAD_ONE)
        if place == 0:
            bad_place = rng.randrange(1, _ROWS_A_BAD_ONE)
        ident += 1 if rng.random() < 0.9 else rng.randrange(2, 5)
        row, minor = _clean_row(rng, ident, day_text)
        if place != bad_place:
            yield row, (ident, "POSTED", minor)
        else:
            kind = kinds[stretch % len(kinds)]
            SPOILS[kind](row, before, stretch // len(kinds))
            yield row, (ident, kind, None)
        before = row


def _clean_row(rng: Random, ident: int, day: str) -> tuple[Row, int]:
    bits = rng.getrandbits(96)
    bits, style = divmod(bits, 200)
    bits, kind = divmod(bits, len(ENTRY_TYPES))
    entry_type = ENTRY_TYPES[kind]
    minor = 1 + int(5_000_000 * rng.random() ** 5)  # most are small: the median is some 1,500
    if entry_type == "REFUND":
        minor = -minor
    amount, currency = _amount(minor, style)
    payload = None
    if bits & 1:
        payload = f'{{"channel": "{_CHANNELS[bits & 3]}", "batch": {bits % 9973}}}'
    row = [
        ident,
        f"E{day}-{ident:012d}",
        day,
        amount,
        currency,
        document(rng, bits >> 2),
        "SETTLED",
        entry_type,
        payload,
    ]
    return row, minor


def _amount(minor: int, style: int) -> tuple[str, str]:
    """The amount as the source writes it, mostly plain, and its currency; style is in 0..199."""
    sign, (whole, cents) = "-" if minor < 0 else "", divmod(abs(minor), 100)
    if style == 0:
        return f"{sign}{whole:,}".replace(",", ".") + f",{cents:02d}", "BRL"
    if style == 1:
        return f"{sign}{whole}.{cents:02d}00", "BRL"
    if style == 2:
        return str(minor), "JPY"
    return f"{sign}{whole}.{cents:02d}", "USD" if style < 6 else "BRL"
