"""A made-up night: the same for the same seed, every kind in it, and labels that are right."""

from __future__ import annotations

import json
from collections import Counter
from datetime import date, timedelta
from random import Random
from typing import Any

import pytest
from sqlalchemy import Engine, create_engine, select, text

from retoma import Store, UsageError
from retoma.reconciliation import synthetic_people as people
from retoma.reconciliation.synthetic import make_night, night_rows
from retoma.reconciliation.synthetic_faults import SPOILS
from retoma.reconciliation.tables import financial_transaction, synthetic_truth

DAY = date(2026, 11, 30)
KINDS = {"POSTED", *SPOILS}


def night_of(engine: Engine) -> tuple[list[Any], list[Any]]:
    with engine.connect() as connection:
        rows = connection.execute(select(financial_transaction).order_by("id")).all()
        labels = connection.execute(select(synthetic_truth).order_by("transaction_id")).all()
    return list(rows), list(labels)


def test_the_same_seed_gives_the_same_night_on_every_database(database_url: str) -> None:
    engine = create_engine(database_url)
    totals = make_night(engine, 1_500, 3, DAY)
    rows, labels = night_of(engine)
    engine.dispose()
    made = list(night_rows(Random(f"3:{DAY}"), 1_500, 0, DAY))
    dated = [(*row[:2], date.fromisoformat(row[2]), *row[3:], 1) for row, _ in made]
    assert [tuple(row) for row in rows] == dated
    assert [tuple(label) for label in labels] == [label for _, label in made]
    assert totals.transactions == len(rows) == 1_500
    assert (totals.first_id, totals.last_id) == (rows[0].id, rows[-1].id)
    assert totals.outcomes == Counter(label.outcome for label in labels)
    assert totals.entries + totals.item_errors + totals.deferred == 1_500
    assert set(totals.outcomes) == KINDS
    assert rows[-1].id > 1_500  # there are gaps


def test_another_seed_or_date_gives_another_night() -> None:
    def made(seed: int, day: date) -> list[Any]:
        return [row[3:] for row, _ in night_rows(Random(f"{seed}:{day}"), 100, 0, day)]

    assert made(1, DAY) == made(1, DAY)
    assert made(1, DAY) != made(2, DAY)
    assert made(1, DAY) != made(1, DAY + timedelta(days=1))


@pytest.mark.parametrize("seed", range(20))
def test_a_thousand_rows_have_every_kind(seed: int) -> None:
    labels = [label[1] for _, label in night_rows(Random(seed), 1_000, 0, DAY)]
    outcomes = Counter(labels)
    assert set(outcomes) == KINDS
    assert 0.98 < outcomes["POSTED"] / 1_000 < 0.99
    assert set(labels[::66]) == {"POSTED"}  # so that a duplicate always follows a clean row


def test_labels_say_what_the_rows_are() -> None:
    seen: set[str] = set()
    for row, (ident, outcome, minor) in night_rows(Random(5), 20_000, 0, DAY):
        _, external_id, _, amount, currency, document, status, entry_type, payload = row
        is_complete = None not in (external_id, amount, currency, document, status, entry_type)
        assert ident == row[0]
        assert is_complete == (outcome != "MISSING_FIELD")
        assert (minor is None) == (outcome != "POSTED")
        assert (external_id in seen) == (outcome == "DUPLICATE_SOURCE")
        assert (status == "PENDING") == (outcome == "PENDING_STATUS")
        if is_complete:
            seen.add(external_id)
            assert (status in ("SETTLED", "PENDING")) == (outcome != "UNKNOWN_STATUS")
            assert is_document(document) == (outcome != "INVALID_DOCUMENT")
        if outcome == "POSTED":
            assert plain_minor(amount, currency) == minor
            assert (minor < 0) == (entry_type == "REFUND")
            assert payload is None or isinstance(json.loads(payload), dict)


def test_documents_are_mixed_as_promised() -> None:
    rng = Random(9)
    made = [people.document(rng, rng.getrandbits(80)) for _ in range(20_000)]
    plain = ["".join(filter(str.isalnum, document)) for document in made]
    assert all(map(is_document, plain))
    assert len(set(plain)) > 19_900
    shares = Counter(
        "cpf" if len(one) == 11 else "cnpj" if one.isdigit() else "letters" for one in plain
    )
    for kind, share in (("cpf", 0.80), ("cnpj", 0.15), ("letters", 0.05)):
        assert abs(shares[kind] / 20_000 - share) < 0.01
    assert sum(one.startswith("0") for one in plain) > 1_000
    assert 0.03 < sum(one != bare for one, bare in zip(made, plain, strict=True)) / 20_000 < 0.07


def test_the_published_examples_come_out() -> None:
    assert people.cpf(123_456_789) == "12345678909"
    assert people.cnpj("112223330001") == "11222333000181"
    assert people.cnpj("12ABC34501DE") == "12ABC34501DE35"  # the example of IN RFB 2.229/2024
    assert people.cpf(111_111_111) != "11111111111"
    assert len(set(people.cpf(999_999_999))) > 1


def test_two_nights_live_in_one_database(sqlite_url: str) -> None:
    store = Store(sqlite_url)  # a driver in autocommit mode
    first = make_night(store.engine, 50, 1, DAY)
    second = make_night(store.engine, 50, 1, DAY + timedelta(days=1))
    assert second.first_id > first.last_id
    with pytest.raises(UsageError, match="already"):
        make_night(store.engine, 50, 2, DAY)
    with pytest.raises(UsageError, match="between"):
        make_night(store.engine, 0, 2, DAY + timedelta(days=2))
    assert len(night_of(store.engine)[0]) == 100
    store.dispose()


def test_a_second_night_finds_its_indexes(postgres_url: str) -> None:
    engine = create_engine(postgres_url)
    question = text("SELECT indexname FROM pg_indexes WHERE tablename = 'financial_transaction'")
    for number in range(2):
        make_night(engine, 100, 1, DAY + timedelta(days=number))
        with engine.connect() as connection:
            names = set(connection.execute(question).scalars())
        assert {"ix_financial_transaction_date", "ix_financial_transaction_external"} < names
    assert len(night_of(engine)[0]) == 200
    engine.dispose()


# ---------------------------------------------------------------------------------------------
# The rules of the tax office by the book: sum of products, 11 minus the rest, 0 if that is over 9.


def digit(values: list[int], weights: range | list[int]) -> int:
    rest = sum(value * weight for value, weight in zip(values, weights, strict=True)) % 11
    return 0 if rest < 2 else 11 - rest


def is_document(document: str) -> bool:
    bare = document.replace(".", "").replace("-", "").replace("/", "")
    values = [ord(character) - 48 for character in bare]
    if len(bare) == 11 and bare.isdigit():
        first, second = range(10, 1, -1), range(11, 1, -1)
        good = [digit(values[:9], first), digit(values[:10], second)] == values[9:]
        return good and len(set(bare)) > 1
    if len(bare) == 14 and bare.isalnum() and bare[12:].isdigit():
        weights = [5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2]
        return [digit(values[:12], weights), digit(values[:13], [6, *weights])] == values[12:]
    return False


def plain_minor(amount: str, currency: str) -> int:
    if currency == "JPY":
        return int(amount)
    if "," in amount:
        return int(amount.replace(".", "").replace(",", ""))
    whole, decimals = amount.split(".")
    assert decimals[2:] in ("", "00")
    return int(whole + decimals[:2])
