"""What the control tables say at the end of the chunks and attempts of one instance."""

from __future__ import annotations

from dataclasses import dataclass

from retoma.errors import UsageError
from retoma.store import progress, runs
from retoma.store.session import Session
from retoma.store.store import Store

_CHUNKS = (
    "SELECT c.id, c.step_id, c.state, c.size, c.start_key, c.end_key, c.first_reads, c.done,"
    " c.already_done, c.filtered, c.set_aside, c.deferred FROM batch_chunk c"
    " JOIN batch_step s ON s.id = c.step_id WHERE s.instance_id = :instance_id"
)
_ATTEMPTS = (
    "SELECT a.chunk_id, a.fence, a.outcome FROM batch_attempt a JOIN batch_chunk c"
    " ON c.id = a.chunk_id JOIN batch_step s ON s.id = c.step_id"
    " WHERE s.instance_id = :instance_id ORDER BY a.id"
)
_RUNS = "SELECT id FROM batch_run WHERE instance_id = :instance_id"


@dataclass(frozen=True, slots=True)
class ChunkRow:
    """A chunk; ``start`` and ``end`` are keys as they are stored, ``items`` its first reads."""

    chunk_id: int
    step_id: int
    state: str
    size: int
    start: str
    end: str | None
    items: int
    outcomes: int
    """The sum of what became of the items."""


@dataclass(frozen=True, slots=True)
class AttemptRow:
    """How an attempt ended; the rows are in the order in which they were written."""

    chunk_id: int
    fence: int
    outcome: str


@dataclass(frozen=True, slots=True)
class Recorded:
    """The rows of one instance, and the first reads that its steps sum up to."""

    runs: frozenset[int]
    chunks: tuple[ChunkRow, ...]
    attempts: tuple[AttemptRow, ...]
    step_items: dict[int, int]


def recorded(store: Store, run_id: int) -> Recorded:
    """The rows of the instance of a run; raises ``UsageError`` for an unknown run."""
    session = store.control()
    try:
        return _read(session, run_id)
    finally:
        session.close()


def _read(session: Session, run_id: int) -> Recorded:
    run = runs.get(session, run_id)
    if run is None:
        raise UsageError(f"there is no run {run_id}", next_step="retoma status lists the runs")
    values = {"instance_id": run.instance_id}
    chunks = session.fetch("history.chunks", _CHUNKS, values)
    attempts = session.fetch("history.attempts", _ATTEMPTS, values)
    steps = progress.steps_of(session, run.instance_id)
    return Recorded(
        runs=frozenset(row[0] for row in session.fetch("history.runs", _RUNS, values)),
        chunks=tuple(ChunkRow(*(*row[:7], sum(row[7:]))) for row in chunks),
        attempts=tuple(AttemptRow(*row) for row in attempts),
        step_items={
            s.step_id: progress.of_step(session, s.step_id).counts.first_reads for s in steps
        },
    )
