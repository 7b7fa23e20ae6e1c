"""The application's tables: created once by however many, and exact in what they keep."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta

import pytest
from sqlalchemy import Engine, create_engine, insert, inspect, select, text
from sqlalchemy.exc import IntegrityError

from retoma.reconciliation.tables import (
    create_tables,
    financial_transaction,
    ledger_entry,
    metadata,
    posting_template,
)

ENTRY = {
    "job": "posting",
    "idempotency_key": "K",
    "transaction_id": 1,
    "reference_date": date(2026, 11, 30),
    "amount_minor": 1,
    "currency": "BRL",
    "entry_type": "FEE",
    "digest": "x",
}


def test_many_may_create_them_at_once(database_url: str) -> None:
    def create(_number: int) -> None:
        engine = create_engine(database_url)
        create_tables(engine)
        engine.dispose()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(create, range(6)))
    engine = create_engine(database_url)
    assert {*metadata.tables} <= set(inspect(engine).get_table_names())
    assert inspect(engine).get_view_names() == ["ledger_line"]
    with engine.connect() as connection:
        assert len(connection.execute(select(posting_template)).all()) == 8
    engine.dispose()


def add(engine: Engine, **changed: object) -> None:
    with engine.begin() as connection:
        connection.execute(insert(ledger_entry), {**ENTRY, **changed})


def test_an_effect_is_there_once(database_url: str) -> None:
    engine = create_engine(database_url)
    create_tables(engine)
    add(engine)
    with pytest.raises(IntegrityError):
        add(engine, transaction_id=2)
    with pytest.raises(IntegrityError):
        add(engine, idempotency_key="L")
    add(engine, idempotency_key="L", job="another")
    for twin in ("k", "K ", "Ķ"):  # folded together by some collations, and not the same
        add(engine, idempotency_key=twin, job=f"job {twin}")
    engine.dispose()


def test_an_entry_has_its_instant_in_utc(database_url: str) -> None:
    engine = create_engine(database_url)
    create_tables(engine)
    with engine.begin() as connection:
        if engine.dialect.name != "sqlite":
            zone = "'+05:00'" if engine.dialect.name == "mariadb" else "INTERVAL '+5 hours'"
            name = "time_zone =" if engine.dialect.name == "mariadb" else "TIME ZONE"
            connection.execute(text(f"SET {name} {zone}"))
        connection.execute(insert(ledger_entry), ENTRY)
        stored = connection.execute(select(ledger_entry.c.created_at)).scalar_one()
    engine.dispose()
    if stored.tzinfo is None:
        stored = stored.replace(tzinfo=UTC)
    assert abs(stored - datetime.now(UTC)) < timedelta(minutes=5)  # noqa: TID251 - the test's own


def test_the_source_keeps_what_came_in(database_url: str) -> None:
    engine = create_engine(database_url)
    create_tables(engine)
    row = {
        "id": 2**62,
        "external_id": "É 😀 ",
        "business_date": date(2026, 11, 30),
        "amount": "1e30",
        "currency": "",
        "payload": '{"a": "\\u0000\\ud800"}' + "x" * 10_000_000,
    }
    with engine.begin() as connection:
        connection.execute(insert(financial_transaction), row)
        stored = connection.execute(select(financial_transaction)).one()
    engine.dispose()
    assert {name: getattr(stored, name) for name in row} == row
    assert (stored.document, stored.status, stored.version) == (None, None, 1)
