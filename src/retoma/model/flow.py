"""What may happen next in a run: a pure decision over what the store says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from retoma.model.records import StepProgress, StepRow
from retoma.model.status import RunState, StepState

DONE = (StepState.COMPLETED, StepState.PARTIALLY_COMPLETED, StepState.SKIPPED)


@dataclass(frozen=True, slots=True)
class Plan:
    """Ask the step's reader for its slices and store them."""

    step: StepRow


@dataclass(frozen=True, slots=True)
class Shut:
    """Let no more chunks of the step be claimed."""

    step: StepRow


@dataclass(frozen=True, slots=True)
class Close:
    """All that can be done is done, or a stop was asked for and nothing is RUNNING any more."""

    step: StepRow
    is_stopped: bool


@dataclass(frozen=True, slots=True)
class End:
    """No step is left: the run ends."""

    state: RunState


@dataclass(frozen=True, slots=True)
class Wait:
    """Chunks are being worked on."""


Move = Plan | Shut | Close | End | Wait


def current_step(steps: Sequence[StepRow]) -> StepRow | None:
    """The first step that is not done."""
    return next((step for step in steps if step.state not in DONE), None)


def next_move(
    steps: Sequence[StepRow], progress: StepProgress | None, *, stop_requested: bool
) -> Move:
    """What the coordinator does next; ``progress`` is that of the current step."""
    step = current_step(steps)
    if step is None:
        return End(run_state(steps))
    if step.state in (StepState.FAILED, StepState.STOPPED):
        return End(RunState(str(step.state)))
    if not step.is_planned:
        return End(RunState.STOPPED) if stop_requested else Plan(step)
    assert progress is not None
    is_worked_off = progress.uncut == progress.blocked and not progress.pending
    if is_worked_off and not progress.running:
        return Close(step, is_stopped=False)
    if stop_requested:
        if step.accepting:
            return Shut(step)
        return Wait() if progress.running else Close(step, is_stopped=True)
    return Wait()


def run_state(steps: Sequence[StepRow]) -> RunState:
    """How a run ends whose steps are all done: deferred items alone leave it COMPLETED."""
    if any(step.state == StepState.PARTIALLY_COMPLETED for step in steps):
        return RunState.PARTIALLY_COMPLETED
    return RunState.COMPLETED
