"""Why a run or a chunk stands as it does, in words, with the next command. Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from retoma.cluster.timing import DEFAULT_TIMING
from retoma.errors import UsageError
from retoma.operations.queries import status
from retoma.store import nodes, tables
from retoma.store.session import Session
from retoma.store.store import Store

_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Explanation:
    """Sentences in the order in which they matter, and the command that comes next."""

    subject: str
    sentences: tuple[str, ...]
    next_step: str


@dataclass(frozen=True, slots=True)
class RunFacts:
    """What is known of a run beside its status."""

    workers: int
    """Nodes that are ACTIVE and have been heard of lately, by the database's clock."""

    stop: tuple[str, str] | None
    """Who asked for a stop last, and why."""

    failed: Sequence[Any]
    """(chunk, tries, kind, failure) of FAILED chunks, the first few."""

    waiting: Sequence[Any]
    """(chunk, tries, kind, failure) of PENDING chunks that were tried in vain, the first few."""

    reasons: Sequence[Any]
    """(reason, state, count) of item errors that are open."""

    lost: int
    """Attempts that ended because their worker was lost."""


def why_run(store: Store, run_id: int) -> Explanation:
    """Why a run stands as it does; raises ``UsageError`` for an unknown one."""
    found = status(store, run_id)
    session = store.control()
    try:
        facts = _facts(session, run_id, found["instance"])
    finally:
        session.close()
    return explain_run(found, facts)


def _facts(session: Session, run_id: int, instance_id: int) -> RunFacts:
    node, request, error = tables.node, tables.request, tables.item_error
    chunk, step, attempt = tables.chunk, tables.step, tables.attempt
    stops = session.fetch(
        "why.stop",
        select(request.c.actor, request.c.reason)
        .where(request.c.run_id == run_id, request.c.verb == "stop")
        .order_by(request.c.id.desc())
        .limit(1),
    )
    tried = (
        select(chunk.c.id, chunk.c.tries, chunk.c.failure_kind, chunk.c.failure)
        .join(step, step.c.id == chunk.c.step_id)
        .where(step.c.instance_id == instance_id)
        .order_by(chunk.c.id)
        .limit(_SHOWN)
    )
    lost = (
        select(func.count())
        .select_from(attempt)
        .where(attempt.c.run_id == run_id, attempt.c.outcome == "LOST")
    )
    reasons = (
        select(error.c.reason, error.c.state, func.count())
        .where(error.c.instance_id == instance_id)
        .group_by(error.c.reason, error.c.state)
        .order_by(func.count().desc())
        .limit(_SHOWN)
    )
    active = {row[0] for row in session.fetch(
        "why.nodes", select(node.c.id).where(node.c.state == "ACTIVE"))}  # fmt: skip
    silent = nodes.silent(session, DEFAULT_TIMING.unreachable, DEFAULT_TIMING.removed)
    return RunFacts(
        workers=len(active - {row[0] for row in silent}),
        stop=(stops[0][0], stops[0][1]) if stops else None,
        failed=session.fetch("why.failed", tried.where(chunk.c.state == "FAILED")),
        waiting=session.fetch(
            "why.waiting", tried.where(chunk.c.state == "PENDING", chunk.c.failure.is_not(None))
        ),
        reasons=session.fetch("why.reasons", reasons),
        lost=int(session.fetch("why.lost", lost)[0][0]),
    )


def explain_run(found: dict[str, Any], facts: RunFacts) -> Explanation:
    """The words for a run's status and facts."""
    run_id, state = found["run"], found["state"]
    sentences = [_headline(found, facts)]
    sentences += [_tried("FAILED", row) for row in facts.failed]
    sentences += [_tried("waiting to be tried again", row) for row in facts.waiting]
    sentences += [f"{count:,} items are {state} with reason {reason}"
                  for reason, state, count in facts.reasons]  # fmt: skip
    if facts.lost:
        sentences.append(f"{facts.lost} attempts ended because their worker was lost")
    if found["chunks"]["completed"]:
        sentences.append(
            f"{found['chunks']['completed']:,} chunks ({found['items_read']:,} items) are committed"
            " and will not be done again"
        )
    return Explanation(f"run {run_id} of job {found['job']}: {state}", tuple(sentences),
                       _next(found, facts))  # fmt: skip


def _headline(found: dict[str, Any], facts: RunFacts) -> str:
    state, failure = found["state"], found["failure"]
    if state == "FAILED":
        return f"it failed ({found['failure_kind']}): {failure or 'no words were left'}"
    if state == "STOPPED":
        actor, reason = facts.stop or ("a signal", "")
        return f"{actor or 'somebody'} asked it to stop" + (f": {reason}" if reason else "")
    if state == "COMPLETED":
        return "everything was done" if found["items_read"] else "its input was empty"
    if state == "PARTIALLY_COMPLETED":
        return "everything was done but what was set aside"
    if found["stop_requested"]:
        return "it is asked to stop, and ends when the chunks in hand are finished"
    if not facts.workers:
        return "no worker is alive to go on with it"
    if found["coordinator"] is None:
        return f"it waits for one of {facts.workers} live workers to take it"
    chunks = found["chunks"]
    return f"it is at work: {chunks['running']} chunks running, {chunks['pending']} waiting"


def _tried(what: str, row: Any) -> str:
    chunk_id, tries, kind, failure = row
    return f"chunk {chunk_id} is {what} after {tries} tries ({kind}): {failure}"


def _next(found: dict[str, Any], facts: RunFacts) -> str:
    run_id, state = found["run"], found["state"]
    if state == "FAILED" and found["failure_kind"] == "TRANSIENT":
        return "repeat the same retoma run: it takes up from the last committed chunk"
    if state == "FAILED":
        return "cure the cause, then repeat the same retoma run: what is committed stays"
    if state == "STOPPED":
        return "repeat the same retoma run to go on"
    if state == "PARTIALLY_COMPLETED":
        return f"retoma errors list {run_id}"
    if state == "COMPLETED":
        return f"retoma verify {run_id}"
    if not facts.workers:
        return "retoma worker --app MODULE, or repeat the same retoma run"
    return f"retoma status {run_id}"


def why_chunk(store: Store, chunk_id: int) -> Explanation:
    """Why a chunk stands as it does, attempt by attempt; raises ``UsageError`` for an unknown one."""
    chunk, step, attempt = tables.chunk, tables.step, tables.attempt
    session = store.control()
    try:
        rows = session.fetch(
            "why.chunk",
            select(*chunk.c, step.c.name.label("step_name"))
            .join(step, step.c.id == chunk.c.step_id)
            .where(chunk.c.id == chunk_id),
        )
        if not rows:
            raise UsageError(
                f"there is no chunk {chunk_id}", next_step="retoma why RUN names chunks"
            )
        attempts = session.fetch(
            "why.attempts",
            select(attempt).where(attempt.c.chunk_id == chunk_id).order_by(attempt.c.id),
        )
    finally:
        session.close()
    return explain_chunk(rows[0], attempts)


def explain_chunk(row: Any, attempts: Sequence[Any]) -> Explanation:
    """The words for a chunk's row and the rows of its attempts."""
    end = "its end (not read yet)" if row.end_key is None else row.end_key
    sentences = [f"it covers what comes after {row.start_key} up to {end}"]
    if row.state == "RUNNING":
        sentences.append(
            f"slot {row.owner_slot} of node {row.owner_node} works on it; its lease ends at"
            f" {row.lease_until:%Y-%m-%d %H:%M:%S} UTC"
        )
    if row.state == "PENDING" and row.retry_at is not None:
        sentences.append(f"it is not tried before {row.retry_at:%Y-%m-%d %H:%M:%S} UTC")
    sentences += [
        f"attempt with fence {one.fence} ended {one.outcome} at {one.ended_at:%Y-%m-%d %H:%M:%S} UTC"
        + (f" ({one.failure_kind}): {one.failure}" if one.failure else "")
        for one in attempts
    ]
    if not attempts and row.state != "RUNNING":
        sentences.append("nobody has tried it yet")
    subject = f"chunk {row.id} of step {row.step_name}: {row.state}"
    return Explanation(subject, tuple(sentences), f"retoma why {row.run_id}")
