"""Launch, coordinate and close: the protocol's statements about instances, runs and steps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from retoma.model.items import Measure, PartitionPlan
from retoma.model.records import RunRow
from retoma.store.chunks import key_text
from retoma.store.dialects.contract import Guarded
from retoma.store.session import Session
from retoma.store.store import new_token

_EVENT = (
    "INSERT INTO batch_event (noun, noun_id, run_id, before_state, after_state, actor, cause, at) "
)
_INSERT_RUN = (
    "INSERT INTO batch_run (instance_id, job_name, launch_token, state, live, parameters,"
    " fingerprint, actor, created_at) SELECT {instance}, :job_name, :launch_token, 'CREATED', 1,"
    " :parameters, :fingerprint, :actor, {now} {dual} WHERE {guarded}"
)
_RUN_CREATED = (
    _EVENT + "SELECT 'run', {then0_id}, {then0_id}, NULL, 'CREATED', :actor, :cause, {now} {dual}"
    " WHERE {guarded}"
)

COORDINATE = Guarded(
    name="run.coordinate",
    guard=(
        "UPDATE batch_run SET state = 'RUNNING', coordinator = :node, coordination_token = :token,"
        " coordination_until = {lease}, started_at = COALESCE(started_at, {now})"
        " WHERE id = :run_id AND live = 1 AND state = :before"
        " AND COALESCE(coordination_token, '') = :seen"
    ),
    then=(
        _EVENT + "SELECT 'run', :run_id, :run_id, :before, 'RUNNING', :actor, :cause, {now} {dual}"
        " WHERE {guarded}",
    ),
)

RENEW_COORDINATION = Guarded(
    name="run.renew",
    guard=(
        "UPDATE batch_run SET coordination_until = {lease}"
        " WHERE id = :run_id AND live = 1 AND coordination_token = :token"
    ),
)

PUT_DOWN = Guarded(
    name="run.put_down",
    guard=(
        "UPDATE batch_run SET coordinator = NULL, coordination_until = NULL"
        " WHERE id = :run_id AND live = 1 AND coordination_token = :token"
    ),
)

# Held under a lock: a condition on another row alone would be judged by the statement's snapshot,
# and whoever has just lost the run could still act for it.
_COORDINATED = (
    "FROM batch_run WHERE id = :run_id AND live = 1 AND coordination_token = :coordination"
)

SHUT_STEP = Guarded(
    name="step.shut",
    hold=_COORDINATED,
    guard=(
        "UPDATE batch_step SET accepting = 0, version = version + 1"
        " WHERE id = :step_id AND state = 'RUNNING' AND accepting = 1 AND {held}"
    ),
)

_RUN_END = (
    "UPDATE batch_run SET state = :run_state, live = NULL, coordinator = NULL,"
    " coordination_token = NULL, coordination_until = NULL, finished_at = {now},"
    " failure_kind = :kind, failure = :failure"
    " WHERE id = :run_id AND live = 1 AND coordination_token = :coordination"
)
_INSTANCE_END = (
    "UPDATE batch_instance SET state = 'COMPLETED', completed_at = {now}, version = version + 1"
    " WHERE id = :instance_id AND state = 'OPEN' AND :completes = 1 AND {guarded}"
)
_REQUESTS_END = (
    "UPDATE batch_request SET handled_at = {now}"
    " WHERE run_id = :run_id AND handled_at IS NULL AND :ends_run = 1 AND {guarded}"
)
_RUN_ENDED = (
    _EVENT + "SELECT 'run', :run_id, :run_id, 'RUNNING', :run_state, :actor, :failure, {now} {dual}"
    " WHERE :ends_run = 1 AND {guarded}"
)
_PARTITION_WILL_END = (
    "CASE WHEN EXISTS (SELECT 1 FROM batch_chunk WHERE batch_chunk.partition_id = batch_partition.id"
    " AND batch_chunk.state = 'FAILED') THEN 'FAILED' ELSE 'COMPLETED' END"
)

CLOSE_STEP = Guarded(
    name="step.close",
    hold=_COORDINATED,
    hold_exclusively=True,
    guard=(
        "UPDATE batch_step SET state = :to_state, accepting = 0, version = version + 1,"
        " finished_at = {now}, failure_kind = :kind, failure = :failure"
        " WHERE id = :step_id AND state = 'RUNNING' AND version = :version"
        " AND NOT EXISTS (SELECT 1 FROM batch_chunk WHERE step_id = :step_id AND state = 'RUNNING')"
        " AND {held}"
    ),
    then=(
        _EVENT + "SELECT 'step', :step_id, :run_id, 'RUNNING', :to_state, :actor, :failure, {now}"
        " {dual} WHERE {guarded}",
        _EVENT
        + f"SELECT 'partition', id, :run_id, state, {_PARTITION_WILL_END}, :actor, NULL, {{now}}"
        " FROM batch_partition WHERE step_id = :step_id AND :ends_partitions = 1"
        " AND state IN ('PENDING', 'CLAIMED') AND {guarded}",
        f"UPDATE batch_partition SET state = {_PARTITION_WILL_END}"
        " WHERE step_id = :step_id AND :ends_partitions = 1"
        " AND state IN ('PENDING', 'CLAIMED') AND {guarded}",
        _EVENT + "SELECT 'step', id, :run_id, state, 'RUNNING', :actor, NULL, {now} FROM batch_step"
        " WHERE id = :next_step AND state = 'PENDING' AND {guarded}",
        "UPDATE batch_step SET state = 'RUNNING', started_at = {now}, version = version + 1"
        " WHERE id = :next_step AND state = 'PENDING' AND {guarded}",
        _RUN_END + " AND :ends_run = 1 AND {guarded}",
        _RUN_ENDED,
        _INSTANCE_END,
        _REQUESTS_END,
    ),
)

END_RUN = Guarded(name="run.end", guard=_RUN_END, then=(_RUN_ENDED, _INSTANCE_END, _REQUESTS_END))

_RUN_COLUMNS = (
    "SELECT r.id, r.instance_id, r.job_name, r.state, CASE WHEN r.live = 1 THEN 1 ELSE 0 END,"
    " r.parameters, (SELECT count(*) FROM batch_request q WHERE q.run_id = r.id AND q.verb = 'stop'"
    " AND q.handled_at IS NULL), r.coordinator, r.coordination_token,"
    " CASE WHEN r.coordination_until IS NOT NULL AND r.coordination_until > {now}"
    " AND r.coordination_until <= {lease} THEN 1 ELSE 0 END,"
    " r.failure_kind, r.failure, i.state, r.fingerprint, r.coordination_until"
    " FROM batch_run r JOIN batch_instance i ON i.id = r.instance_id "
)
_LONGEST_LEASE_SECONDS = 60.0


def _run(row: Sequence[Any]) -> RunRow:
    return RunRow(
        run_id=row[0],
        instance_id=row[1],
        job_name=row[2],
        state=row[3],
        is_live=bool(row[4]),
        parameters=row[5],
        stop_requested=bool(row[6]),
        coordinator=row[7],
        coordination_token=row[8],
        is_coordinated=bool(row[9]),
        failure_kind=row[10],
        failure=row[11],
        instance_state=row[12],
        fingerprint=row[13],
        coordination_until=str(row[14]),
    )


def _fetch_runs(session: Session, name: str, where: str, values: Mapping[str, Any]) -> list[RunRow]:
    bound = {**values, "lease_seconds": _LONGEST_LEASE_SECONDS}
    return [_run(row) for row in session.fetch(name, _RUN_COLUMNS + where, bound)]


def get(session: Session, run_id: int) -> RunRow | None:
    """The run of that id."""
    rows = _fetch_runs(session, "run.get", "WHERE r.id = :id", {"id": run_id})
    return rows[0] if rows else None


def live(session: Session) -> list[RunRow]:
    """All live runs, oldest first."""
    return _fetch_runs(session, "run.live", "WHERE r.live = 1 ORDER BY r.id", {})


def latest_of(session: Session, job_name: str, identity: str) -> RunRow | None:
    """The newest run of an identity's newest generation."""
    where = (
        "WHERE i.job_name = :job AND i.identity = :identity"
        " ORDER BY i.generation DESC, r.id DESC LIMIT 1"
    )
    rows = _fetch_runs(session, "run.latest", where, {"job": job_name, "identity": identity})
    return rows[0] if rows else None


def launched_by(session: Session, token: str) -> RunRow | None:
    """The run that a launch with this token made."""
    rows = _fetch_runs(session, "run.launched", "WHERE r.launch_token = :token", {"token": token})
    return rows[0] if rows else None


def create_instance(session: Session, launch: Mapping[str, Any], steps: Sequence[str]) -> bool:
    """Insert instance, run and steps in one transaction; False if the identity exists already."""
    operation = Guarded(
        name="run.create",
        guard=(
            "INSERT INTO batch_instance (job_name, identity, parameters, state, created_at)"
            " SELECT :job_name, :identity, :identifying, 'OPEN', {now} {dual} WHERE NOT EXISTS"
            " (SELECT 1 FROM batch_instance WHERE job_name = :job_name AND identity = :identity)"
        ),
        then=(
            _INSERT_RUN.replace("{instance}", "{guard_id}"),
            _RUN_CREATED,
            *(
                "INSERT INTO batch_step (instance_id, name, position, state)"
                f" SELECT {{guard_id}}, :step{n}, {n}, 'PENDING' {{dual}} WHERE {{guarded}}"
                for n in range(len(steps))
            ),
        ),
    )
    names = {f"step{n}": name for n, name in enumerate(steps)}
    return session.once(operation, {**launch, **names, "cause": "launched"})


RELAUNCH = Guarded(
    name="run.relaunch",
    guard=(
        "UPDATE batch_instance SET version = version + 1"
        " WHERE id = :instance_id AND state = 'OPEN' AND NOT EXISTS"
        " (SELECT 1 FROM batch_run WHERE instance_id = :instance_id AND live = 1)"
    ),
    then=(
        _INSERT_RUN.replace("{instance}", ":instance_id"),
        _RUN_CREATED,
        _EVENT + "SELECT 'step', id, {then0_id}, state, 'RUNNING', :actor, :cause, {now}"
        " FROM batch_step WHERE instance_id = :instance_id AND state IN ('FAILED', 'STOPPED')"
        " AND {guarded}",
        "UPDATE batch_chunk SET state = 'PENDING', tries = 0, losses = 0, retry_at = NULL"
        " WHERE state = 'FAILED' AND step_id IN (SELECT id FROM batch_step"
        " WHERE instance_id = :instance_id AND state IN ('FAILED', 'STOPPED')) AND {guarded}",
        _EVENT + "SELECT 'partition', id, {then0_id}, state, 'CLAIMED', :actor, :cause, {now}"
        " FROM batch_partition WHERE state = 'FAILED' AND step_id IN (SELECT id FROM batch_step"
        " WHERE instance_id = :instance_id AND state IN ('FAILED', 'STOPPED')) AND {guarded}",
        "UPDATE batch_partition SET state = 'CLAIMED' WHERE state = 'FAILED' AND step_id IN"
        " (SELECT id FROM batch_step WHERE instance_id = :instance_id"
        " AND state IN ('FAILED', 'STOPPED')) AND {guarded}",
        "UPDATE batch_step SET state = 'RUNNING', accepting = is_planned, version = version + 1,"
        " finished_at = NULL, failure_kind = NULL, failure = NULL"
        " WHERE instance_id = :instance_id AND state IN ('FAILED', 'STOPPED') AND {guarded}",
    ),
)


def relaunch(session: Session, launch: Mapping[str, Any]) -> bool:
    """A new run of an OPEN instance: failed chunks become PENDING again; False if another was faster."""
    return session.once(RELAUNCH, {**launch, "cause": "launched again"})


def coordinate(
    session: Session, run: RunRow, node: int, lease_seconds: float, cause: str
) -> str | None:
    """Take a run's coordination lease as it was seen; the new token, or None if another was faster."""
    token = new_token()
    values = {
        "run_id": run.run_id,
        "before": run.state,
        "seen": run.coordination_token or "",
        "token": token,
        "node": node,
        "lease_seconds": lease_seconds,
        "actor": f"node {node}",
        "cause": cause,
    }
    return token if session.once(COORDINATE, values) else None


def plan_step(
    session: Session,
    step_id: int,
    version: int,
    plans: Sequence[PartitionPlan],
    *,
    run_order: str,
    pinned: Measure | None,
    run_id: int,
    coordination: str,
    actor: str,
    was_pending: bool,
) -> bool:
    """Store a step's plan once and open it for claims; False if it is planned, or the run is lost."""
    values: dict[str, Any] = {
        "step_id": step_id,
        "version": version,
        "pinned_count": pinned.count if pinned else None,
        "pinned_version_sum": pinned.version_sum if pinned else None,
        "run_order": run_order,
        "run_id": run_id,
        "coordination": coordination,
        "actor": actor,
        "was_pending": int(was_pending),
    }
    then = []
    for base in range(0, len(plans), 200):
        rows = []
        for number, plan in enumerate(plans[base : base + 200], start=base):
            rows.append(
                f"SELECT :step_id, {number}, :name{number}, :run_order, 'PENDING', :low{number},"
                f" :high{number}, :low{number}, :context{number} {{dual}} WHERE {{guarded}}"
            )
            values[f"name{number}"] = plan.name
            values[f"low{number}"] = key_text(plan.low)
            values[f"high{number}"] = key_text(plan.high)
            values[f"context{number}"] = key_text(dict(plan.context))
        then.append(
            "INSERT INTO batch_partition (step_id, number, name, run_order, state, low, high, cut_to,"
            " context) " + " UNION ALL ".join(rows)
        )
    operation = Guarded(
        name="step.plan",
        hold=_COORDINATED,
        guard=(
            "UPDATE batch_step SET is_planned = 1, accepting = 1, state = 'RUNNING',"
            " version = version + 1, pinned_count = :pinned_count,"
            " pinned_version_sum = :pinned_version_sum, started_at = COALESCE(started_at, {now})"
            " WHERE id = :step_id AND is_planned = 0 AND version = :version"
            " AND state IN ('PENDING', 'RUNNING') AND {held}"
        ),
        then=(
            *then,
            _EVENT
            + "SELECT 'step', :step_id, :run_id, 'PENDING', 'RUNNING', :actor, 'planned', {now}"
            " {dual} WHERE :was_pending = 1 AND {guarded}",
        ),
    )
    return session.once(operation, values)
