"""What a run would do: its identity, slices, items and chunks. Nothing is stored or written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retoma.errors import UsageError
from retoma.model.items import StepContext
from retoma.model.job import ItemStep, Job
from retoma.model.parameters import identity_of, parse_parameters, to_json
from retoma.model.records import RunRow
from retoma.store import migrate, runs
from retoma.store.session import Session
from retoma.store.store import Store


@dataclass(frozen=True, slots=True)
class PlannedStep:
    """A step as it would be planned; ``items`` and ``chunks`` are None where only reading tells."""

    name: str
    partitions: int | None = None
    items: int | None = None
    chunks: int | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Plan:
    """What ``retoma run`` would find for these parameters."""

    job: str
    identity: str
    parameters: str
    run: RunRow | None
    steps: tuple[PlannedStep, ...]


def plan_job(store: Store, job: Job, parameters: Mapping[str, Any], *, slots: int = 1) -> Plan:
    """A dry run.

    The job's own tables must be there already; a later step may need the effects of an earlier one,
    and its note says so. Raises ``UsageError`` for wrong parameters and an input that can't be read.
    """
    values = parse_parameters(job.parameters, parameters)
    identity = identity_of(job.name, job.parameters, values)
    session = store.control()
    try:
        latest = None
        if migrate.current_version(store) == migrate.HEAD:
            latest = runs.latest_of(session, job.name, identity)
        steps = []
        for position, step in enumerate(job.steps):
            context = StepContext(
                job=job.name, step=step.name, run_id=0, instance_id=0, parameters=values
            )
            if isinstance(step, ItemStep):
                steps.append(_planned(session, step, context, slots, is_first=not position))
            else:
                steps.append(PlannedStep(step.name, note="a task: one transaction"))
    finally:
        session.close()
    return Plan(job.name, identity, to_json(values), latest, tuple(steps))


def _planned(
    session: Session, step: ItemStep, context: StepContext, slots: int, *, is_first: bool
) -> PlannedStep:
    try:
        plans = step.reader.plan(session, context, step.partitions or max(slots, 1) * 4)
        if not plans:
            return PlannedStep(step.name, 0, 0, 0, "the input is empty")
        measure = step.reader.measure(session, context, plans[0].low, plans[-1].high)
    except Exception as error:
        if is_first:
            first_line = str(error).strip().partition("\n")[0]
            raise UsageError(
                f"step {step.name!r} can't be planned: {type(error).__name__}: {first_line}",
                safe="Nothing was stored.",
                next_step="check the database, the job's tables and the parameters",
            ) from error
        return PlannedStep(step.name, note="can't be told before the steps above have run")
    if measure is None:
        return PlannedStep(
            step.name, len(plans), note="only reading the input tells how much it is"
        )
    chunks = -(-measure.count // step.chunk_size)
    return PlannedStep(step.name, len(plans), measure.count, max(chunks, 1))
