"""The protocol with one thing left out: faults that the simulation must find.

Each mutant passes a night without faults (as far as its effects go). One that no seed finds shows a
hole in the simulation, or a second lock that makes the first one needless.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine, MetaData, UniqueConstraint, text

from retoma.cluster.coordinator import Coordinator
from retoma.cluster.suspicion import Suspicion
from retoma.cluster.sweep import Sweep
from retoma.engine import attempt, chunk, effects
from retoma.errors import FailureKind
from retoma.model import flow
from retoma.model.records import Counts
from retoma.store import chunks, item_errors, progress, runs, tables
from retoma.store.dialects.contract import Guarded
from retoma.store.session import Session

Patch = Callable[[Any, str, Any], None]


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is left out, and how."""

    name: str
    words: str
    apply: Callable[[Patch], None]
    has_loose_attempts: bool = False
    """Two attempts may have the same fence, and two may commit: the second lock is off as well."""

    def prepare(self, engine: Engine) -> None:
        """Change the tables of a fresh database."""
        if self.has_loose_attempts:
            loosen_attempts(engine)

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The code with the mutation."""
        with contextmanager_of_patches() as patch:
            self.apply(patch)
            yield


@contextmanager
def contextmanager_of_patches() -> Iterator[Patch]:
    """Replaces attributes, and puts all of them back."""
    before: list[tuple[Any, str, Any]] = []

    def patch(target: Any, name: str, value: Any) -> None:
        before.append((target, name, getattr(target, name)))
        setattr(target, name, value)

    try:
        yield patch
    finally:
        for target, name, value in reversed(before):
            setattr(target, name, value)


def loosen_attempts(engine: Engine) -> None:
    """The table of attempts without its unique keys."""
    loose = tables.attempt.to_metadata(MetaData())
    for constraint in [c for c in loose.constraints if isinstance(c, UniqueConstraint)]:
        loose.constraints.remove(constraint)
    with engine.begin() as connection:
        connection.execute(text("DROP TABLE batch_attempt"))
        loose.create(connection)


def _without(operation: Guarded, *parts: str) -> Guarded:
    guard = operation.guard
    for part in parts:
        assert part in guard, part
        guard = guard.replace(part, "")
    return replace(operation, guard=guard)


def _cut_from(statement: str, *parts: str) -> str:
    for part in parts:
        assert part in statement, part
        statement = statement.replace(part, "")
    return statement


_WITNESSED = (
    " AND EXISTS (SELECT 1 FROM batch_attempt WHERE id = :witness AND chunk_id = :chunk_id)"
)
_MINE = " AND fence = :fence AND token = :token"
_ACTIVE = " AND state = 'RUNNING'"


def _no_witness(patch: Patch) -> None:
    patch(chunks, "_FINISH", _cut_from(chunks._FINISH, _WITNESSED))


def _no_fence(patch: Patch) -> None:
    patch(chunks, "_FINISH", _cut_from(chunks._FINISH, _MINE, _ACTIVE))


def _late_completion(patch: Patch) -> None:
    patch(chunks, "_FINISH", _cut_from(chunks._FINISH, " AND token = :token", _ACTIVE))


def _fence_not_raised(patch: Patch) -> None:
    guard = chunks.CLAIM.guard.replace(
        "fence = fence + 1,", "fence = CASE fence WHEN 0 THEN 1 ELSE fence END,"
    )
    patch(chunks, "CLAIM", replace(chunks.CLAIM, guard=guard))


def _claim_without_guard(patch: Patch) -> None:
    bare = replace(
        chunks.CLAIM,
        pick=None,
        guard=chunks.CLAIM.guard.replace("{picked} AND state = 'PENDING'", ":seen_id"),
    )

    def once(session: Session, operation: Guarded, values: Mapping[str, Any]) -> bool:
        if operation is not bare:
            return session.dialect.once(session, operation, values)
        rows = session.fetch(
            "chunk.look",
            "SELECT id FROM batch_chunk WHERE step_id = :step_id AND state = 'PENDING' ORDER BY id",
            {"step_id": values["step_id"]},
        )
        if not rows:
            return False
        return session.dialect.once(session, bare, {**values, "seen_id": rows[0][0]})

    patch(chunks, "CLAIM", bare)
    patch(Session, "once", once)


def _cut_without_compare(patch: Patch) -> None:
    for name in ("CUT", "CLOSE_EMPTY"):
        patch(chunks, name, _without(getattr(chunks, name), " AND cut_to = :seen"))


def _one_reading(patch: Patch) -> None:
    def observe(_self: Suspicion, expired: Any, _now: float) -> set[Any]:
        return {thing for thing, _mark in expired}

    patch(Suspicion, "observe", observe)


def _swallowed(patch: Patch) -> None:
    original: Any = effects.write_effects

    def write(*arguments: Any, **options: Any) -> Any:
        *rest, _classify = arguments
        return original(*rest, lambda _error: FailureKind.INVALID_ITEM, **options)

    patch(chunk, "write_effects", write)


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
    patch(runs, "CLOSE_STEP", _without(runs.CLOSE_STEP, part))
    original = flow.next_move

    def move(steps: Any, now: Any, **options: Any) -> Any:
        blind = replace(now, running=0) if now is not None and now.pending == 0 else now
        return original(steps, blind, **options)

    patch(flow, "next_move", move)


def _stop_over_running(patch: Patch) -> None:
    part = (
        " AND NOT EXISTS (SELECT 1 FROM batch_chunk WHERE step_id = :step_id AND state = 'RUNNING')"
    )
    patch(runs, "CLOSE_STEP", _without(runs.CLOSE_STEP, part))
    original = flow.next_move

    def move(steps: Any, now: Any, *, stop_requested: bool) -> Any:
        found = original(steps, now, stop_requested=stop_requested)
        step = flow.current_step(steps)
        if stop_requested and isinstance(found, flow.Wait) and step is not None:
            return flow.Close(step, is_stopped=True)
        return found

    patch(flow, "next_move", move)


def _expired_hidden(patch: Patch) -> None:
    hidden = progress._RUNNING.replace(
        "c.state = 'RUNNING'", "c.state = 'RUNNING' AND c.lease_until > {now}"
    )
    patch(progress, "_RUNNING", hidden)


def _coordination_kept(patch: Patch) -> None:
    patch(Coordinator, "_takeable", lambda _self, live: [r for r in live if r.coordinator is None])


def _orphan_forgotten(patch: Patch) -> None:
    original = Sweep.__init__

    def init(self: Sweep, *arguments: Any, **options: Any) -> None:
        original(self, *arguments, **options)
        self.is_held = lambda _token: True

    patch(Sweep, "__init__", init)


def _around_commit(patch: Patch, before: Any = None, after: Any = None) -> None:
    original = chunk.commit_chunk

    def commit(bench: Any, step: Any, definition: Any, context: Any, claimed: Any, page: Any,
               processed: Any, *, carefully: bool) -> Any:  # fmt: skip
        if before is not None:
            before(bench, step, definition, claimed, page, processed)
        counts = original(
            bench, step, definition, context, claimed, page, processed, carefully=carefully
        )
        if after is not None:
            after(bench, claimed, page, counts)
        return counts

    patch(attempt, "commit_chunk", commit)


def _fence_outside_commit(patch: Patch) -> None:
    def after(bench: Any, claimed: Any, page: Any, counts: Counts) -> None:
        witness = bench.control.fetch(
            "t", "SELECT max(id) FROM batch_attempt WHERE chunk_id = :id", {"id": claimed.chunk_id}
        )[0][0]
        finish(bench.control, claimed, witness, counts, page.end, page.measure.version_sum)

    finish = chunks.finish
    patch(chunks, "finish", lambda *_arguments: True)
    _around_commit(patch, after=after)


def _counters_outside(patch: Patch) -> None:
    finish = chunks.finish
    names = tables.COUNTS

    def blank(
        session: Any, claimed: Any, witness: int, _counts: Any, end: Any, version: int
    ) -> bool:
        return finish(session, claimed, witness, Counts(), end, version)

    def after(bench: Any, claimed: Any, _page: Any, counts: Counts) -> None:
        values = {name: getattr(counts, name) for name in names} | {"id": claimed.chunk_id}
        sets = ", ".join(f"{name} = :{name}" for name in names)
        bench.control.change("t", f"UPDATE batch_chunk SET {sets} WHERE id = :id", values)

    patch(chunks, "finish", blank)
    _around_commit(patch, after=after)


def _strict_unguarded(patch: Patch) -> None:
    patch(chunks, "CUT_STRICT", _without(chunks.CUT_STRICT, " AND live_token IS NULL"))
    patch(
        chunks,
        "_ADVANCE",
        _cut_from(chunks._ADVANCE, " AND cut_to = :start_key", " AND live_token IS NOT NULL"),
    )
    patch(progress, "_UNCUT", _cut_from(progress._UNCUT, " AND p.live_token IS NULL"))


def _errors_outside(patch: Patch) -> None:
    original = item_errors.write

    def before(bench: Any, step: Any, definition: Any, claimed: Any, _page: Any, done: Any) -> None:
        original(bench.control, step, claimed, done.faults, definition.personal)

    patch(item_errors, "write", lambda *_arguments: None)
    _around_commit(patch, before=before)


def _effects_outside(patch: Patch) -> None:
    original: Any = effects.write_effects

    def before(
        bench: Any, _step: Any, definition: Any, _claimed: Any, _page: Any, done: Any
    ) -> None:
        written.clear()
        written.append(original(
            bench.control, definition.writer, None, done.rows, bench.control.dialect.classify,
            carefully=False,
        ))  # fmt: skip

    written: list[Any] = []
    patch(chunk, "write_effects", lambda *_arguments, **_options: written[0])
    patch(Session, "savepoint", lambda _self, _name: None)
    _around_commit(patch, before=before)


MUTANTS = {
    mutant.name: mutant
    for mutant in (
        Mutant("no_witness", "the finish does not ask for the witness", _no_witness),
        Mutant("no_fence", "the finish asks for nothing but the witness", _no_fence,
               has_loose_attempts=True),
        Mutant("late_completion", "a chunk that was given back may still be completed",
               _late_completion, has_loose_attempts=True),
        Mutant("fence_outside_commit", "effects commit first, the finish follows by itself",
               _fence_outside_commit),
        Mutant("fence_not_raised", "a claim keeps the fence of the one before", _fence_not_raised),
        Mutant("claim_without_guard", "a claim does not look whether the chunk still waits",
               _claim_without_guard),
        Mutant("cut_without_compare", "a cut does not look whether the cursor has moved",
               _cut_without_compare),
        Mutant("one_reading", "one reading of the database's clock is enough to take a chunk",
               _one_reading),
        Mutant("swallowed_error", "any error of the database is taken for the item's", _swallowed),
        Mutant("plan_again", "a new run plans its steps anew", _plan_again),
        Mutant("failed_stay_failed", "a new run does not try failed chunks again", _failed_stay),
        Mutant("history_skipped", "taking a run leaves no row in its history", _history_skipped),
        Mutant("close_with_running", "a step is closed over a chunk that is being worked on",
               _close_with_running),
        Mutant("stop_over_running", "a stop does not wait for the chunk in hand",
               _stop_over_running),
        Mutant("expired_hidden", "the sweep does not see chunks whose lease has run out",
               _expired_hidden),
        Mutant("coordination_kept", "nobody takes the run of a coordinator that died",
               _coordination_kept),
        Mutant("orphan_forgotten", "a claim whose answer was lost is left to its slot",
               _orphan_forgotten),
        Mutant("counters_outside", "counters are written after the commit", _counters_outside),
        Mutant("strict_unguarded", "two chunks of a strict partition may be live", _strict_unguarded),
        Mutant("errors_outside", "item errors are written before the transaction",
               _errors_outside),
        Mutant("effects_outside", "effects are written before the transaction", _effects_outside),
    )
}  # fmt: skip
