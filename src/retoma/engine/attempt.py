"""One attempt at a chunk: retries outside the transaction, and a commit whose answer was lost."""

from __future__ import annotations

import random
from dataclasses import dataclass, field

from retoma.engine.chunk import Bench, commit_chunk
from retoma.engine.history import Log, Telling, no_log
from retoma.engine.items import Processed, process_page
from retoma.engine.sessions import SlotSessions
from retoma.engine.task import as_item_step
from retoma.errors import FailureKind, LostClaim, TransientFailure, WitnessGone
from retoma.model.items import Page, StepContext
from retoma.model.job import ItemStep, Job
from retoma.model.masking import mask_text, storable
from retoma.model.parameters import from_json
from retoma.model.records import Claim, Counts, OpenStep, Owner
from retoma.resilience.retry import RetryPolicy
from retoma.store import chunks, progress
from retoma.store.dialects.contract import ZombieRemains
from retoma.store.store import Store, is_database_error

_TRIES_OF_A_CHUNK = 5
_DELAY_SECONDS = 2.0
_FENCES_BACK = 8
_PASSING = (TransientFailure, TimeoutError, ConnectionError)
"""What a job's own function may raise for a passing reason."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an attempt ended: ``counts`` if it committed."""

    kind: FailureKind | None
    counts: Counts | None = None
    message: str = ""
    is_blameless: bool = False
    """The database was lost: that never counts as a try."""


@dataclass(slots=True)
class Attempts:
    """Runs attempts for one slot."""

    store: Store
    sessions: SlotSessions
    owner: Owner
    random: random.Random
    policy: RetryPolicy = field(default_factory=RetryPolicy)
    log: Log = no_log

    def run(self, job: Job, step: OpenStep, claimed: Claim) -> Outcome:
        """Work a claimed chunk off; whatever happens, the chunk's row tells it afterwards."""
        failed = 0
        carefully = claimed.fence > 1
        telling = Telling(self.log, claimed, self.owner)
        while True:
            telling.invoke()
            try:
                counts = self._once(job, step, claimed, telling, carefully=carefully)
            except Exception as error:
                outcome = self._failed(claimed, telling, error)
            else:
                telling.ok()
                return Outcome(None, counts)
            if outcome.kind is None or outcome.kind is FailureKind.LOST_RACE:
                return outcome
            failed += 1
            wait = self.policy.wait_seconds(failed, self.random)
            if outcome.kind is FailureKind.PERMANENT or wait is None:
                return self._give_up(claimed, outcome)
            # A key that exists already, or a row lost under swallowed errors: look before inserting.
            carefully = True
            self.sessions.pause(wait)

    def _once(
        self, job: Job, step: OpenStep, claimed: Claim, telling: Telling, *, carefully: bool
    ) -> Counts:
        self.sessions.require_belief(claimed)  # a second try may come long after the first
        definition = as_item_step(job.step(step.step_name))
        context = self._context(job, step, claimed)
        page = self._read(definition, context, claimed)
        telling.has_read(page)
        processed = process_page(definition, context, page)
        self.sessions.control.at("chunk.processed")
        return self._commit(
            step, definition, context, claimed, page, processed, carefully=carefully
        )

    def _context(self, job: Job, step: OpenStep, claimed: Claim) -> StepContext:
        return StepContext(
            job=job.name,
            step=step.step_name,
            run_id=claimed.run_id,
            instance_id=step.instance_id,
            parameters=from_json(job.parameters, step.parameters),
            partition=progress.partition_context(self.sessions.control, claimed.partition_id),
        )

    def _read(self, definition: ItemStep, context: StepContext, claimed: Claim) -> Page:
        source = self.sessions.control
        return definition.reader.read(source, context, claimed.start, claimed.end, claimed.size)

    def _commit(
        self,
        step: OpenStep,
        definition: ItemStep,
        context: StepContext,
        claimed: Claim,
        page: Page,
        processed: Processed,
        *,
        carefully: bool,
    ) -> Counts:
        self.sessions.require_belief(claimed)
        bench = Bench(self.sessions.control, self.sessions.work, self.owner)
        try:
            return commit_chunk(
                bench, step, definition, context, claimed, page, processed, carefully=carefully
            )
        except BaseException:
            self.sessions.work.abandon()
            raise

    def _failed(self, claimed: Claim, telling: Telling, error: Exception) -> Outcome:
        if not is_database_error(error):  # raised before a commit was sent
            telling.fail()
            return _without_doubt(error)
        kind = self.store.kind_of(error)
        message = _said(getattr(error, "orig", None) or error)
        self.sessions.reopen()
        if kind is FailureKind.TRANSIENT and self._did_commit(claimed, telling):
            return Outcome(
                None, Counts(), "the commit's answer was lost; the chunk row tells it committed"
            )
        if kind is not FailureKind.TRANSIENT:
            telling.fail()
        self._end_older_claims(claimed)
        is_blameless = self.store.dialect.is_connection_lost(error)
        return Outcome(kind, message=message, is_blameless=is_blameless)

    def _end_older_claims(self, claimed: Claim) -> None:
        """What blocks a successor may be a predecessor that woke up: end all lower fences again."""
        try:
            control = self.sessions.control
            for fence in range(max(1, claimed.fence - _FENCES_BACK), claimed.fence):
                name = self.store.session_name(control, claimed.chunk_id, fence)
                self.store.dialect.end_session(control, name, None)
        except Exception as error:
            if not is_database_error(error) and not isinstance(error, ZombieRemains):
                raise
            self.sessions.reopen()

    def _did_commit(self, claimed: Claim, telling: Telling) -> bool:
        """No unknown state: end our own old session, see it gone, read the chunk row."""
        telling.unknown()
        try:
            control = self.sessions.control
            self.store.dialect.end_session(control, claimed.session_name, None)
            is_committed = chunks.did_commit(control, claimed)
        except Exception as error:
            if not is_database_error(error) and not isinstance(error, ZombieRemains):
                raise
            self.sessions.reopen()
            return False  # the next try's guarded finish is refused if it had committed after all
        if is_committed:
            telling.ok()
        else:
            telling.fail()
        return is_committed

    def _give_up(self, claimed: Claim, outcome: Outcome) -> Outcome:
        """End the attempt on the record, as soon as the database answers or belief has ended."""
        while True:
            try:
                self._release(claimed, outcome)
                return outcome
            except Exception as error:
                if not is_database_error(error):
                    raise
                self.sessions.reopen()
                self.sessions.pause(1.0)
            try:
                self.sessions.require_belief(claimed)
            except LostClaim:
                return outcome

    def _release(self, claimed: Claim, outcome: Outcome) -> None:
        is_last = claimed.tries + 1 >= _TRIES_OF_A_CHUNK and not outcome.is_blameless
        is_final = outcome.kind is FailureKind.PERMANENT or is_last
        chunks.release(
            self.sessions.control,
            claimed,
            to_state="FAILED" if is_final else "PENDING",
            outcome="GIVEN_BACK" if outcome.is_blameless else "FAILED",
            kind=str(outcome.kind),
            failure=outcome.message,
            tries=0 if outcome.is_blameless else 1,
            delay_seconds=_DELAY_SECONDS * 2**claimed.tries,
            owner=self.owner,
        )


def _without_doubt(error: Exception) -> Outcome:
    """What an error means that did not come from the database."""
    if isinstance(error, LostClaim):
        return Outcome(FailureKind.LOST_RACE, message=str(error))
    if isinstance(error, (WitnessGone, ZombieRemains, *_PASSING)):
        return Outcome(FailureKind.TRANSIENT, message=_said(error))
    return Outcome(FailureKind.PERMANENT, message=_said(error))


def _said(error: BaseException) -> str:
    """The error in words that may be stored and shown: a driver quotes values of the row."""
    notes = "; ".join(getattr(error, "__notes__", ()))
    where = f" ({notes})" if notes else ""
    return storable(mask_text(f"{type(error).__name__}: {error}".strip() + where))
