"""Plans, closes and ends: the acts of whoever coordinates a run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from retoma.engine.task import as_item_step
from retoma.errors import FailureKind
from retoma.model import flow
from retoma.model.items import Measure, StepContext
from retoma.model.job import Job
from retoma.model.masking import mask_text, storable
from retoma.model.parameters import from_json
from retoma.model.records import RunRow, StepProgress, StepRow
from retoma.model.status import RunState, StepState
from retoma.store import progress, runs
from retoma.store.session import Session

_PARTITIONS_A_SLOT = 4


@dataclass(frozen=True, slots=True)
class Verdict:
    """How a step ends, and why if it failed."""

    state: StepState
    kind: str | None = None
    failure: str | None = None


@dataclass(slots=True)
class Advance:
    """Moves one run on, one bounded act at a time."""

    session: Session
    job: Job
    run: RunRow
    token: str
    actor: str
    slots: int

    def tick(self) -> RunState | None:
        """Do what is due next; the run's final state once it has ended."""
        steps = progress.steps_of(self.session, self.run.instance_id)
        step = flow.current_step(steps)
        now = progress.of_step(self.session, step.step_id) if step and step.is_planned else None
        move = flow.next_move(steps, now, stop_requested=self.run.stop_requested)
        if isinstance(move, flow.Plan):
            return self._plan(move.step)
        if isinstance(move, flow.Shut):
            self.session.once(runs.SHUT_STEP, self._held(move.step))
        elif isinstance(move, flow.Close):
            assert now is not None
            return self._close(steps, move, now)
        elif isinstance(move, flow.End):
            return self._end(move.state, None, None)
        return None

    def _held(self, step: StepRow) -> dict[str, Any]:
        return {
            "step_id": step.step_id,
            "run_id": self.run.run_id,
            "coordination": self.token,
        }

    def _context(self, step: StepRow) -> StepContext:
        return StepContext(
            job=self.job.name,
            step=step.name,
            run_id=self.run.run_id,
            instance_id=self.run.instance_id,
            parameters=from_json(self.job.parameters, self.run.parameters),
        )

    def _plan(self, step: StepRow) -> RunState | None:
        definition = as_item_step(self.job.step(step.name))
        context = self._context(step)
        wanted = definition.partitions or max(self.slots, 1) * _PARTITIONS_A_SLOT
        plans = definition.reader.plan(self.session, context, wanted)
        pinned: Measure | None = Measure(0)
        if plans:
            measured = definition.reader.measure(
                self.session, context, plans[0].low, plans[-1].high
            )
            pinned = measured
        runs.plan_step(
            self.session,
            step.step_id,
            step.version,
            plans,
            run_order=definition.reader.order,
            pinned=pinned,
            run_id=self.run.run_id,
            coordination=self.token,
            actor=self.actor,
            was_pending=step.state == StepState.PENDING,
        )
        return None

    def _close(self, steps: list[StepRow], move: flow.Close, now: StepProgress) -> RunState | None:
        step = move.step
        verdict = Verdict(StepState.STOPPED) if move.is_stopped else self._judge(step, now)
        is_done = verdict.state in flow.DONE
        following = next((s for s in steps if s.position > step.position), None)
        ends_run = not is_done or following is None
        after = [s for s in steps if s.step_id != step.step_id]
        state = RunState(str(verdict.state))
        if is_done:
            partial = verdict.state == StepState.PARTIALLY_COMPLETED
            state = RunState.PARTIALLY_COMPLETED if partial else flow.run_state(after)
        values: dict[str, Any] = {
            **self._run_values(state, verdict.kind, verdict.failure),
            "step_id": step.step_id,
            "to_state": verdict.state,
            "version": step.version,
            "ends_partitions": int(not move.is_stopped),
            "next_step": following.step_id if following and is_done else None,
            "ends_run": int(ends_run),
            "completes": int(ends_run and is_done),
        }
        is_closed = self.session.once(runs.CLOSE_STEP, values)
        return state if is_closed and ends_run else None

    def _end(self, state: RunState, kind: str | None, failure: str | None) -> RunState | None:
        completes = state in (RunState.COMPLETED, RunState.PARTIALLY_COMPLETED)
        values = self._run_values(state, kind, failure)
        values |= {"ends_run": 1, "completes": int(completes)}
        return state if self.session.once(runs.END_RUN, values) else None

    def fail(self, failure: str) -> RunState | None:
        """End the run as FAILED because planning it went wrong; a restart plans again."""
        return self._end(RunState.FAILED, FailureKind.PERMANENT, storable(mask_text(failure)))

    def _run_values(self, state: RunState, kind: str | None, failure: str | None) -> dict[str, Any]:
        return {
            "run_id": self.run.run_id,
            "instance_id": self.run.instance_id,
            "coordination": self.token,
            "actor": self.actor,
            "run_state": state,
            "kind": kind,
            "failure": failure,
        }

    def _judge(self, step: StepRow, now: StepProgress) -> Verdict:
        """COMPLETED only if the equation holds and the pinned input is what was read."""
        if now.failed:
            kinds = progress.failures_of(self.session, step.step_id)
            passing = all(k in (FailureKind.TRANSIENT, FailureKind.CRASH) for k, _, _ in kinds)
            kind, text, chunk = kinds[0]
            others = f" (and {now.failed - 1} more)" if now.failed > 1 else ""
            return Verdict(
                StepState.FAILED,
                FailureKind.TRANSIENT if passing else kind,
                f"chunk {chunk}{others}: {text}",
            )
        if now.counts.unexplained:
            return Verdict(
                StepState.FAILED,
                FailureKind.PERMANENT,
                f"step {step.name}: {now.counts.unexplained} items read have no outcome",
            )
        difference = now.missing_from(step) or self._compare_with_source(step, now)
        if difference:
            return Verdict(StepState.FAILED, "SOURCE_CHANGED", difference)
        if now.counts.set_aside:
            return Verdict(StepState.PARTIALLY_COMPLETED)
        return Verdict(StepState.COMPLETED)

    def _compare_with_source(self, step: StepRow, now: StepProgress) -> str | None:
        """The input is pinned: what lies in the planned ranges must be what was read."""
        definition = as_item_step(self.job.step(step.name))
        bounds = progress.bounds_of(self.session, step.step_id)
        if bounds is None:
            return None
        found = definition.reader.measure(self.session, self._context(step), *bounds)
        read = Measure(now.counts.first_reads, now.version_sum)
        if found is None or found == read:
            return None
        return (
            f"step {step.name}: the source changed while it was read: {read.count} items read"
            f" (version sum {read.version_sum}), {found.count} there now"
            f" (version sum {found.version_sum}). Nothing is lost of what was read."
        )
