"""The proof: recounts, from the rows themselves, what the control tables claim."""

from __future__ import annotations

from typing import Any

from retoma.errors import UsageError
from retoma.model.items import StepContext
from retoma.model.job import Finding, Job
from retoma.model.parameters import from_json
from retoma.model.records import RunRow, StepRow
from retoma.store import progress, runs
from retoma.store.session import Session
from retoma.store.store import Store

_TWICE_COMMITTED = (
    "SELECT count(*) FROM (SELECT a.chunk_id FROM batch_attempt a JOIN batch_chunk c"
    " ON c.id = a.chunk_id JOIN batch_step s ON s.id = c.step_id WHERE s.instance_id = :instance_id"
    " AND a.outcome = 'COMPLETED' GROUP BY a.chunk_id HAVING count(*) > 1) twice"
)
_COMPLETED_WITHOUT_WITNESS = (
    "SELECT count(*) FROM batch_chunk c JOIN batch_step s ON s.id = c.step_id"
    " WHERE s.instance_id = :instance_id AND c.state = 'COMPLETED' AND NOT EXISTS"
    " (SELECT 1 FROM batch_attempt a WHERE a.chunk_id = c.id AND a.outcome = 'COMPLETED')"
)
_WITNESS_WITHOUT_COMPLETION = (
    "SELECT count(*) FROM batch_attempt a JOIN batch_chunk c ON c.id = a.chunk_id"
    " JOIN batch_step s ON s.id = c.step_id WHERE s.instance_id = :instance_id"
    " AND a.outcome = 'COMPLETED' AND c.state <> 'COMPLETED'"
)
_ERRORS = (
    "SELECT count(*) FROM batch_item_error e JOIN batch_chunk c ON c.id = e.chunk_id"
    " JOIN batch_step s ON s.id = c.step_id WHERE s.instance_id = :instance_id"
    " AND s.name = :step AND e.kind = :kind"
)


def verify(store: Store, job: Job, run_id: int) -> dict[str, Any]:
    """Check the invariants of a run's instance; ``is_clean`` only if every one of them holds.

    Raises ``UsageError`` for an unknown run or another job's. While the run is live, what is not
    done yet counts as missing.
    """
    session = store.control()
    try:
        row = runs.get(session, run_id)
        if row is None or row.job_name != job.name:
            what = "there is no run" if row is None else f"job {job.name!r} has no run"
            raise UsageError(f"{what} {run_id}", next_step="retoma status lists the runs")
        broken = _broken(session, row)
    finally:
        session.close()
    finding = _audit(store, job, row)
    return {
        "run": run_id,
        "job": job.name,
        "state": row.state,
        "missing": finding.missing if finding else None,
        "duplicate": finding.duplicate if finding else None,
        "unexpected": finding.unexpected if finding else None,
        "sum_difference": finding.sum_difference if finding else None,
        "expected": finding.expected if finding else None,
        "found": finding.found if finding else None,
        "equation_ok": not broken,
        "broken": broken,
        "notes": list(finding.notes)
        if finding
        else ["NOT PROVEN: the job declares no audit of its effects"],
        "is_clean": not broken and (finding is None or finding.is_clean),
    }


def _audit(store: Store, job: Job, row: RunRow) -> Finding | None:
    if job.audit is None:
        return None
    context = StepContext(
        job=job.name,
        step="",
        run_id=row.run_id,
        instance_id=row.instance_id,
        parameters=from_json(job.parameters, row.parameters),
    )
    with store.engine.connect() as connection:
        return job.audit(connection, context)


def _broken(session: Session, row: RunRow) -> list[str]:
    """Each broken invariant in words."""
    values = {"instance_id": row.instance_id}
    broken = []
    for name, statement, words in (
        ("verify.twice", _TWICE_COMMITTED, "chunks have two committed attempts"),
        ("verify.witness", _COMPLETED_WITHOUT_WITNESS, "completed chunks have no witness"),
        ("verify.orphans", _WITNESS_WITHOUT_COMPLETION, "witnesses belong to no completed chunk"),
    ):
        found = int(session.fetch(name, statement, values)[0][0])
        if found:
            broken.append(f"{found} {words}")
    for step in progress.steps_of(session, row.instance_id):
        broken += _broken_step(session, row, step)
    return broken


def _broken_step(session: Session, row: RunRow, step: StepRow) -> list[str]:
    broken = []
    name = step.name
    now = progress.of_step(session, step.step_id)
    missing = now.missing_from(step)
    if missing:
        broken.append(missing)
    counts = now.counts
    if counts.unexplained:
        broken.append(f"step {name}: {counts.unexplained} items read have no outcome")
    for kind, counted in (("INVALID_ITEM", counts.set_aside), ("NOT_READY", counts.deferred)):
        values = {"instance_id": row.instance_id, "step": name, "kind": kind}
        stored = int(session.fetch("verify.errors", _ERRORS, values)[0][0])
        if stored != counted:
            broken.append(f"step {name}: {counted} items counted {kind}, {stored} rows stored")
    return broken
