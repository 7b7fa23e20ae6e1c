"""Which statement line belongs to which transaction: pure rules over small groups.

Every rule is deterministic by natural key and occurrence, never by ids or arrival. Entries that
name different end-to-end ids are different payments, whatever else agrees.
"""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Final

from retoma.reconciliation.statement_tables import STATEMENT

END_TO_END: Final = "END_TO_END_ID"
BANK_ID: Final = "BANK_ID"
CONTENT: Final = "CONTENT"

BREAK_TYPES: Final[dict[str, str]] = {
    "MISSING_LEFT": "among the transactions, not on the statement",
    "MISSING_RIGHT": "on the statement, not among the transactions",
    "AMOUNT_OVER": "linked by its identifier; the statement has more than the transaction",
    "AMOUNT_UNDER": "linked by its identifier; the statement has less than the transaction",
    "CURRENCY": "linked by its identifier; the currencies differ",
    "DIRECTION": "linked by its identifier; one is a debit, the other a credit",
    "DUPLICATE_SOURCE": "the same identifier came more often than on the other side",
}
"""Each type of break in words. Left is the statement, right are the transactions."""

SHORTEST_STRONG_ID: Final = 8
"""A shorter bank id is a counter more often than an identifier: it only refines other rules."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """An entry that has no partner yet."""

    id: int
    side: str
    natural_key: str
    occurrence: int
    account: str
    booking_date: date
    amount: int
    currency: str
    e2e_id: str
    fitid: str

    @property
    def key(self) -> str:
        """What names the entry, whatever database it is in."""
        return f"{self.side}:{self.natural_key}:{self.occurrence}"


Pair = tuple[Candidate, Candidate]


@dataclass(slots=True)
class Pairing:
    """What a rule found: pairs, linked pairs that disagree, and surplus of a paired identifier."""

    pairs: list[Pair] = field(default_factory=list)
    linked: list[Pair] = field(default_factory=list)
    surplus: list[Candidate] = field(default_factory=list)


def pair_by_identifier(group: Iterable[Candidate]) -> Pairing:
    """Entries of one strong identifier: equal amount and currency first, then linked."""
    left, right = _sides(group)
    result = Pairing()
    if not left or not right:
        return result
    by_effect: defaultdict[tuple[int, str], tuple[list[Candidate], list[Candidate]]]
    by_effect = defaultdict(lambda: ([], []))
    for one in left:
        by_effect[one.amount, one.currency][0].append(one)
    for one in right:
        by_effect[one.amount, one.currency][1].append(one)
    for lefts, rights in by_effect.values():
        result.pairs += _zip(lefts, rights)
    taken = {one.id for pair in result.pairs for one in pair}
    result.linked = _zip(
        [a for a in left if a.id not in taken], [b for b in right if b.id not in taken]
    )
    taken |= {one.id for pair in result.linked for one in pair}
    if taken:
        result.surplus = [one for one in (*left, *right) if one.id not in taken]
    return result


def pair_by_content(group: Iterable[Candidate]) -> list[Pair]:
    """Entries of one account, date, amount and currency, k by k; equal bank ids first."""
    left, right = _sides(group)
    if not left or not right:
        return []
    pairs: list[Pair] = []
    by_id = defaultdict(list)
    for one in right:
        if one.fitid:
            by_id[one.fitid].append(one)
    for one in left:
        if one.fitid and one.fitid in by_id:
            pairs += _zip([one], by_id[one.fitid][:1])
            if pairs and pairs[-1][0] is one:
                by_id[one.fitid].pop(0)
    taken = {one.id for pair in pairs for one in pair}
    return pairs + _zip(
        [a for a in left if a.id not in taken], [b for b in right if b.id not in taken]
    )


def break_type(left: Candidate, right: Candidate) -> str:
    """How a linked pair disagrees."""
    if left.currency != right.currency:
        return "CURRENCY"
    if (left.amount < 0) != (right.amount < 0):
        return "DIRECTION"
    return "AMOUNT_OVER" if abs(left.amount) > abs(right.amount) else "AMOUNT_UNDER"


def match_id(pair: Pair, rule: str) -> str:
    """The same for the same two entries and rule, in any run and database."""
    return _hash(*sorted(one.key for one in pair), rule)


def break_id(entries: Sequence[Candidate], kind: str) -> str:
    """The same for the same entries and type, in any run and database."""
    return _hash(*sorted(one.key for one in entries), kind)


def _sides(group: Iterable[Candidate]) -> tuple[list[Candidate], list[Candidate]]:
    ordered = sorted(group, key=lambda one: (one.natural_key, one.occurrence))
    left = [one for one in ordered if one.side == STATEMENT]
    return left, [one for one in ordered if one.side != STATEMENT]


def _zip(left: Sequence[Candidate], right: Sequence[Candidate]) -> list[Pair]:
    """Pair by ordinal: equal end-to-end ids, then none with none, then one that lacks it."""
    lefts, rights = _by_end_to_end(left), _by_end_to_end(right)
    pairs: list[Pair] = []
    for name in sorted(lefts.keys() & rights.keys() - {""}):
        pairs += _take(lefts[name], rights[name])
    pairs += _take(lefts.get("", []), rights.get("", []))
    pairs += _take(_named(lefts), rights.get("", []))
    pairs += _take(lefts.get("", []), _named(rights))
    return pairs


def _by_end_to_end(entries: Sequence[Candidate]) -> dict[str, list[Candidate]]:
    found: dict[str, list[Candidate]] = {}
    for one in entries:
        found.setdefault(one.e2e_id, []).append(one)
    return found


def _named(entries: dict[str, list[Candidate]]) -> list[Candidate]:
    rest = [one for name, ones in entries.items() if name for one in ones]
    return sorted(rest, key=lambda one: (one.natural_key, one.occurrence))


def _take(left: list[Candidate], right: list[Candidate]) -> list[Pair]:
    """The pairs by ordinal; both lists keep what is left."""
    pairs = list(zip(left, right, strict=False))
    del left[: len(pairs)], right[: len(pairs)]
    return pairs


def _hash(*parts: str) -> str:
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()
