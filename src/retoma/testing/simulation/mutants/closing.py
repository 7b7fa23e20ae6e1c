"""Mutants of the run: its launch, its plan, its steps' ends and its own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from retoma.engine.advance import Advance
from retoma.model import flow
from retoma.store import runs, tables
from retoma.testing.simulation.mutants.mutant import Mutant, Patch, loosen, without


def _plan_again(patch: Patch) -> None:
    then = tuple(
        part.replace("accepting = is_planned", "is_planned = 0") for part in runs.RELAUNCH.then
    )
    patch(runs, "RELAUNCH", replace(runs.RELAUNCH, then=then))


def _failed_stay(patch: Patch) -> None:
    then = tuple(part for part in runs.RELAUNCH.then if "UPDATE batch_chunk" not in part)
    patch(runs, "RELAUNCH", replace(runs.RELAUNCH, then=then))


def _history_skipped(patch: Patch) -> None:
    patch(runs, "COORDINATE", replace(runs.COORDINATE, then=()))


def _close_with_running(patch: Patch) -> None:
    part = (
        " AND NOT EXISTS (SELECT 1 FROM batch_chunk WHERE step_id = :step_id AND state = 'RUNNING')"
    )
    patch(runs, "CLOSE_STEP", without(runs.CLOSE_STEP, part))
    original = flow.next_move

    def move(steps: Any, now: Any, **options: Any) -> Any:
        blind = replace(now, running=0) if now is not None and now.pending == 0 else now
        return original(steps, blind, **options)

    patch(flow, "next_move", move)


def _stop_over_running(patch: Patch) -> None:
    part = (
        " AND NOT EXISTS (SELECT 1 FROM batch_chunk WHERE step_id = :step_id AND state = 'RUNNING')"
    )
    patch(runs, "CLOSE_STEP", without(runs.CLOSE_STEP, part))
    original = flow.next_move

    def move(steps: Any, now: Any, *, stop_requested: bool) -> Any:
        found = original(steps, now, stop_requested=stop_requested)
        step = flow.current_step(steps)
        if stop_requested and isinstance(found, flow.Wait) and step is not None:
            return flow.Close(step, is_stopped=True)
        return found

    patch(flow, "next_move", move)


def _not_held(patch: Patch) -> None:
    for name in ("SHUT_STEP", "CLOSE_STEP"):
        patch(runs, name, replace(getattr(runs, name), hold=None))


def _close_without_compare(patch: Patch) -> None:
    bare = without(
        replace(runs.CLOSE_STEP, hold=None),
        " AND version = :version",
        " AND NOT EXISTS (SELECT 1 FROM batch_chunk WHERE step_id = :step_id AND state = 'RUNNING')",
    )
    patch(runs, "CLOSE_STEP", bare)


def _second_live_run(patch: Patch) -> None:
    part = " AND NOT EXISTS (SELECT 1 FROM batch_run WHERE instance_id = :instance_id AND live = 1)"
    patch(runs, "RELAUNCH", without(runs.RELAUNCH, part))


def _ended_twice(patch: Patch) -> None:
    part = " AND live = 1 AND coordination_token = :coordination"
    patch(runs, "END_RUN", without(runs.END_RUN, part))


def _late_row_missed(patch: Patch) -> None:
    patch(Advance, "_compare_with_source", lambda *_given: None)


CLOSING = (
    Mutant("plan_again", "a new run plans its steps anew", _plan_again),
    Mutant("failed_stay_failed", "a new run does not try failed chunks again", _failed_stay),
    Mutant("history_skipped", "taking a run leaves no row in its history", _history_skipped),
    Mutant(
        "close_with_running",
        "a step is closed over a chunk that is being worked on",
        _close_with_running,
    ),
    Mutant("stop_over_running", "a stop does not wait for the chunk in hand", _stop_over_running),
    Mutant(
        "not_held",
        "whoever shuts or closes a step does not look whether he still has the run",
        _not_held,
    ),
    Mutant(
        "close_without_compare",
        "closing a step asks for no version, run or chunk, only whether it is RUNNING",
        _close_without_compare,
    ),
    Mutant(
        "second_live_run",
        "a launch does not look whether a run is live",
        _second_live_run,
        prepare=loosen(tables.run, "ux_batch_run_live"),
    ),
    Mutant(
        "late_row_missed",
        "a step completes without comparing its source with what was read",
        _late_row_missed,
    ),
    Mutant("ended_twice", "a run that has ended may be ended again", _ended_twice),
)
