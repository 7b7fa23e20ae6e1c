"""What people ask: how far a run is, what was set aside. Read-only, no count over item tables."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from retoma.errors import UsageError
from retoma.model.records import StepProgress
from retoma.store import insight, progress, runs, tables
from retoma.store.session import Session
from retoma.store.store import Store


def status(store: Store, run_id: int) -> dict[str, Any]:
    """How a run stands, as plain values: state, steps, counts, chunks, who coordinates it."""
    session = store.control()
    try:
        return _status(session, run_id)
    finally:
        session.close()


def _status(session: Session, run_id: int) -> dict[str, Any]:
    row = runs.get(session, run_id)
    if row is None:
        raise UsageError(f"there is no run {run_id}", next_step="retoma status lists the runs")
    steps = []
    chunks = {"completed": 0, "running": 0, "pending": 0, "failed": 0}
    totals = dict.fromkeys(tables.COUNTS, 0)
    expected = 0
    for step in progress.steps_of(session, row.instance_id):
        now = progress.of_step(session, step.step_id)
        for name in chunks:
            chunks[name] += getattr(now, name)
        counts = asdict(now.counts)
        for name in totals:
            totals[name] += counts[name]
        expected += step.pinned_count or 0
        steps.append(_step(step.name, step.state, step.pinned_count, step.failure, now))
    return {
        "run": run_id,
        "job": row.job_name,
        "instance": row.instance_id,
        "state": row.state,
        "parameters": json.loads(row.parameters),
        "coordinator": row.coordinator,
        "stop_requested": row.stop_requested,
        "failure": row.failure,
        "failure_kind": row.failure_kind,
        "items_total": expected,
        "items_read": totals["first_reads"],
        **{name: totals[name] for name in tables.COUNTS if name != "first_reads"},
        "chunks": chunks,
        "steps": steps,
    }


def _step(
    name: str, state: str, pinned: int | None, failure: str | None, now: StepProgress
) -> dict[str, Any]:
    return {
        "step": name,
        "state": state,
        "items_total": pinned,
        "partitions_uncut": now.uncut,
        "chunks_pending": now.pending,
        "chunks_running": now.running,
        "chunks_completed": now.completed,
        "chunks_failed": now.failed,
        **asdict(now.counts),
        "failure": failure,
    }


def recent_runs(store: Store, limit: int = 20) -> list[dict[str, Any]]:
    """The newest runs, newest first, as plain values."""
    session = store.control()
    try:
        rows = insight.recent_runs(session, limit)
    finally:
        session.close()
    return [
        {
            "run": row.id,
            "job": row.job_name,
            "state": row.state,
            "parameters": json.loads(row.parameters),
            "created_at": _text(row.created_at),
            "finished_at": _text(row.finished_at),
            "failure": row.failure,
        }
        for row in rows
    ]


def item_errors(
    store: Store,
    run_id: int,
    *,
    reason: str | None = None,
    state: str | None = None,
    limit: int | None = None,
) -> Iterator[dict[str, Any]]:
    """The item errors of a run's instance in the order of their ids, as plain values.

    Raises ``UsageError`` for an unknown run at once, not only when the first is taken.
    """
    session = store.control()
    row = runs.get(session, run_id)
    if row is None:
        session.close()
        raise UsageError(f"there is no run {run_id}", next_step="retoma status lists the runs")
    found = insight.item_errors(session, row.instance_id, reason=reason, state=state, limit=limit)
    return _plain_values(session, found)


def _plain_values(session: Session, found: Iterator[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    try:
        for error in found:
            yield {name: _text(value) for name, value in error.items()}
    finally:
        session.close()


def _text(value: Any) -> Any:
    return value.isoformat() if hasattr(value, "isoformat") else value
