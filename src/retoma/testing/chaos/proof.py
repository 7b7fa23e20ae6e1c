"""What must hold after a cell, whatever was done in it."""

from __future__ import annotations

from retoma.model.status import RunState
from retoma.operations.verify import verify
from retoma.testing.chaos import job
from retoma.testing.chaos.programs import CellFailed
from retoma.testing.chaos.stage import Stage
from retoma.testing.chaos.story import gaps


def prove(stage: Stage, hit_slots: int) -> int:
    """How many chunks were repeated; raises ``CellFailed`` with everything that does not hold."""
    run = stage.latest_run()
    assert run is not None
    wrong = []
    if run.state != RunState.PARTIALLY_COMPLETED:
        wrong.append(f"the run is {run.state}")
    found = verify(stage.store, job.JOB, run.run_id)
    if not found["is_clean"]:
        names = ("missing", "duplicate", "unexpected", "sum_difference", "broken")
        wrong.append("not proven: " + ", ".join(f"{name} {found[name]}" for name in names))
    counted = _counts(stage, run.instance_id)
    if counted != job.expected_counts():
        wrong.append(f"counted {counted}, expected {job.expected_counts()}")
    if stage.running():
        wrong.append(f"{len(stage.running())} chunks are RUNNING")
    live = stage.rows(
        "SELECT id FROM batch_run WHERE instance_id = :instance AND live = 1",
        instance=run.instance_id,
    )
    if live:
        wrong.append(f"{len(live)} runs are live")
    wrong += gaps(stage, run.run_id, run.instance_id)
    repeated = stage.repeated()
    if repeated > hit_slots:
        wrong.append(f"{repeated} chunks were repeated, but only {hit_slots} slots were hit")
    if wrong:
        raise CellFailed("; ".join(wrong))
    return repeated


def _counts(stage: Stage, instance_id: int) -> dict[str, int]:
    """The counts of all chunks of the instance together."""
    names = tuple(job.expected_counts())
    sums = ", ".join(f"COALESCE(SUM(c.{name}), 0)" for name in names)
    statement = (
        f"SELECT {sums} FROM batch_chunk c JOIN batch_step s ON s.id = c.step_id"
        " WHERE s.instance_id = :instance"
    )
    row = stage.rows(statement, instance=instance_id)[0]
    return {name: int(value) for name, value in zip(names, row, strict=True)}
