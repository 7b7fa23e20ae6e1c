"""What a run found, as plain values: files, counts, matches by rule, breaks by type."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from sqlalchemy import Connection, Row, case, func, select, tuple_

from retoma import Store
from retoma.reconciliation.candidates import seen_in
from retoma.reconciliation.match_rules import BREAK_TYPES
from retoma.reconciliation.money import format_amount
from retoma.reconciliation.statement_files import files_of
from retoma.reconciliation.statement_lists import result_hash
from retoma.reconciliation.statement_tables import (
    recon_break,
    recon_break_sighting,
    recon_entry,
    recon_file,
    recon_line,
    recon_match,
)

_ENTRY, _MATCH, _BREAK = recon_entry.c, recon_match.c, recon_break.c


def result_of(store: Store, instance_id: int, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The stored result of an instance; money as text with its decimals, by currency."""
    with store.engine.connect() as connection:
        files = _files(connection, instance_id, parameters)
        return {
            "files": files,
            "matched": _matched(connection, instance_id),
            "matched_before": _matched_before(connection, instance_id, parameters),
            "breaks": _breaks(connection, instance_id),
            "result_hash": result_hash(connection, instance_id),
        }


def _files(
    connection: Connection, instance_id: int, parameters: Mapping[str, Any]
) -> list[dict[str, Any]]:
    inputs = files_of(parameters)
    keys = [(one.side, one.sha256) for one in inputs]
    key = tuple_(recon_file.c.side, recon_file.c.sha256)
    rows = connection.execute(select(recon_file).where(key.in_(keys)))
    known = {(row.side, row.sha256): row for row in rows}
    return [
        _file(connection, instance_id, known[one.side, one.sha256], one.name)
        for one in inputs
        if (one.side, one.sha256) in known
    ]


def _file(connection: Connection, instance_id: int, row: Row[Any], name: str) -> dict[str, Any]:
    line = recon_line.c
    mine = select(func.count()).where(line.file_id == row.id)
    new = select(func.count()).where(
        _ENTRY.file_id == row.id, _ENTRY.first_seen_instance == instance_id
    )
    conflicts = connection.execute(mine.where(line.is_conflict == 1)).scalar_one()
    stored = connection.execute(mine).scalar_one()
    added = connection.execute(new).scalar_one()
    return {
        "side": row.side,
        "name": name,
        "format": row.format,
        "bytes": row.bytes,
        "sha256": row.sha256,
        "lines": {
            "count": row.movements + row.balances + row.bad_records,
            "movements": row.movements,
            "balances": row.balances,
            "bad_records": row.bad_records,
            "new": added,
            "known_before": stored - added - conflicts,
            "conflicts": conflicts,
        },
        "warnings": json.loads(row.warnings),
        "proof": row.proof,
        "proof_reason": row.proof_reason,
    }


def _matched(connection: Connection, instance_id: int) -> dict[str, Any]:
    statement = (
        select(_MATCH.rule, _MATCH.currency, func.count(), func.sum(_MATCH.amount_minor))
        .where(_MATCH.instance_id == instance_id)
        .group_by(_MATCH.rule, _MATCH.currency)
        .order_by(_MATCH.rule, _MATCH.currency)
    )
    rules = [
        {
            "rule": rule,
            "currency": currency,
            "count": count,
            "sum": format_amount(int(total), currency),
        }
        for rule, currency, count, total in connection.execute(statement)
    ]
    return {"count": sum(one["count"] for one in rules), "by_rule": rules}


def _matched_before(connection: Connection, instance_id: int, parameters: Mapping[str, Any]) -> int:
    """Entries of these files that an earlier run had matched."""
    keys = [(one.side, one.sha256) for one in files_of(parameters)]
    key = tuple_(recon_file.c.side, recon_file.c.sha256)
    rows = connection.execute(
        select(recon_file.c.id, recon_file.c.side, recon_file.c.sha256).where(key.in_(keys))
    )
    files = {(row.side, row.sha256): row for row in rows}
    if not files:
        return 0
    statement = (
        select(func.count())
        .select_from(recon_entry)
        .join(recon_match, _MATCH.match_id == _ENTRY.match_id)
        .where(_MATCH.instance_id < instance_id, seen_in(files))
    )
    return int(connection.execute(statement).scalar_one())


def _breaks(connection: Connection, instance_id: int) -> dict[str, Any]:
    statement = (
        select(
            _BREAK.type,
            _BREAK.currency,
            func.count(),
            func.sum(_BREAK.amount_at_risk_minor),
            func.sum(_carried(instance_id)),
        )
        .join_from(
            recon_break_sighting, recon_break, recon_break_sighting.c.break_id == _BREAK.break_id
        )
        .where(recon_break_sighting.c.instance_id == instance_id)
        .group_by(_BREAK.type, _BREAK.currency)
        .order_by(_BREAK.type, _BREAK.currency)
    )
    types = [
        {
            "type": kind,
            "meaning": BREAK_TYPES[kind],
            "currency": currency,
            "count": count,
            "amount_at_risk": format_amount(int(total), currency),
            "seen_before": int(before),
        }
        for kind, currency, count, total, before in connection.execute(statement)
    ]
    return {"count": sum(one["count"] for one in types), "by_type": types}


def _carried(instance_id: int) -> Any:
    return case((_BREAK.first_seen_instance < instance_id, 1), else_=0)
