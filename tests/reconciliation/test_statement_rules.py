"""The rules of matching, by small tables."""

from __future__ import annotations

import itertools
from datetime import date
from typing import Any

import pytest

from retoma.reconciliation.account_names import resolve_account, resolve_currency
from retoma.reconciliation.match_rules import (
    BREAK_TYPES,
    Candidate,
    break_id,
    break_type,
    match_id,
    pair_by_content,
    pair_by_identifier,
)
from retoma.reconciliation.statement_tables import STATEMENT, TRANSACTIONS

_ids = itertools.count(1)


def one(side: str, key: str, amount: int = 100, **more: Any) -> Candidate:
    values = {
        "occurrence": 1,
        "account": "1",
        "booking_date": date(2026, 8, 1),
        "currency": "BRL",
        "e2e_id": "",
        "fitid": "",
    }
    return Candidate(id=next(_ids), side=side, natural_key=key, amount=amount, **{**values, **more})


def left(key: str, amount: int = 100, **more: Any) -> Candidate:
    return one(STATEMENT, key, amount, **more)


def right(key: str, amount: int = 100, **more: Any) -> Candidate:
    return one(TRANSACTIONS, key, amount, **more)


def names(pairs: list[tuple[Candidate, Candidate]]) -> set[str]:
    return {f"{a.natural_key}{b.natural_key}" for a, b in pairs}


IDENTIFIER = {
    "equal": ([left("a"), right("b")], {"ab"}, set(), set()),
    "one side only": ([left("a"), left("b")], set(), set(), set()),
    "another amount": ([left("a", 1), right("b", 2)], set(), {"ab"}, set()),
    "another currency": ([left("a"), right("b", currency="USD")], set(), {"ab"}, set()),
    "equal before linked": ([left("a"), right("b", 9), right("c")], {"ac"}, set(), {"b"}),
    "sent twice": ([left("a"), right("b"), right("c")], {"ab"}, set(), {"c"}),
    "pairs and a link": (
        [left("a"), left("b", 5), right("c"), right("d", 6)], {"ac"}, {"bd"}, set(),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", IDENTIFIER)
def test_by_identifier(name: str) -> None:
    group, pairs, linked, surplus = IDENTIFIER[name]
    for order in itertools.permutations(group):
        found = pair_by_identifier(order)
        assert names(found.pairs) == pairs
        assert names(found.linked) == linked
        assert {each.natural_key for each in found.surplus} == surplus


X, Y = {"e2e_id": "X"}, {"e2e_id": "Y"}
CONTENT = {
    "one and one": ([left("a"), right("b")], {"ab"}),
    "k and k by ordinal": ([left("a"), left("b"), right("c"), right("d")], {"ac", "bd"}),
    "the surplus stays": ([left("a"), left("b"), right("c")], {"ac"}),
    "other payments": ([left("a", **X), right("b", **Y)], set()),
    "one does not say": ([left("a", **X), right("b")], {"ab"}),
    "none with none first": (
        [left("a", **X), left("b"), right("c", **Y), right("d")], {"bd"},
    ),
    "equal bank ids first": (
        [left("a", fitid="1"), left("b", fitid="2"), right("c", fitid="2"), right("d")],
        {"bc", "ad"},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", CONTENT)
def test_by_content(name: str) -> None:
    group, pairs = CONTENT[name]
    for order in itertools.permutations(group):
        assert names(pair_by_content(order)) == pairs


def test_occurrences_pair_in_their_order() -> None:
    lefts = [left("a", occurrence=number) for number in (2, 1, 3)]
    (pair,) = pair_by_content([*lefts, right("b")])
    assert pair[0].occurrence == 1


@pytest.mark.parametrize(
    ("statement", "transaction", "expected"),
    [
        ((100, "BRL"), (90, "BRL"), "AMOUNT_OVER"),
        ((90, "BRL"), (100, "BRL"), "AMOUNT_UNDER"),
        ((-100, "BRL"), (-90, "BRL"), "AMOUNT_OVER"),
        ((-100, "BRL"), (100, "BRL"), "DIRECTION"),
        ((100, "BRL"), (100, "USD"), "CURRENCY"),
    ],
)
def test_how_a_linked_pair_disagrees(
    statement: tuple[int, str], transaction: tuple[int, str], expected: str
) -> None:
    pair = (
        left("a", statement[0], currency=statement[1]),
        right("b", transaction[0], currency=transaction[1]),
    )
    assert break_type(*pair) == expected
    assert expected in BREAK_TYPES


def test_ids_depend_on_content_only() -> None:
    first, second = (left("a"), right("b")), (left("a"), right("b"))
    assert match_id(first, "R") == match_id(second, "R") == match_id(first[::-1], "R")
    assert match_id(first, "R") != match_id(first, "S")
    assert break_id([left("a")], "T") != break_id([right("a")], "T")


@pytest.mark.parametrize(
    ("account", "statements", "expected"),
    [
        ("60006", ["0999/60006"], "0999/60006"),
        ("6000-6", ["0999/0001/60006"], "0999/0001/60006"),
        ("060006", ["0999/60006"], "0999/60006"),
        ("0999/60006", ["0999/60006", "0888/60006"], "0999/60006"),
        ("60006", ["0999/60006", "0888/60006"], None),
        ("", ["0999/60006"], "0999/60006"),
        ("", ["0999/60006", "0999/7"], None),
        ("7", ["0999/60006"], None),
        ("60006", [""], ""),
        ("0006", ["0999/60006"], None),
    ],
)
def test_an_account_is_known_by_its_last_parts(
    account: str, statements: list[str], expected: str | None
) -> None:
    assert resolve_account(account, statements) == expected


@pytest.mark.parametrize(
    ("others", "expected"),
    [(["BRL"], "BRL"), (["BRL", "USD"], None), (["JPY"], None), ([""], None), (["", "BRL"], "BRL")],
)
def test_an_unnamed_currency_is_the_only_one(others: list[str], expected: str | None) -> None:
    assert resolve_currency(others) == expected
