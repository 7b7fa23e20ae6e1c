"""Matches and breaks of a run one by one, in the order of their ids, and a digest over them."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from datetime import date
from typing import Any

from sqlalchemy import Connection, Select, select

from retoma import mask_text
from retoma.reconciliation.money import format_amount
from retoma.reconciliation.statement_tables import (
    recon_break,
    recon_break_sighting,
    recon_entry,
    recon_match,
)

_PAGE = 5_000
_MATCH, _BREAK = recon_match.c, recon_break.c


def matches(connection: Connection, instance_id: int) -> Iterator[dict[str, Any]]:
    """The matches of the instance in the order of their ids, accounts masked."""
    left, right = recon_entry.alias("l"), recon_entry.alias("r")
    statement = (
        select(
            _MATCH.match_id,
            _MATCH.rule,
            _MATCH.amount_minor,
            _MATCH.currency,
            left.c.account_masked.label("account"),
            left.c.booking_date.label("statement_date"),
            right.c.booking_date.label("transaction_date"),
            left.c.fitid.label("statement_id"),
            right.c.fitid.label("transaction_id"),
            left.c.e2e_id.label("end_to_end_id"),
            left.c.description.label("statement_description"),
            right.c.description.label("transaction_description"),
        )
        .join_from(recon_match, left, left.c.id == _MATCH.statement_entry_id)
        .join(right, right.c.id == _MATCH.transaction_entry_id)
        .where(_MATCH.instance_id == instance_id)
    )
    yield from _paged(connection, statement, _MATCH.match_id)


def breaks(connection: Connection, instance_id: int) -> Iterator[dict[str, Any]]:
    """The breaks of the instance in the order of their ids, accounts masked."""
    first, other = recon_entry.alias("f"), recon_entry.alias("o")
    statement = (
        select(
            _BREAK.break_id,
            _BREAK.type,
            _BREAK.state,
            _BREAK.side,
            _BREAK.booking_date,
            _BREAK.amount_at_risk_minor,
            _BREAK.currency,
            first.c.amount_minor,
            other.c.amount_minor.label("other_amount_minor"),
            other.c.currency.label("other_currency"),
            first.c.account_masked.label("account"),
            first.c.fitid.label("id"),
            first.c.e2e_id.label("end_to_end_id"),
            first.c.document_no,
            first.c.description,
            other.c.description.label("other_description"),
        )
        .join_from(
            recon_break_sighting, recon_break, recon_break_sighting.c.break_id == _BREAK.break_id
        )
        .join(first, first.c.id == _BREAK.entry_id)
        .outerjoin(other, other.c.id == _BREAK.other_entry_id)
        .where(recon_break_sighting.c.instance_id == instance_id)
    )
    yield from _paged(connection, statement, _BREAK.break_id)


def _paged(connection: Connection, statement: Select[Any], key: Any) -> Iterator[dict[str, Any]]:
    """All rows by keyset; memory holds one page. Minor units become amounts with decimals."""
    names = list(statement.selected_columns.keys())
    last = ""
    while True:
        rows = connection.execute(statement.where(key > last).order_by(key).limit(_PAGE)).all()
        for row in rows:
            yield _plain(dict(zip(names, row, strict=True)))
        if len(rows) < _PAGE:
            return
        last = rows[-1][0]


def _plain(row: Mapping[str, Any]) -> dict[str, Any]:
    plain: dict[str, Any] = {}
    for name, value in row.items():
        if name.endswith("_minor"):
            currency = row["other_currency"] if name.startswith("other") else row["currency"]
            plain[name.removesuffix("_minor")] = (
                "" if value is None else format_amount(value, currency or "")
            )
        elif name == "document_no":
            plain[name] = mask_text(value)  # some banks write a CPF or CNPJ there
        else:
            plain[name] = value.isoformat() if isinstance(value, date) else value
    return plain


def result_hash(connection: Connection, instance_id: int) -> str:
    """A digest over keys, amounts and outcomes: equal for equal inputs, however they were run."""
    digest = hashlib.sha256()
    for row in matches(connection, instance_id):
        digest.update(f"{row['match_id']} {row['amount']} {row['currency']}\n".encode())
    for row in breaks(connection, instance_id):
        digest.update(f"{row['break_id']} {row['type']} {row['amount_at_risk']}\n".encode())
    return digest.hexdigest()
