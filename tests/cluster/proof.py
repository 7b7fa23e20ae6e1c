"""What must hold of a run whatever was done to it, asked by SQL of its own."""

from __future__ import annotations

from retoma.engine import history
from retoma.operations.verify import verify
from retoma.testing.history import check
from tests.cluster import jobs
from tests.cluster.scene import DAY, Scene

_COUNTS = ("first_reads", "done", "already_done", "filtered", "set_aside", "deferred")
_CURRENT = {
    "run": "SELECT id, state FROM batch_run",
    "step": "SELECT id, state FROM batch_step",
    "partition": "SELECT id, state FROM batch_partition",
    "node": "SELECT id, state FROM batch_node",
}


def prove(scene: Scene, state: str = "PARTIALLY_COMPLETED") -> None:
    """Everything was done once, and the tables tell a story without gaps."""
    run = scene.latest_run()
    assert scene.state() == state
    found = verify(scene.store, jobs.JOB, run)
    assert found["is_clean"], found
    assert counts(scene) == jobs.expected_counts(scene.items)
    rows = scene.rows("SELECT effect_key, item_id, amount, digest FROM effect")
    assert {row[0]: tuple(row[1:]) for row in rows} == jobs.expected_effects(scene.items, DAY)
    assert len(rows) == len({row[0] for row in rows})
    assert item_errors(scene) == {
        (str(item), {"set_aside": "BAD", "deferred": "LATER"}[jobs.outcome_of(item)]): 1
        for item in range(1, scene.items + 1)
        if jobs.outcome_of(item) in ("set_aside", "deferred")
    }
    prove_history(scene)


def counts(scene: Scene) -> dict[str, int]:
    """The counts of all chunks together."""
    sums = ", ".join(f"COALESCE(SUM({name}), 0)" for name in _COUNTS)
    row = scene.rows(f"SELECT {sums} FROM batch_chunk")[0]
    return {name: int(value) for name, value in zip(_COUNTS, row, strict=True)}


def item_errors(scene: Scene) -> dict[tuple[str, str], int]:
    """(item, reason) → how many item errors are stored of it."""
    rows = scene.rows("SELECT item_key, reason, count(*) FROM batch_item_error GROUP BY 1, 2")
    return {(row[0], row[1]): row[2] for row in rows}


def prove_history(scene: Scene) -> None:
    """Attempts, fences and transitions; holds for failed and stopped runs as well."""
    violations = check(history.read(scene.history), scene.store, scene.latest_run())
    assert not violations, "\n".join(str(each) for each in violations)
    assert scene.one("SELECT count(*) FROM batch_chunk WHERE state = 'RUNNING'") == 0
    last: dict[int, int] = {}
    attempts: dict[int, int] = {}
    committed: set[int] = set()
    for chunk, fence, outcome in scene.rows(
        "SELECT chunk_id, fence, outcome FROM batch_attempt ORDER BY id"
    ):
        assert fence > last.get(chunk, 0), f"chunk {chunk}: fence {fence} after {last[chunk]}"
        last[chunk] = fence
        attempts[chunk] = attempts.get(chunk, 0) + 1
        assert chunk not in committed, f"chunk {chunk}: an attempt after the committed one"
        if outcome == "COMPLETED":
            committed.add(chunk)
    for chunk, fence, state in scene.rows("SELECT id, fence, state FROM batch_chunk"):
        assert attempts.get(chunk, 0) == fence, f"chunk {chunk}: a claim without its attempt row"
        assert (state == "COMPLETED") == (chunk in committed), f"chunk {chunk} is {state}"
    prove_transitions(scene)


def prove_transitions(scene: Scene) -> None:
    """Each state follows from the one before, and the last one is the row's own."""
    for noun, statement in _CURRENT.items():
        now = {row[0]: row[1] for row in scene.rows(statement)}
        told: dict[int, str | None] = {}
        for noun_id, before, after in scene.rows(
            "SELECT noun_id, before_state, after_state FROM batch_event WHERE noun = :noun"
            " ORDER BY id",
            noun=noun,
        ):
            if noun_id in told or before is not None:
                known = told.get(noun_id, before)
                assert known == before, f"{noun} {noun_id}: {known}, then {before} → {after}"
            told[noun_id] = after
        silent = {key: state for key, state in now.items() if told.get(key, state) != state}
        assert not silent, f"{noun}: a state that no event tells of: {silent}, told {told}"


def outcomes(scene: Scene, chunk: int) -> list[str]:
    """How the attempts at a chunk ended, in their order."""
    rows = scene.rows(
        "SELECT outcome, failure_kind FROM batch_attempt WHERE chunk_id = :chunk ORDER BY id",
        chunk=chunk,
    )
    return [row[0] if row[1] is None else f"{row[0]}({row[1]})" for row in rows]


def chunk_of(scene: Scene, item: int) -> int:
    """The chunk that holds an item."""
    return next(c for c, (low, high) in scene.ranges().items() if low < item <= high)
