"""The statements of the audit: source, ledger and item errors as they stand, and nothing between.

They share nothing with the job's own reading and writing. The source is walked in stretches of its
key, so that time grows with the rows and memory does not.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    String,
    and_,
    case,
    cast,
    column,
    exists,
    func,
    or_,
    select,
    table,
)

from retoma.reconciliation.tables import financial_transaction, ledger_entry, synthetic_truth

_ROWS_A_STRETCH = 200_000
_KEYS_A_QUERY = 1_000
_IN_CENTS = ("BRL", "USD", "EUR")

_source, _entry, _label = financial_transaction.c, ledger_entry.c, synthetic_truth.c
_item_error = table(
    "batch_item_error",
    column("instance_id"),
    column("run_id"),
    column("job_name"),
    column("item_key"),
    column("state"),
    column("kind"),
    column("reason"),
)
_error = _item_error.c


@dataclass(frozen=True, slots=True)
class Scope:
    """What is audited: one instance of the job, up to one of its runs, on one business date."""

    job: str
    instance_id: int
    run_id: int
    day: date


@dataclass(frozen=True, slots=True)
class Stretch:
    """The keys above ``low`` up to and including ``high``.

    The bounds are said of every joined table: no planner infers them through an outer join, and
    without them each stretch would read the whole ledger.
    """

    low: int
    high: int

    def holds(self, key: ColumnElement[int]) -> ColumnElement[bool]:
        """Whether a key is in the stretch."""
        return and_(key > self.low, key <= self.high)


def stretches(connection: Connection, scope: Scope) -> Iterator[Stretch]:
    """Stretches of equally many rows that cover the day's source rows; each row is in one."""
    ends = select(func.min(_source.id), func.max(_source.id))
    lowest, highest = connection.execute(ends.where(_source.business_date == scope.day)).one()
    if lowest is None:
        return
    low = int(lowest) - 1
    while low < highest:
        end = (
            select(_source.id)
            .where(_source.business_date == scope.day, _source.id > low)
            .order_by(_source.id)
            .offset(_ROWS_A_STRETCH - 1)
            .limit(1)
        )
        found = connection.execute(end).scalar()
        stretch = Stretch(low, int(highest if found is None else found))
        yield stretch
        low = stretch.high


def plain_sums(connection: Connection, scope: Scope, stretch: Stretch) -> Sequence[Any]:
    """(currency, rows, minor units) of the rows with which plainly nothing is wrong."""
    statement = (
        select(_source.currency, func.count(), func.sum(_entry.amount_minor))
        .select_from(_joined(scope, stretch))
        .where(_source.business_date == scope.day, stretch.holds(_source.id), _is_plain(scope) == 1)
        .group_by(_source.currency)
    )
    return connection.execute(statement).all()


def other_rows(connection: Connection, scope: Scope, stretch: Stretch) -> Sequence[Any]:
    """All other rows, in the order of the source's key, to be looked at one by one."""
    condition = and_(
        _source.business_date == scope.day, stretch.holds(_source.id), _is_plain(scope) == 0
    )
    return _rows(connection, scope, stretch, condition)


def carried_rows(connection: Connection, scope: Scope, keys: Sequence[int]) -> Iterator[Any]:
    """The rows of these transactions (in ascending order), which are of earlier dates."""
    for base in range(0, len(keys), _KEYS_A_QUERY):
        part = keys[base : base + _KEYS_A_QUERY]
        condition = and_(_source.id.in_(part), _source.business_date < scope.day)
        yield from _rows(connection, scope, Stretch(part[0] - 1, part[-1]), condition)


def carried_keys(connection: Connection, scope: Scope) -> list[int]:
    """Transactions that an earlier run of another instance deferred, and that stayed unposted."""
    statement = (
        select(_error.item_key)
        .where(
            _error.job_name == scope.job,
            _error.kind == "NOT_READY",
            _error.instance_id != scope.instance_id,
            _error.run_id < scope.run_id,
        )
        .distinct()
    )
    return sorted(int(key) for key in connection.execute(statement).scalars() if key.isdecimal())


def entry_sums(connection: Connection, scope: Scope) -> Sequence[Any]:
    """(currency, entries, minor units) of all entries of the date."""
    statement = (
        select(_entry.currency, func.count(), func.sum(_entry.amount_minor))
        .where(_entry.reference_date == scope.day, _entry.job == scope.job)
        .group_by(_entry.currency)
    )
    return connection.execute(statement).all()


def twice_posted(connection: Connection, scope: Scope) -> int:
    """How many transactions with an entry of the date have another entry, of whatever date."""
    other = ledger_entry.alias("other")
    statement = select(func.count(_entry.transaction_id.distinct())).where(
        _entry.reference_date == scope.day,
        _entry.job == scope.job,
        exists().where(
            other.c.transaction_id == _entry.transaction_id,
            other.c.job == _entry.job,
            other.c.id != _entry.id,
        ),
    )
    return int(connection.execute(statement).scalar() or 0)


def entries_of_other_days(connection: Connection, scope: Scope) -> Iterator[int | None]:
    """For each entry of the date whose source row is not of that date: the row's id, or None."""
    statement = (
        select(_source.id)
        .select_from(
            ledger_entry.outerjoin(financial_transaction, _source.id == _entry.transaction_id)
        )
        .where(
            _entry.reference_date == scope.day,
            _entry.job == scope.job,
            or_(_source.id.is_(None), _source.business_date != scope.day),
        )
    )
    yield from connection.execute(statement).scalars()


def error_keys(connection: Connection, scope: Scope) -> int:
    """How many different items have an item error of the instance."""
    statement = select(func.count(_error.item_key.distinct())).where(
        _error.instance_id == scope.instance_id, _error.job_name == scope.job
    )
    return int(connection.execute(statement).scalar() or 0)


def _rows(
    connection: Connection, scope: Scope, stretch: Stretch, condition: ColumnElement[bool]
) -> Sequence[Any]:
    statement = (
        select(
            _source.id,
            _source.business_date,
            _source.amount,
            _source.currency,
            _source.version,
            _entry.reference_date.label("posted_on"),
            _entry.amount_minor.label("posted_minor"),
            _entry.currency.label("posted_currency"),
            _error.state.label("error_state"),
            _error.reason.label("error_reason"),
            _label.outcome.label("label"),
            _label.amount_minor.label("label_minor"),
        )
        .select_from(_joined(scope, stretch))
        .where(condition)
        .order_by(_source.id)
    )
    return connection.execute(statement).all()


def _joined(scope: Scope, stretch: Stretch) -> FromClause:
    entry = and_(
        _entry.transaction_id == _source.id,
        _entry.job == scope.job,
        stretch.holds(_entry.transaction_id),
    )
    error = and_(
        _error.job_name == scope.job,
        _error.item_key == cast(_source.id, String),
        _error.instance_id == scope.instance_id,
    )
    label = and_(_label.transaction_id == _source.id, stretch.holds(_label.transaction_id))
    return (
        financial_transaction.outerjoin(ledger_entry, entry)
        .outerjoin(_item_error, error)
        .outerjoin(synthetic_truth, label)
    )


def _is_plain(scope: Scope) -> ColumnElement[int]:
    """1 if the entry's amount, written out, is the source's text, and nothing speaks against it."""
    size = func.abs(_entry.amount_minor)
    cents = func.substr(cast(size % 100 + 100, String), 2, 2)
    written = (
        case((_entry.amount_minor < 0, "-"), else_="") + cast(size // 100, String) + "." + cents
    )
    return case(
        (
            and_(
                _entry.reference_date == scope.day,
                _entry.currency == _source.currency,
                _source.currency.in_(_IN_CENTS),
                _source.amount == written,
                _error.item_key.is_(None),
                or_(
                    _label.transaction_id.is_(None),
                    _source.version > 1,  # changed since: the label no longer holds
                    and_(_label.outcome == "POSTED", _label.amount_minor == _entry.amount_minor),
                ),
            ),
            1,
        ),
        else_=0,
    )
