"""THE HEART: one chunk, one work transaction, with a witness.

Read and process outside. Then BEGIN → witness → effects → item errors → guarded finish → COMMIT.
Effects and checkpoint become true together, or not at all; the finish is refused if the claim was
lost (fence, token) or if the database silently rolled the transaction back (witness).
"""

from __future__ import annotations

from dataclasses import dataclass

from retoma.engine.effects import Effects, write_effects
from retoma.engine.items import Processed, fault_of
from retoma.errors import FailureKind, LostClaim, WitnessGone
from retoma.model.items import Page, SetAside, StepContext
from retoma.model.job import ItemStep
from retoma.model.records import Claim, Counts, ItemFault, OpenStep, Owner
from retoma.model.status import ItemErrorState
from retoma.store import chunks, item_errors
from retoma.store.session import Session


@dataclass(frozen=True, slots=True)
class Bench:
    """What the heart works with: the sessions of one slot and who it is."""

    control: Session
    work: Session
    owner: Owner


def commit_chunk(
    bench: Bench,
    step: OpenStep,
    definition: ItemStep,
    context: StepContext,
    claimed: Claim,
    page: Page,
    processed: Processed,
    *,
    carefully: bool,
) -> Counts:
    """The work transaction of one chunk; raises ``LostClaim`` or ``WitnessGone`` to walk away."""
    work = bench.work
    work.begin("work.begin")
    work.dialect.enter_work(work, claimed.session_name, definition.attempt_deadline_seconds)
    witness_id = chunks.witness(work, claimed, bench.owner)
    effects = write_effects(
        work,
        definition.writer,
        context,
        processed.rows,
        work.dialect.classify,
        carefully=carefully,
    )
    faults = processed.faults + refused_items(definition, processed, effects)
    item_errors.write(work, step, claimed, faults, definition.personal)
    counts = count(page, processed, effects, faults)
    if counts.unexplained:
        raise AssertionError(
            f"chunk {claimed.chunk_id}: {counts.unexplained} items without outcome"
        )
    finish_chunk(work, definition, claimed, witness_id, counts, page)
    work.commit("work.commit")
    work.dialect.leave_work(work)
    return counts


def finish_chunk(
    work: Session,
    definition: ItemStep,
    claimed: Claim,
    witness_id: int,
    counts: Counts,
    page: Page,
) -> None:
    """The guarded finish: exactly one row, or roll back and walk away."""
    versions = page.measure.version_sum
    if not chunks.finish(work, claimed, witness_id, counts, page.end, versions):
        raise _why_refused(work, claimed, witness_id)
    is_strict = definition.reader.order == "strict"
    if is_strict and not chunks.advance(work, claimed, page.end, is_last=page.is_last):
        raise LostClaim(f"chunk {claimed.chunk_id}: its partition has moved on")


def _why_refused(work: Session, claimed: Claim, witness_id: int) -> Exception:
    statement = "SELECT count(*) FROM batch_attempt WHERE id = :id AND chunk_id = :chunk_id"
    values = {"id": witness_id, "chunk_id": claimed.chunk_id}
    if work.fetch("chunk.witness_check", statement, values)[0][0]:
        return LostClaim(f"chunk {claimed.chunk_id}: the claim with fence {claimed.fence} is lost")
    return WitnessGone(f"chunk {claimed.chunk_id}: the database rolled the transaction back")


def refused_items(definition: ItemStep, processed: Processed, effects: Effects) -> list[ItemFault]:
    """Item errors for the rows that the writer or the database refused."""
    return [
        fault_of(definition, processed.origins[position], SetAside(reason, message))
        for position, reason, message in effects.refused
    ]


def count(page: Page, processed: Processed, effects: Effects, faults: list[ItemFault]) -> Counts:
    """The chunk's side of the equation: read = done + already + filtered + set aside + deferred."""
    deferred = sum(1 for fault in faults if fault.state == ItemErrorState.NOT_READY)
    assert all(f.kind in (FailureKind.NOT_READY, FailureKind.INVALID_ITEM) for f in faults)
    return Counts(
        first_reads=page.measure.count,
        done=effects.done,
        already_done=effects.already,
        filtered=processed.filtered,
        set_aside=len(faults) - deferred,
        deferred=deferred,
    )
