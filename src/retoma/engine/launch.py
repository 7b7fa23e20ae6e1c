"""Create or take up a run: validate first, then one transaction; refuse a second live one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from retoma.errors import InstanceAbandoned, TransientFailure
from retoma.model.job import Job
from retoma.model.parameters import identity_of, parse_parameters, to_json
from retoma.model.records import RunRow
from retoma.model.status import InstanceState
from retoma.store import runs
from retoma.store.session import Session
from retoma.store.store import new_token


class Launched(StrEnum):
    """What a launch found."""

    CREATED = "CREATED"  # a new run, of a new instance or of one whose last run ended short
    LIVE = "LIVE"  # a run of this identity is live: it continues, here or elsewhere
    COMPLETE = "COMPLETE"  # the identity is complete: nothing is done


@dataclass(frozen=True, slots=True)
class Launch:
    """A run, and how it was found."""

    run: RunRow
    found: Launched


def launch(session: Session, job: Job, given: Mapping[str, Any], actor: str) -> Launch:
    """Start or find the run of an identity; raises ``UsageError`` before anything is stored."""
    values = parse_parameters(job.parameters, given)
    identity = identity_of(job.name, job.parameters, values)
    identifying = {p.name: values.get(p.name) for p in job.parameters if p.identifying}
    row: dict[str, Any] = {
        "job_name": job.name,
        "identity": identity,
        "identifying": to_json(identifying),
        "parameters": to_json(values),
        "fingerprint": job.fingerprint(),
        "actor": actor,
    }
    refused: Exception | None = None
    for _ in range(20):
        latest = runs.latest_of(session, job.name, identity)
        if latest is not None and latest.is_live:
            return Launch(latest, Launched.LIVE)
        if latest is not None and latest.instance_state == InstanceState.COMPLETED:
            return Launch(latest, Launched.COMPLETE)
        if latest is not None and latest.instance_state == InstanceState.ABANDONED:
            raise InstanceAbandoned(
                f"job {job.name!r} with {identifying} was abandoned and never runs again",
                safe="Its committed entries stay.",
            )
        try:
            created = _create(session, job, row, latest)
        except Exception as error:
            if str(session.dialect.classify(error)) not in ("DUPLICATE", "TRANSIENT"):
                raise
            session.abandon()
            refused = error
            continue
        if created is not None:
            return Launch(created, Launched.CREATED)
    if refused is not None:
        raise refused  # in the database's own words
    raise TransientFailure(
        "the identity could not be launched: others change it all the time",
        safe="Nothing was started.",
        next_step="repeat the same command",
    )


def _create(
    session: Session, job: Job, row: dict[str, Any], latest: RunRow | None
) -> RunRow | None:
    """The new run; None if another launcher was faster."""
    row = {**row, "launch_token": new_token()}
    if latest is None:
        is_done = runs.create_instance(session, row, [step.name for step in job.steps])
    else:
        is_done = runs.relaunch(session, {**row, "instance_id": latest.instance_id})
    return runs.launched_by(session, row["launch_token"]) if is_done else None
