"""What becomes of one transaction, and what is read."""

from __future__ import annotations

from datetime import date
from typing import Any

import pytest
from sqlalchemy import Connection, create_engine, insert, text

from retoma import NotReady, SetAside, StepContext
from retoma.reconciliation.posting import JOB, input_of
from retoma.reconciliation.posting_rules import ENTRY_COLUMNS, to_entry
from retoma.reconciliation.tables import create_tables, financial_transaction

DAY = date(2026, 11, 30)
CPF = "12345678909"  # the textbook example, nobody's number

CLEAN = {
    "id": 7,
    "external_id": "E7",
    "amount": "1234.56",
    "currency": "BRL",
    "document": CPF,
    "status": "SETTLED",
    "entry_type": "PIX_IN",
    "payload": '{"channel": "app"}',
    "first_id": 7,
    "version": 1,
    "business_date": DAY,
}


def context(day: date = DAY) -> StepContext:
    return StepContext("posting", "post", 1, 1, {"reference_date": day})


def outcome(day: date = DAY, **changed: Any) -> Any:
    return to_entry(tuple({**CLEAN, **changed}.values()), context(day))


def entry(day: date = DAY, **changed: Any) -> dict[str, Any]:
    row = outcome(day, **changed)
    assert isinstance(row, tuple), row
    return dict(zip(ENTRY_COLUMNS, row, strict=True))


def test_a_clean_transaction_becomes_an_entry() -> None:
    assert entry() == {
        "job": "posting",
        "idempotency_key": "CONCILIACAO:20261130:7",
        "transaction_id": 7,
        "reference_date": "2026-11-30",
        "amount_minor": 123456,
        "currency": "BRL",
        "entry_type": "PIX_IN",
        "digest": entry()["digest"],
    }
    assert len(entry()["digest"]) == 32


def test_the_key_has_the_date_of_the_run_and_not_of_the_transaction() -> None:
    next_day = entry(date(2026, 12, 1))
    assert next_day["idempotency_key"] == "CONCILIACAO:20261201:7"
    assert next_day["digest"] == entry()["digest"]


@pytest.mark.parametrize(
    ("changed", "same"),
    [
        ({"amount": "1234.57"}, False),
        ({"currency": "USD"}, False),
        ({"entry_type": "FEE"}, False),
        ({"amount": "1234.5600"}, True),
        ({"payload": None}, True),
        ({"version": 2}, True),
        ({"document": "11222333000181"}, True),
    ],
)
def test_the_digest_is_of_what_the_entry_does(changed: dict[str, Any], same: bool) -> None:
    assert (entry(**changed)["digest"] == entry()["digest"]) is same


@pytest.mark.parametrize(
    ("changed", "reason", "field"),
    [
        *(({name: None}, "MISSING_FIELD", name) for name in list(CLEAN)[1:7]),
        *(
            ({name: ""}, "MISSING_FIELD", name)
            for name in ("external_id", "currency", "document", "status", "entry_type")
        ),
        ({"document": "12345678900"}, "INVALID_DOCUMENT", "document"),
        ({"document": "11111111111"}, "INVALID_DOCUMENT", "document"),
        ({"document": "2345678909"}, "INVALID_DOCUMENT", "document"),
        ({"document": "١٢٣٤٥٦٧٨٩٠٩"}, "INVALID_DOCUMENT", "document"),
        ({"first_id": 3}, "DUPLICATE_SOURCE", "external_id"),
        ({"status": "settled"}, "UNKNOWN_STATUS", "status"),
        ({"status": "SETTLED "}, "UNKNOWN_STATUS", "status"),
        ({"amount": "123.455"}, "ROUNDING", "amount"),
        ({"amount": "-0.001"}, "ROUNDING", "amount"),
        ({"amount": "12345.678"}, "ROUNDING", "amount"),
        ({"amount": "12.5", "currency": "JPY"}, "ROUNDING", "amount"),
        ({"amount": "1.500"}, "MALFORMED_AMOUNT", "amount"),  # 1.50, or one thousand five hundred
        ({"amount": ""}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "NaN"}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "Infinity"}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "1e30"}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "9" * 40}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "12.34\0"}, "MALFORMED_AMOUNT", "amount"),
        ({"amount": "١٢.٣٤"}, "MALFORMED_AMOUNT", "amount"),
        ({"currency": "XYZ"}, "MALFORMED_AMOUNT", "currency"),
        ({"currency": "brl"}, "MALFORMED_AMOUNT", "currency"),
    ],
)
def test_what_is_set_aside(changed: dict[str, Any], reason: str, field: str) -> None:
    found = outcome(**changed)
    assert isinstance(found, SetAside), found
    assert (found.reason, found.field) == (reason, field)


@pytest.mark.parametrize(
    "payload",
    [
        "",
        " ",
        "null",
        "[1]",
        '"text"',
        "7",
        '{"a": 1',
        '{"a": 1,}',
        "{'a': 1}",
        '{"a": 1} {}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": "\\u0000"}',
        '{"\\u0000": 1}',
        '{"a": ["x", {"b": "\\ud800"}]}',
        '{"a": "\ud800"}',
        '{"a": "\0"}',
        '{"a": "\t"}',
        '{"a": ' + "[" * 200 + "]" * 200 + "}",
        '{"a": ' + "[" * 100_000 + "]" * 100_000 + "}",
        '{"a": "' + "x" * 1_000_000 + '"}',
        '{"a": "' + "é" * 500_000 + '"}',
        '{"a": "' + "x" * 10_000_000 + '"}',
    ],
    ids=lambda payload: ascii(payload[:24]),
)
def test_a_malformed_payload_is_set_aside(payload: str) -> None:
    found = outcome(payload=payload)
    assert isinstance(found, SetAside), found
    assert (found.reason, found.field) == ("MALFORMED_PAYLOAD", "payload")


@pytest.mark.parametrize(
    "payload",
    [
        None,
        "{}",
        ' \n{"a": 1}\r\n',
        '{"a": "\\u00e9\\ud83d\\ude00"}',
        '{"a": "é"}',
        '{"a": 1e999, "b": ' + "9" * 10_000 + "}",
        '{"a": ' + "[" * 199 + "]" * 199 + "}",
        "{" + ",".join(f'"k{n}": {{}}' for n in range(1000)) + "}",
        '{"a": "' + "x" * 999_000 + '"}',
    ],
    ids=lambda payload: ascii((payload or "none")[:24]),
)
def test_a_strange_but_sound_payload_is_no_reason(payload: str | None) -> None:
    assert entry(payload=payload)["transaction_id"] == 7


@pytest.mark.parametrize(
    ("amount", "currency", "minor"),
    [
        ("0.05", "BRL", 5),
        ("-12.34", "BRL", -1234),
        ("12", "BRL", 1200),
        ("12.5", "BRL", 1250),
        ("1.234,56", "BRL", 123456),
        ("12.3400000", "BRL", 1234),
        ("1234", "JPY", 1234),
        ("1.234", "KWD", 1234),
    ],
)
def test_amounts_become_minor_units(amount: str, currency: str, minor: int) -> None:
    assert entry(amount=amount, currency=currency)["amount_minor"] == minor


def test_what_is_not_settled_yet_is_deferred() -> None:
    found = outcome(status="PENDING")
    assert isinstance(found, NotReady)
    assert (found.reason, found.field) == ("PENDING_STATUS", "status")
    # The source may still correct it; a duplicate stays one.
    assert isinstance(outcome(status="PENDING", document="1"), NotReady)
    assert isinstance(outcome(status="PENDING", first_id=1), SetAside)


@pytest.mark.parametrize(
    "changed",
    [
        {"document": "12345678900"},
        {"amount": "98765.432"},
        {"amount": "98765x"},
        {"payload": '{"name": "Maria da Silva"'},
        {"status": "Maria da Silva"},
        {"currency": "Maria da Silva"},
    ],
)
def test_no_message_holds_a_value_of_the_source(changed: dict[str, Any]) -> None:
    found = outcome(**changed)
    assert isinstance(found, SetAside)
    for value in ("Maria", CPF, "12345678900", "98765"):
        assert value not in found.message


def test_the_document_is_declared_personal() -> None:
    assert JOB.step("post").personal == ("document",)  # type: ignore[union-attr]


# ---------------------------------------------------------------------------------------------
# What is read.


def add(connection: Connection, ident: int, day: date, external_id: str) -> None:
    row = {**CLEAN, "id": ident, "business_date": day, "external_id": external_id}
    del row["first_id"]
    connection.execute(insert(financial_transaction), row)


def read(connection: Connection, day: date) -> dict[int, int]:
    rows = connection.execute(input_of(context(day)).order_by(financial_transaction.c.id))
    return {row.id: row.first_id for row in rows}


def defer(connection: Connection, key: str, state: str = "NOT_READY", job: str = "posting") -> None:
    connection.execute(
        text("INSERT INTO batch_item_error VALUES (:job, :state, :key)"),
        {"job": job, "state": state, "key": key},
    )


def test_the_input_is_the_day_and_what_was_deferred_before(database_url: str) -> None:
    engine = create_engine(database_url)
    create_tables(engine)
    before, after = date(2026, 11, 29), date(2026, 12, 1)
    names = "job_name VARCHAR(99), state VARCHAR(99), item_key VARCHAR(99)"
    with engine.begin() as connection:
        # As the control store has it: on MariaDB compared byte by byte.
        collation = " COLLATE utf8mb4_nopad_bin" if engine.dialect.name == "mariadb" else ""
        names = names.replace("(99)", f"(99){collation}")
        connection.execute(text(f"CREATE TABLE batch_item_error ({names})"))
        for ident, day, external_id in (
            (1, before, "A"),
            (2, before, "B"),
            (3, before, "C"),
            (4, before, "D"),
            (5, DAY, "A"),
            (6, DAY, "X"),
            (7, DAY, "X"),
            (8, after, "X"),
            (9, after, "Y"),
            (10, DAY, "Y"),  # the day can't know of what comes after it, whatever its number
        ):
            add(connection, ident, day, external_id)
        defer(connection, "2")
        defer(connection, "3", state="SET_ASIDE")
        defer(connection, "4", job="another")
        defer(connection, "8")
    with engine.connect() as connection:
        assert read(connection, DAY) == {2: 2, 5: 1, 6: 6, 7: 6, 10: 10}
        assert read(connection, before) == {1: 1, 2: 2, 3: 3, 4: 4}
    post(engine, 2, DAY)
    with engine.connect() as connection:
        assert 2 in read(connection, DAY)  # the input of a day does not shrink while it is posted
        assert 2 not in read(connection, after)
    engine.dispose()


def post(engine: Any, ident: int, day: date) -> None:
    statement = (
        "INSERT INTO ledger_entry (job, idempotency_key, transaction_id, reference_date,"
        " amount_minor, currency, entry_type, digest)"
        " VALUES ('posting', :key, :id, :day, 1, 'BRL', 'FEE', 'x')"
    )
    values = {"key": f"K{ident}", "id": ident, "day": day.isoformat()}
    with engine.begin() as connection:
        connection.execute(text(statement), values)


def test_each_entry_has_two_lines_that_balance(database_url: str) -> None:
    engine = create_engine(database_url)
    create_tables(engine)
    create_tables(engine)  # a second time changes nothing
    for ident, minor in ((1, 500), (2, -300), (3, 0)):
        post(engine, ident, DAY)
        with engine.begin() as connection:
            change = "UPDATE ledger_entry SET amount_minor = :minor WHERE transaction_id = :id"
            connection.execute(text(change), {"minor": minor, "id": ident})
    with engine.begin() as connection:
        connection.execute(
            text("UPDATE ledger_entry SET entry_type = 'NEW' WHERE transaction_id = 3")
        )
        rows = connection.execute(
            text(
                "SELECT e.transaction_id, l.line_no, l.account, l.debit_minor, l.credit_minor"
                " FROM ledger_line l JOIN ledger_entry e ON e.id = l.entry_id ORDER BY 1, 2"
            )
        ).all()
    engine.dispose()
    fee, deposits, suspense = "4.1.01 fee income", "2.1.01 customer deposits", "9.9.01 suspense"
    assert [tuple(row) for row in rows] == [
        (1, 1, deposits, 500, 0),
        (1, 2, fee, 0, 500),
        (2, 1, deposits, 0, 300),
        (2, 2, fee, 300, 0),
        (3, 1, suspense, 0, 0),
        (3, 2, suspense, 0, 0),
    ]
