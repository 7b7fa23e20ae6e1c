"""What a coordinator does next follows from the store alone."""

from __future__ import annotations

from typing import Any

import pytest

from retoma.model.flow import Close, End, Plan, Shut, Wait, next_move, run_state
from retoma.model.records import Counts, StepProgress, StepRow
from retoma.model.status import RunState, StepState


def step(state: str, *, planned: bool = True, accepting: bool = True, number: int = 0) -> StepRow:
    return StepRow(number, f"s{number}", number, state, accepting, 1, planned, None, None, None)


def progress(**more: int) -> StepProgress:
    values: dict[str, Any] = dict.fromkeys(
        ("uncut", "blocked", "pending", "running", "completed", "failed"), 0
    )
    return StepProgress(**{**values, **more}, counts=Counts(), version_sum=0)


RUNNING = step("RUNNING")
SHUT = step("RUNNING", accepting=False)
UNPLANNED = step("PENDING", planned=False)


@pytest.mark.parametrize(
    ("steps", "now", "stop", "expected"),
    [
        ([UNPLANNED], None, False, Plan(UNPLANNED)),
        ([UNPLANNED], None, True, End(RunState.STOPPED)),
        ([step("COMPLETED"), UNPLANNED], None, False, Plan(UNPLANNED)),
        ([step("RUNNING", planned=False)], None, False, Plan(step("RUNNING", planned=False))),
        ([RUNNING], progress(uncut=2), False, Wait()),
        ([RUNNING], progress(pending=1), False, Wait()),
        ([RUNNING], progress(running=1), False, Wait()),
        ([RUNNING], progress(completed=3), False, Close(RUNNING, is_stopped=False)),
        ([RUNNING], progress(completed=3, failed=1), False, Close(RUNNING, is_stopped=False)),
        ([RUNNING], progress(uncut=1, blocked=1, failed=1), False, Close(RUNNING, is_stopped=False)),
        ([RUNNING], progress(uncut=2, blocked=1, failed=1), False, Wait()),
        ([RUNNING], progress(uncut=1, blocked=1, running=1), False, Wait()),
        ([RUNNING], progress(uncut=1, blocked=1, pending=1), False, Wait()),
        ([RUNNING], progress(uncut=1, running=1), True, Shut(RUNNING)),
        ([SHUT], progress(uncut=1, running=1), True, Wait()),
        ([SHUT], progress(uncut=1), True, Close(SHUT, is_stopped=True)),
        ([SHUT], progress(pending=1), True, Close(SHUT, is_stopped=True)),
        ([RUNNING], progress(completed=1), True, Close(RUNNING, is_stopped=False)),
        ([SHUT], progress(completed=1), True, Close(SHUT, is_stopped=False)),
        ([step("COMPLETED")], None, False, End(RunState.COMPLETED)),
        ([step("COMPLETED")], None, True, End(RunState.COMPLETED)),
        ([step("SKIPPED"), step("PARTIALLY_COMPLETED")], None, False,
         End(RunState.PARTIALLY_COMPLETED)),
        ([step("FAILED"), UNPLANNED], None, False, End(RunState.FAILED)),
        ([step("STOPPED"), UNPLANNED], None, False, End(RunState.STOPPED)),
    ],
)  # fmt: skip
def test_the_next_move(
    steps: list[StepRow], now: StepProgress | None, stop: bool, expected: object
) -> None:
    assert next_move(steps, now, stop_requested=stop) == expected


def test_one_step_with_items_set_aside_makes_the_run_partial() -> None:
    assert run_state([step("COMPLETED"), step("COMPLETED")]) is RunState.COMPLETED
    assert run_state([step("COMPLETED"), step("PARTIALLY_COMPLETED"), step("SKIPPED")]) == (
        StepState.PARTIALLY_COMPLETED
    )
