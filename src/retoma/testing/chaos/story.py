"""Whether the tables tell a cell's story without gaps: attempts, fences, transitions."""

from __future__ import annotations

from collections.abc import Iterator

from retoma.engine import history
from retoma.testing.chaos.stage import Stage
from retoma.testing.history import check

_OF_INSTANCE = {
    "run": "SELECT id, state FROM batch_run WHERE instance_id = :instance",
    "step": "SELECT id, state FROM batch_step WHERE instance_id = :instance",
    "partition": (
        "SELECT p.id, p.state FROM batch_partition p JOIN batch_step s ON s.id = p.step_id"
        " WHERE s.instance_id = :instance"
    ),
}
_ATTEMPTS = (
    "SELECT a.chunk_id, a.fence, a.outcome, c.fence, c.state FROM batch_attempt a"
    " JOIN batch_chunk c ON c.id = a.chunk_id JOIN batch_step s ON s.id = c.step_id"
    " WHERE s.instance_id = :instance ORDER BY a.id"
)


def gaps(stage: Stage, run_id: int, instance_id: int) -> Iterator[str]:
    """Each thing that the tables, or the attempts themselves, tell otherwise than it can have been."""
    entries = history.read(stage.history) if stage.history.exists() else []
    for violation in check(entries, stage.store, run_id):
        yield str(violation)
    yield from _attempts(stage, instance_id)
    for noun, statement in _OF_INSTANCE.items():
        now = {row[0]: row[1] for row in stage.rows(statement, instance=instance_id)}
        yield from _transitions(stage, noun, now)


def _attempts(stage: Stage, instance_id: int) -> Iterator[str]:
    """One attempt row for each fence of a chunk, and nothing after the committed one."""
    found: dict[int, list[tuple[int, str]]] = {}
    chunks: dict[int, tuple[int, str]] = {}
    for chunk, fence, outcome, last, state in stage.rows(_ATTEMPTS, instance=instance_id):
        found.setdefault(chunk, []).append((fence, outcome))
        chunks[chunk] = (last, state)
    for chunk, (last, state) in chunks.items():
        fences = [fence for fence, _ in found[chunk]]
        if fences != list(range(1, last + 1)):
            yield f"chunk {chunk}: fence {last}, attempts with the fences {fences}"
        committed = [outcome == "COMPLETED" for _, outcome in found[chunk]]
        if any(committed[:-1]) or committed[-1] != (state == "COMPLETED"):
            yield f"chunk {chunk} is {state}, its attempts are {found[chunk]}"


def _transitions(stage: Stage, noun: str, now: dict[int, str]) -> Iterator[str]:
    """Each state follows from the one before, and the last one is the row's own."""
    told: dict[int, str | None] = {}
    for noun_id, before, after in stage.rows(
        "SELECT noun_id, before_state, after_state FROM batch_event WHERE noun = :noun ORDER BY id",
        noun=noun,
    ):
        if noun_id not in now:
            continue
        if (noun_id in told or before is not None) and told.get(noun_id, before) != before:
            yield f"{noun} {noun_id} was {told[noun_id]}, then told as {before} → {after}"
        told[noun_id] = after
    for noun_id, state in now.items():
        if told.get(noun_id, state) != state:
            yield f"{noun} {noun_id} is {state}, its last event says {told[noun_id]}"
