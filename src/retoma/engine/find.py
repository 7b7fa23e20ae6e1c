"""Where a slot finds its next chunk: one that waits, or a new cut of a partition's rest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from retoma.engine.task import as_item_step
from retoma.errors import FailureKind
from retoma.model.items import StepContext
from retoma.model.job import ItemStep, Job
from retoma.model.parameters import from_json
from retoma.model.records import Claim, OpenStep, Owner, UncutPartition
from retoma.store import chunks, progress
from retoma.store.session import Session
from retoma.store.store import Store, is_database_error


@dataclass(slots=True)
class Finder:
    """Finds work for one slot in the steps that are open."""

    store: Store
    jobs: Mapping[str, Job]
    owner: Owner
    lease_seconds: float
    run_id: int | None = None
    """Only this run's steps, if given."""

    def find(self, session: Session) -> tuple[OpenStep, Claim] | None:
        """A claim and its step; None if there is nothing to do now."""
        for step in progress.open_steps(session, list(self.jobs)):
            if self.run_id is not None and step.run_id != self.run_id:
                continue
            claimed = self._claim(session, step) or self._cut(session, step)
            if claimed is not None:
                return step, claimed
        return None

    def _claim(self, session: Session, step: OpenStep) -> Claim | None:
        if not step.has_waiting:
            return None
        return chunks.claim(
            self.store, session, step.step_id, step.run_id, self.owner, self.lease_seconds
        )

    def _cut(self, session: Session, step: OpenStep) -> Claim | None:
        job = self.jobs[step.job_name]
        definition = as_item_step(job.step(step.step_name))
        uncut = progress.uncut_partitions(session, step.step_id)
        # Each slot begins elsewhere, so that they seldom want the same partition.
        shift = (self.owner.slot + self.owner.node_id) % len(uncut) if uncut else 0
        for partition in uncut[shift:] + uncut[:shift]:
            if partition.run_order == "strict":
                claimed = self._claim_cut(session, step, definition, partition, None)
            else:
                claimed = self._cut_range(session, step, job, definition, partition)
            if claimed is not None:
                return claimed
        return None

    def _cut_range(
        self,
        session: Session,
        step: OpenStep,
        job: Job,
        definition: ItemStep,
        partition: UncutPartition,
    ) -> Claim | None:
        context = StepContext(
            job=job.name,
            step=step.step_name,
            run_id=step.run_id,
            instance_id=step.instance_id,
            parameters=from_json(job.parameters, step.parameters),
            partition=partition.context,
        )
        size = definition.chunk_size
        try:
            end = definition.reader.next_end(
                session, context, partition.cut_to, partition.high, size
            )
        except Exception as error:
            if is_database_error(error) and self.store.kind_of(error) is FailureKind.TRANSIENT:
                raise
            # The reader is broken for good. The attempt at the chunk will meet the same error and
            # put it on the record; raised here it would only be met again and again.
            session.abandon()
            end = partition.high
        if end is None:
            actor = f"node {self.owner.node_id} slot {self.owner.slot}"
            chunks.exhaust(session, step.step_id, step.run_id, partition, actor)
            return None
        return self._claim_cut(session, step, definition, partition, end)

    def _claim_cut(
        self,
        session: Session,
        step: OpenStep,
        definition: ItemStep,
        partition: UncutPartition,
        end: object,
    ) -> Claim | None:
        return chunks.cut(
            self.store,
            session,
            step.step_id,
            step.run_id,
            partition,
            end,
            definition.chunk_size,
            self.owner,
            self.lease_seconds,
        )
