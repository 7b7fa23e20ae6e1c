"""Which account and currency of the statements a transaction means that names them in its own way."""

from __future__ import annotations

import re
from collections.abc import Iterable

from retoma.reconciliation.money import exponent_of

_NO_MARK = re.compile(r"[^0-9A-Z]+")


def parts_of(account: str) -> tuple[str, ...]:
    """The parts of an account (bank/branch/number) without marks and leading zeros."""
    parts = (_NO_MARK.sub("", part.upper()).lstrip("0") for part in account.split("/"))
    return tuple(part for part in parts if part)


def resolve_account(account: str, statements: Iterable[str]) -> str | None:
    """The one statement's account that this account names; None if none or several.

    An account names another if its parts are the last parts of the other, or the other way round:
    '12345-6' names '0341/0001/123456'. No account at all names the only one that there is.
    """
    known = set(statements)
    if account in known and account:
        return account
    mine = parts_of(account)
    found = [other for other in known if _is_end(mine, parts_of(other))]
    return found[0] if len(found) == 1 else None


def resolve_currency(others: Iterable[str]) -> str | None:
    """What an unnamed currency stands for: the only one of the other side, if it has two decimals."""
    named = {currency for currency in others if currency}
    if len(named) != 1:
        return None
    (currency,) = named
    return currency if exponent_of(currency) == 2 else None


def _is_end(one: tuple[str, ...], other: tuple[str, ...]) -> bool:
    length = min(len(one), len(other))
    return not length or one[-length:] == other[-length:]
