"""Read-only lists for people, in pages by key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from sqlalchemy import select

from retoma.store import tables
from retoma.store.session import Session

ERROR_COLUMNS = (
    "id", "item_key", "state", "kind", "reason", "field", "message", "payload", "step_name",
    "chunk_id", "run_id", "due_at", "created_at",
)  # fmt: skip
_RUN_COLUMNS = (
    "id", "job_name", "state", "parameters", "created_at", "finished_at", "failure",
)  # fmt: skip
_PAGE = 5_000


def recent_runs(session: Session, limit: int) -> list[Any]:
    """The newest runs, newest first."""
    table = tables.run
    columns = [table.c[name] for name in _RUN_COLUMNS]
    return session.fetch("run.recent", select(*columns).order_by(table.c.id.desc()).limit(limit))


def item_errors(
    session: Session,
    instance_id: int,
    *,
    reason: str | None,
    state: str | None,
    limit: int | None,
) -> Iterator[dict[str, Any]]:
    """The item errors of an instance in the order of their ids; memory holds one page."""
    table = tables.item_error
    last = given = 0
    while limit is None or given < limit:
        size = _PAGE if limit is None else min(_PAGE, limit - given)
        statement = (
            select(*(table.c[name] for name in ERROR_COLUMNS))
            .where(table.c.instance_id == instance_id, table.c.id > last)
            .order_by(table.c.id)
            .limit(size)
        )
        if reason is not None:
            statement = statement.where(table.c.reason == reason)
        if state is not None:
            statement = statement.where(table.c.state == state)
        rows = session.fetch("errors.page", statement)
        for error in rows:
            yield dict(error._mapping)
        if len(rows) < size:
            return
        given += len(rows)
        last = rows[-1].id
