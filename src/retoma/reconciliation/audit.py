"""Finds the truth of a posted day from source, ledger and item errors alone.

It knows nothing of chunks, counters or rules: every source row of the day must have either its one
entry, with the source's amount, or its item error; and the ledger must have nothing else. Where the
source was made up by the generator, its labels must agree as well, row by row.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal, InvalidOperation
from itertools import groupby
from operator import attrgetter
from typing import Any

from sqlalchemy import Connection

from retoma import Finding, StepContext
from retoma.reconciliation import audit_queries as queries
from retoma.reconciliation.audit_queries import Scope
from retoma.reconciliation.money import exponent_of

_CLOSED = ("RESOLVED", "IGNORED")


def audit_posting(connection: Connection, context: StepContext) -> Finding:
    """What is missing, twice, or should not be there, of the instance in ``context``.

    ``missing``: source rows with neither entry nor item error, or set aside though their label
    says posted. ``duplicate``: rows with two entries, two open item errors, or an entry and an open
    item error. ``unexpected``: entries without a source row of the input, with another amount or
    against their label; item errors of no source row, or with another reason than the label.
    ``sum_difference``: the sum over currencies of |ledger - source|, each in its own units, where
    source is what the posted and the missing rows come to. Only reads; raises the driver's errors.
    """
    day = context.parameters["reference_date"]
    if not isinstance(day, date):
        raise TypeError(f"reference_date must be a date, not {type(day).__name__}")
    scope = Scope(context.job, context.instance_id, context.run_id, day)
    tally = _Tally(scope)
    for stretch in queries.stretches(connection, scope):
        for currency, rows, minor in queries.plain_sums(connection, scope, stretch):
            tally.matched += rows
            tally.source[currency] += _major(minor, currency)
        tally.look_at(queries.other_rows(connection, scope, stretch))
    carried = queries.carried_keys(connection, scope)
    tally.look_at(queries.carried_rows(connection, scope, carried))
    _count_strays(connection, scope, tally, set(carried))
    return tally.finding()


def _count_strays(connection: Connection, scope: Scope, tally: _Tally, carried: set[int]) -> None:
    """What the walk along the source can't see: what has no source row."""
    for currency, entries, minor in queries.entry_sums(connection, scope):
        tally.found += entries
        tally.ledger[currency] += _major(minor, currency)
    strays = sum(
        ident is None or ident not in carried
        for ident in queries.entries_of_other_days(connection, scope)
    )
    tally.unexpect("entries without a transaction of the input", strays)
    tally.duplicate += queries.twice_posted(connection, scope)
    errors = queries.error_keys(connection, scope) - tally.with_error
    tally.unexpect("item errors of no transaction of the input", errors)


@dataclass(slots=True)
class _Tally:
    scope: Scope
    matched: int = 0
    found: int = 0
    missing: int = 0
    duplicate: int = 0
    unexpected: int = 0
    with_error: int = 0
    source: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    ledger: defaultdict[str, Decimal] = field(default_factory=lambda: defaultdict(Decimal))
    reasons: Counter[str] = field(default_factory=Counter)

    def unexpect(self, reason: str, count: int = 1) -> None:
        """Count what should not be there."""
        if count:
            self.unexpected += count
            self.reasons[reason] += count

    def look_at(self, rows: Iterable[Any]) -> None:
        """Judge rows one by one; several of one transaction follow each other."""
        for _, group in groupby(rows, attrgetter("id")):
            same = list(group)
            entry = next((row for row in same if row.posted_on == self.scope.day), None)
            has_other_entry = any(row.posted_on not in (None, self.scope.day) for row in same)
            errors = [row for row in same if row.error_state is not None]
            self.with_error += bool(errors)
            if entry is not None:
                self._judge_entry(entry, sum(row.error_state not in _CLOSED for row in errors))
            elif errors:
                self._judge_error(errors)
            elif not has_other_entry:
                self.missing += 1
                self.source[same[0].currency] += amount_of(same[0]) or 0

    def _judge_entry(self, row: Any, open_errors: int) -> None:
        self.duplicate += bool(open_errors)
        self.matched += 1
        amount = amount_of(row)
        self.source[row.currency] += amount or 0
        if row.currency != row.posted_currency or amount != _major(row.posted_minor, row.currency):
            self.unexpect("entries with another amount than their transaction")
        elif self._is_labelled(row) and (row.label, row.label_minor) != (
            "POSTED",
            row.posted_minor,
        ):
            self.unexpect("entries against their label")

    def _judge_error(self, errors: Sequence[Any]) -> None:
        still_open = [row for row in errors if row.error_state not in _CLOSED]
        self.duplicate += len(still_open) > 1
        for row in still_open[:1]:
            if self._is_labelled(row) and row.label == "POSTED":
                self.missing += 1
                self.source[row.currency] += amount_of(row) or 0
                self.reasons["transactions set aside though their label says posted"] += 1
            elif self._is_labelled(row) and row.label != row.error_reason:
                self.unexpect("item errors with another reason than their label")

    def _is_labelled(self, row: Any) -> bool:
        # A label holds for its own night, and until the source changes the row.
        is_current = row.version == 1 and row.business_date == self.scope.day
        return is_current and row.label is not None

    def finding(self) -> Finding:
        """All of it, in the words of ``retoma verify``."""
        currencies = sorted({*self.source, *self.ledger}, key=str)
        gaps = {code: self.ledger[code] - self.source[code] for code in currencies}
        notes = [f"{count} {reason}" for reason, count in sorted(self.reasons.items())]
        notes += [f"{code}: ledger - source = {_money(gap)}" for code, gap in gaps.items() if gap]
        return Finding(
            expected=self.matched + self.missing,
            found=self.found,
            missing=self.missing,
            duplicate=self.duplicate,
            unexpected=self.unexpected,
            sum_difference=_money(sum(map(abs, gaps.values()), Decimal(0))),
            notes=tuple(notes),
        )


def _major(minor: Any, currency: str) -> Decimal:
    return Decimal(int(minor)).scaleb(-exponent_of(currency))


def _money(amount: Decimal) -> str:
    """The amount with two decimals, or with as many as it needs."""
    cents = amount.quantize(Decimal("0.01"))
    return f"{cents if cents == amount else amount.normalize():f}"


def amount_of(row: Any) -> Decimal | None:
    """The amount of a source row by this module's own reading; None if it is no number.

    The last of comma and point is the decimal separator, unless it occurs twice.
    """
    text = (row.amount or "").replace("R$", "").replace(" ", "")
    point, comma = text.rfind("."), text.rfind(",")
    decimal, group = (".", ",") if point > comma else (",", ".")
    if text.count(decimal) > 1:
        decimal, group = group, decimal
    try:
        amount = Decimal(text.replace(group, "").replace(decimal, "."))
    except InvalidOperation:
        return None
    return amount if amount.is_finite() else None
