"""The audit finds what is lost, twice, wrong or too much; and finds nothing where nothing is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any

import pytest
from sqlalchemy import insert, select, text

import retoma
from retoma import Finding, NotReady, SetAside, StepContext, Store
from retoma.reconciliation import audit_queries
from retoma.reconciliation.audit import amount_of, audit_posting
from retoma.reconciliation.posting import JOB, input_of
from retoma.reconciliation.posting_rules import ENTRY_COLUMNS, to_entry
from retoma.reconciliation.synthetic import NightTotals, make_night
from retoma.reconciliation.tables import ledger_entry, synthetic_truth

DAY = date(2026, 11, 30)


@dataclass
class Night:
    """A posted night, made by a loop that has no engine in it."""

    store: Store
    totals: NightTotals
    context: StepContext

    def audit(self) -> Finding:
        with self.store.engine.connect() as connection:
            return audit_posting(connection, self.context)

    def change(self, statement: str, **values: Any) -> int:
        with self.store.engine.begin() as connection:
            return connection.execute(text(statement), values).rowcount

    def labelled(self, outcome: str, number: int = 0) -> int:
        """The id of the n-th transaction with that label."""
        found = (
            select(synthetic_truth.c.transaction_id)
            .where(synthetic_truth.c.outcome == outcome)
            .order_by("transaction_id")
            .offset(number)
            .limit(1)
        )
        with self.store.engine.connect() as connection:
            return int(connection.execute(found).scalar_one())

    def amount(self, ident: int) -> int:
        statement = select(ledger_entry.c.amount_minor).where(
            ledger_entry.c.transaction_id == ident
        )
        with self.store.engine.connect() as connection:
            return int(connection.execute(statement).scalar_one())

    def add_entry(self, ident: int, **changed: Any) -> None:
        row = {
            "job": "posting",
            "idempotency_key": f"CONCILIACAO:20261130:{ident}",
            "transaction_id": ident,
            "reference_date": DAY,
            "amount_minor": 100,
            "currency": "BRL",
            "entry_type": "FEE",
            "digest": "x",
        }
        with self.store.engine.begin() as connection:
            connection.execute(insert(ledger_entry), {**row, **changed})

    def add_error(self, ident: int, reason: str, state: str = "SET_ASIDE") -> None:
        add_errors(self.store, self.context, [(str(ident), reason, state)])


def add_errors(store: Store, context: StepContext, errors: list[tuple[str, str, str]]) -> None:
    statement = text(
        "INSERT INTO batch_item_error (instance_id, run_id, job_name, step_name, chunk_id,"
        " item_key, state, kind, reason, message, payload, created_at) VALUES (:instance, :run,"
        " 'posting', 'post', 1, :key, :state, :kind, :reason, '', '{}', '2026-11-30 01:00:00')"
    )
    rows = [
        {
            "instance": context.instance_id,
            "run": context.run_id,
            "key": key,
            "state": state,
            "kind": "NOT_READY" if state == "NOT_READY" else "INVALID_ITEM",
            "reason": reason,
        }
        for key, reason, state in errors
    ]
    with store.engine.begin() as connection:
        connection.execute(statement, rows)


def post(store: Store, day: date) -> StepContext:
    """Submit the day, and do what its workers would do."""
    run_id = retoma.submit(store, JOB, {"reference_date": day})
    instance = int(retoma.status(store, run_id)["instance"])
    context = StepContext("posting", "post", run_id, instance, {"reference_date": day})
    entries, errors = [], []
    with store.engine.connect() as connection:
        for item in connection.execute(input_of(context)):
            outcome = to_entry(item, context)
            if isinstance(outcome, tuple):
                row = dict(zip(ENTRY_COLUMNS, outcome, strict=True))
                entries.append({**row, "reference_date": day})
            else:
                assert isinstance(outcome, SetAside | NotReady)
                state = "SET_ASIDE" if isinstance(outcome, SetAside) else "NOT_READY"
                errors.append((str(item.id), outcome.reason, state))
    with store.engine.begin() as connection:
        connection.execute(insert(ledger_entry), entries)
    add_errors(store, context, errors)
    return context


@pytest.fixture
def night(database_url: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Night]:
    monkeypatch.setattr(
        audit_queries, "_ROWS_A_STRETCH", 700
    )  # several stretches, the last partial
    store = Store(database_url)
    totals = make_night(store.engine, 2_000, 4, DAY)
    yield Night(store, totals, post(store, DAY))
    store.dispose()


def counts(finding: Finding) -> tuple[int, int, int, str]:
    return finding.missing, finding.duplicate, finding.unexpected, finding.sum_difference


def test_a_clean_night_is_clean(night: Night) -> None:
    finding = night.audit()
    assert counts(finding) == (0, 0, 0, "0.00"), finding
    assert finding.is_clean
    assert finding.expected == finding.found == night.totals.entries
    assert finding.notes == ()


def test_a_stretch_that_ends_with_the_night(night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit_queries, "_ROWS_A_STRETCH", 500)
    assert night.audit().expected == night.totals.entries


def test_a_lost_entry_is_missing_and_its_amount_too(night: Night) -> None:
    ident = night.labelled("POSTED", 900)
    minor = night.amount(ident)
    assert night.change("DELETE FROM ledger_entry WHERE transaction_id = :id", id=ident) == 1
    finding = night.audit()
    assert finding.missing == 1
    assert finding.found == finding.expected - 1
    assert finding.sum_difference == f"{abs(minor) / 100:.2f}"
    assert not finding.is_clean


def test_a_lost_item_error_is_missing(night: Night) -> None:
    ident = night.labelled("INVALID_DOCUMENT")
    assert night.change("DELETE FROM batch_item_error WHERE item_key = :key", key=str(ident)) == 1
    assert night.audit().missing == 1


def test_a_settled_transaction_that_was_set_aside_is_missing(night: Night) -> None:
    ident = night.labelled("POSTED", 3)
    night.change("DELETE FROM ledger_entry WHERE transaction_id = :id", id=ident)
    night.add_error(ident, "ROUNDING")
    finding = night.audit()
    assert finding.missing == 1
    assert "set aside though their label says posted" in " ".join(finding.notes)


@pytest.mark.parametrize("other_day", [DAY, DAY - timedelta(days=1), DAY + timedelta(days=1)])
def test_two_entries_of_a_transaction_are_a_duplicate(night: Night, other_day: date) -> None:
    on_table = " ON ledger_entry" if night.store.engine.dialect.name == "mariadb" else ""
    night.change(f"DROP INDEX ux_ledger_entry_transaction{on_table}")
    ident = night.labelled("POSTED", 5)
    night.add_entry(ident, idempotency_key="another", reference_date=other_day)
    finding = night.audit()
    assert finding.duplicate == 1
    assert not finding.is_clean


def test_an_entry_with_an_open_item_error_is_a_duplicate(night: Night) -> None:
    ident = night.labelled("POSTED", 7)
    night.add_error(ident, "ROUNDING", "RESOLVED")
    assert night.audit().is_clean  # set aside, then resolved and posted
    night.add_error(ident, "ROUNDING", "DEAD")
    assert counts(night.audit()) == (0, 1, 0, "0.00")


def test_two_open_item_errors_of_a_transaction_are_a_duplicate(night: Night) -> None:
    night.add_error(night.labelled("ROUNDING"), "ROUNDING", "IN_REVIEW")
    assert counts(night.audit()) == (0, 1, 0, "0.00")


@pytest.mark.parametrize("number", [11, 1200])
def test_a_wrong_amount_is_unexpected(night: Night, number: int) -> None:
    ident = night.labelled("POSTED", number)
    wrong = "UPDATE ledger_entry SET amount_minor = amount_minor + 1 WHERE transaction_id = :id"
    night.change(wrong, id=ident)
    assert counts(night.audit()) == (0, 0, 1, "0.01")


def test_wrong_amounts_that_cancel_out_are_found_all_the_same(night: Night) -> None:
    wrong = "UPDATE ledger_entry SET amount_minor = amount_minor + :more WHERE transaction_id = :id"
    for number, more in ((20, 5), (21, -5)):
        night.change(wrong, more=more, id=night.labelled("POSTED", number))
    assert counts(night.audit()) == (0, 0, 2, "0.00")


def test_a_wrong_amount_is_found_without_labels(night: Night) -> None:
    night.change("DELETE FROM synthetic_truth WHERE 1 = 1")
    assert night.audit().is_clean
    first = select(ledger_entry.c.transaction_id).limit(1)
    with night.store.engine.connect() as connection:
        ident = connection.execute(first).scalar_one()
    wrong = "UPDATE ledger_entry SET amount_minor = amount_minor - 1 WHERE transaction_id = :id"
    night.change(wrong, id=ident)
    assert counts(night.audit()) == (0, 0, 1, "0.01")


def test_a_wrong_currency_is_unexpected(night: Night) -> None:
    wrong = "UPDATE ledger_entry SET currency = 'EUR' WHERE transaction_id = :id"
    night.change(wrong, id=night.labelled("POSTED", 30))
    finding = night.audit()
    assert finding.unexpected == 1
    assert finding.sum_difference != "0.00"


def test_an_entry_against_its_label_is_unexpected(night: Night) -> None:
    ident = night.labelled("INVALID_DOCUMENT")
    night.change("DELETE FROM batch_item_error WHERE item_key = :key", key=str(ident))
    source = "SELECT amount FROM financial_transaction WHERE id = :id"
    with night.store.engine.connect() as connection:
        amount = connection.execute(text(source), {"id": ident}).scalar_one()
    night.add_entry(ident, amount_minor=int(amount.replace(".", "")))
    assert counts(night.audit()) == (0, 0, 1, "0.00")


def test_an_entry_without_a_transaction_is_unexpected(night: Night) -> None:
    night.add_entry(night.totals.last_id + 1)
    finding = night.audit()
    assert counts(finding) == (0, 0, 1, "1.00")
    assert finding.found == finding.expected + 1


def test_an_entry_of_another_days_transaction_is_unexpected(night: Night) -> None:
    later = make_night(night.store.engine, 50, 4, DAY + timedelta(days=1))
    assert night.audit().is_clean
    night.add_entry(later.first_id)
    assert night.audit().unexpected == 1


def test_an_item_error_of_nothing_is_unexpected(night: Night) -> None:
    night.add_error(night.totals.last_id + 1, "ROUNDING")
    assert counts(night.audit()) == (0, 0, 1, "0.00")


def test_an_item_error_with_another_reason_is_unexpected(night: Night) -> None:
    wrong = "UPDATE batch_item_error SET reason = 'ROUNDING' WHERE item_key = :key"
    night.change(wrong, key=str(night.labelled("UNKNOWN_STATUS")))
    assert counts(night.audit()) == (0, 0, 1, "0.00")


def test_what_was_deferred_is_posted_on_the_next_day(night: Night) -> None:
    ident, next_day = night.labelled("PENDING_STATUS"), DAY + timedelta(days=1)
    make_night(night.store.engine, 100, 4, next_day)
    settle = "UPDATE financial_transaction SET status = 'SETTLED', version = 2 WHERE id = :id"
    night.change(settle, id=ident)
    second = Night(night.store, night.totals, post(night.store, next_day))
    for audited in (second, night):
        finding = audited.audit()
        assert finding.is_clean, finding
    assert night.amount(ident)
    night.change("DELETE FROM ledger_entry WHERE transaction_id = :id", id=ident)
    assert night.audit().is_clean  # the first day has deferred it, and says so
    assert second.audit().missing == 1


@dataclass
class Source:
    amount: str | None


@pytest.mark.parametrize(
    ("text_", "value"),
    [
        ("1234.56", "1234.56"),
        ("-0.05", "-0.05"),
        ("1.234,56", "1234.56"),
        ("1,234.56", "1234.56"),
        ("R$ 1.234.567,89", "1234567.89"),
        ("1.234.567", "1234567"),
        ("12", "12"),
        ("NaN", None),
        ("Infinity", None),
        ("", None),
        (None, None),
    ],
)
def test_amounts_are_read_exactly(text_: str | None, value: str | None) -> None:
    amount = amount_of(Source(text_))
    assert (None if amount is None else str(amount)) == value
