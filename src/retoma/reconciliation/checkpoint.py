"""A position in a file as the control tables may keep it: without the account's number.

What a format needs to read on is kept beside the offset, save the account of an OFX statement. In
its place stands the offset at which that statement begins; the account is read from there again.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from retoma.reconciliation.reading import read_records
from retoma.reconciliation.statement import Note, Position

_NO_ACCOUNT = ["", "", ""]


def to_key(position: Position, statement_at: int | None) -> dict[str, Any]:
    """The position as JSON values; ``statement_at`` is where its statement begins, if in one."""
    context = dict(position.context)
    has_account = context.pop("account", None) not in (None, _NO_ACCOUNT)
    if has_account:
        context["statement_at"] = statement_at
    return {"offset": position.offset, "context": context}


def from_key(path: str, key: Mapping[str, Any]) -> tuple[Position, int | None]:
    """The position, and where its statement begins; raises StatementError."""
    context = dict(key["context"])
    statement_at = context.pop("statement_at", None)
    if context["format"] == "ofx":
        context["account"] = _NO_ACCOUNT
        if statement_at is not None:
            context["account"] = _account_at(path, statement_at, context)
    return Position(int(key["offset"]), context), statement_at


def _account_at(path: str, offset: int, context: Mapping[str, Any]) -> Any:
    start = {**context, "statement": 0, "currency": "", "in_list": False, "record_no": 0}
    for _, position in read_records(path, Position(offset, start), _ignore):
        return position.context["account"]
    return _NO_ACCOUNT


def _ignore(_: Note) -> None:
    """Only the account is wanted."""
