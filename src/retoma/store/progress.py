"""Read-only questions: what is open, how far it is, who is suspicious. Each is one statement."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sqlalchemy import text

from retoma.model.records import Counts, OpenStep, StepProgress, StepRow, UncutPartition
from retoma.store.session import Session

_OPEN_STEPS = (
    "SELECT s.id, s.name, r.id, r.instance_id, r.job_name, r.parameters,"
    " CASE WHEN EXISTS (SELECT 1 FROM batch_chunk c WHERE c.step_id = s.id AND c.state = 'PENDING')"
    " THEN 1 ELSE 0 END FROM batch_run r"
    " JOIN batch_step s ON s.instance_id = r.instance_id"
    " WHERE r.live = 1 AND r.state = 'RUNNING' AND s.state = 'RUNNING' AND s.accepting = 1"
    " AND s.is_planned = 1 ORDER BY r.id, s.position"
)
_UNCUT = (
    "SELECT p.id, p.run_order, p.cut_to, p.high, p.context, p.state FROM batch_partition p"
    " WHERE p.step_id = :step_id AND p.is_cut = 0 AND p.live_token IS NULL ORDER BY p.number LIMIT 64"
)
_STEPS = (
    "SELECT id, name, position, state, accepting, version, is_planned, pinned_count,"
    " pinned_version_sum, failure FROM batch_step WHERE instance_id = :instance_id ORDER BY position"
)
_STEP_PROGRESS = (
    "SELECT (SELECT count(*) FROM batch_partition WHERE step_id = :step_id AND is_cut = 0),"
    " (SELECT count(*) FROM batch_partition WHERE step_id = :step_id AND is_cut = 0"
    " AND live_token IS NOT NULL),"
    " COALESCE(SUM(CASE WHEN state = 'PENDING' THEN 1 ELSE 0 END), 0),"
    " COALESCE(SUM(CASE WHEN state = 'RUNNING' THEN 1 ELSE 0 END), 0),"
    " COALESCE(SUM(CASE WHEN state = 'COMPLETED' THEN 1 ELSE 0 END), 0),"
    " COALESCE(SUM(CASE WHEN state = 'FAILED' THEN 1 ELSE 0 END), 0),"
    " COALESCE(SUM(first_reads), 0), COALESCE(SUM(done), 0), COALESCE(SUM(already_done), 0),"
    " COALESCE(SUM(filtered), 0), COALESCE(SUM(set_aside), 0), COALESCE(SUM(deferred), 0),"
    " COALESCE(SUM(version_sum), 0)"
    " FROM batch_chunk WHERE step_id = :step_id"
)


def open_steps(session: Session, jobs: Sequence[str]) -> list[OpenStep]:
    """The steps that may give work, of jobs that the caller knows."""
    known = set(jobs)
    rows = session.fetch("work.open_steps", _OPEN_STEPS)
    return [OpenStep(*row) for row in rows if row[4] in known]


def uncut_partitions(session: Session, step_id: int) -> list[UncutPartition]:
    """Partitions that can be cut now (a strict one with a live chunk can't)."""
    rows = session.fetch("work.uncut", _UNCUT, {"step_id": step_id})
    return [
        UncutPartition(
            partition_id=row[0],
            run_order=row[1],
            cut_to=json.loads(row[2]),
            high=json.loads(row[3]),
            context=json.loads(row[4]),
            is_untouched=row[5] == "PENDING",
        )
        for row in rows
    ]


def partition_context(session: Session, partition_id: int) -> dict[str, Any]:
    """The stored context of a partition."""
    rows = session.fetch(
        "work.partition", "SELECT context FROM batch_partition WHERE id = :id", {"id": partition_id}
    )
    return dict(json.loads(rows[0][0]))


def steps_of(session: Session, instance_id: int) -> list[StepRow]:
    """The steps of an instance in their order."""
    rows = session.fetch("step.all", _STEPS, {"instance_id": instance_id})
    return [
        StepRow(
            step_id=row[0],
            name=row[1],
            position=row[2],
            state=row[3],
            accepting=bool(row[4]),
            version=row[5],
            is_planned=bool(row[6]),
            pinned_count=row[7],
            pinned_version_sum=row[8],
            failure=row[9],
        )
        for row in rows
    ]


def of_step(session: Session, step_id: int) -> StepProgress:
    """One aggregate over a step's chunks."""
    row = session.fetch("step.progress", _STEP_PROGRESS, {"step_id": step_id})[0]
    numbers = [int(value) for value in row]
    return StepProgress(
        uncut=numbers[0],
        blocked=numbers[1],
        pending=numbers[2],
        running=numbers[3],
        completed=numbers[4],
        failed=numbers[5],
        counts=Counts(*numbers[6:12]),
        version_sum=numbers[12],
    )


_FAILURES = text(
    "SELECT failure_kind, failure, id FROM batch_chunk WHERE step_id = :step_id AND state = 'FAILED'"
    " ORDER BY id LIMIT 100"
)


def failures_of(session: Session, step_id: int) -> list[tuple[str, str, int]]:
    """Kind, text and chunk of the step's failed chunks, at most 100."""
    rows = session.fetch("step.failures", _FAILURES, {"step_id": step_id})
    return [(row[0] or "PERMANENT", row[1] or "", row[2]) for row in rows]


_RUNNING = (
    "SELECT c.id, c.fence, c.token, c.lease_until, c.owner_node, c.owner_slot, c.owner_pid,"
    " c.run_id, c.step_id, c.partition_id, c.start_key, c.end_key, c.size, c.tries, c.losses,"
    " CASE WHEN c.lease_until < {now} OR c.lease_until > {lease} THEN 1 ELSE 0 END AS is_expired"
    " FROM batch_chunk c WHERE c.state = 'RUNNING' ORDER BY c.id LIMIT 1000"
)
_LONGEST_LEASE_SECONDS = 60.0


def running_chunks(session: Session) -> list[Any]:
    """All RUNNING chunks, by plain SELECT: SKIP LOCKED would hide what must be seen.

    A lease that lies further ahead than a lease can counts as expired: the clock went back.
    """
    return session.fetch("sweep.running", _RUNNING, {"lease_seconds": _LONGEST_LEASE_SECONDS})


def bounds_of(session: Session, step_id: int) -> tuple[Any, Any] | None:
    """Low of the first and high of the last partition; None if the step has none."""
    statement = "SELECT low, high FROM batch_partition WHERE step_id = :step_id ORDER BY number"
    rows = session.fetch("step.bounds", statement, {"step_id": step_id})
    return (json.loads(rows[0][0]), json.loads(rows[-1][1])) if rows else None
