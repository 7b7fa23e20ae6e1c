"""Mutants of the work transaction, of what is said after it, and of what it may lock."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, text

from retoma.engine import attempt, chunk, effects
from retoma.engine.attempt import Attempts
from retoma.engine.history import Telling
from retoma.errors import FailureKind
from retoma.model.records import Claim, Counts
from retoma.store import chunks, item_errors, tables
from retoma.store.session import Session
from retoma.store.store import is_database_error
from retoma.testing.simulation.mutants.mutant import Mutant, Patch, cut_from, loosen

_WITNESSED = (
    " AND EXISTS (SELECT 1 FROM batch_attempt WHERE id = :witness AND chunk_id = :chunk_id)"
)
_MINE = " AND fence = :fence AND token = :token"
_ACTIVE = " AND state = 'RUNNING'"


def _no_witness(patch: Patch) -> None:
    patch(chunks, "_FINISH", cut_from(chunks._FINISH, _WITNESSED))


def _no_fence(patch: Patch) -> None:
    patch(chunks, "_FINISH", cut_from(chunks._FINISH, _MINE, _ACTIVE))


def _late_completion(patch: Patch) -> None:
    patch(chunks, "_FINISH", cut_from(chunks._FINISH, " AND token = :token", _ACTIVE))


def around_commit(patch: Patch, before: Any = None, after: Any = None) -> None:
    """Something is done on the control session before or after the work transaction."""
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


def _swallowed(patch: Patch) -> None:
    original: Any = effects.write_effects

    def write(*arguments: Any, **options: Any) -> Any:
        *rest, _classify = arguments
        return original(*rest, lambda _error: FailureKind.INVALID_ITEM, **options)

    patch(chunk, "write_effects", write)


def _fence_outside_commit(patch: Patch) -> None:
    def after(bench: Any, claimed: Any, page: Any, counts: Counts) -> None:
        witness = bench.control.fetch(
            "t", "SELECT max(id) FROM batch_attempt WHERE chunk_id = :id", {"id": claimed.chunk_id}
        )[0][0]
        finish(bench.control, claimed, witness, counts, page.end, page.measure.version_sum)

    finish = chunks.finish
    patch(chunks, "finish", lambda *_arguments: True)
    around_commit(patch, after=after)


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
    around_commit(patch, after=after)


def _errors_outside(patch: Patch) -> None:
    original = item_errors.write

    def before(bench: Any, step: Any, definition: Any, claimed: Any, _page: Any, done: Any) -> None:
        original(bench.control, step, claimed, done.faults, definition.personal)

    patch(item_errors, "write", lambda *_arguments: None)
    around_commit(patch, before=before)


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
    around_commit(patch, before=before)


def _no_token(patch: Patch) -> None:
    def did_commit(session: Session, claimed: Claim) -> bool:
        statement = "SELECT state FROM batch_chunk WHERE id = :id" + session.dialect.row_lock
        rows = session.fetch("chunk.doubt", statement, {"id": claimed.chunk_id})
        return bool(rows) and rows[0][0] == "COMPLETED"

    patch(chunks, "did_commit", did_commit)


def _doubt_not_read(patch: Patch) -> None:
    patch(Attempts, "_did_commit", lambda _self, _claimed, _telling: False)


def _doubt_unlocked(patch: Patch) -> None:
    statement = "SELECT state, token FROM batch_chunk WHERE id = :id"

    def did_commit(self: Attempts, claimed: Claim, telling: Telling) -> bool:
        telling.unknown()
        try:
            rows = self.sessions.control.fetch("chunk.doubt", statement, {"id": claimed.chunk_id})
        except Exception as error:
            if not is_database_error(error):
                raise
            self.sessions.reopen()
            return False
        is_committed = bool(rows) and tuple(rows[0]) == ("COMPLETED", claimed.token)
        if is_committed:
            telling.ok()
        else:
            telling.fail()
        return is_committed

    patch(Attempts, "_did_commit", did_commit)


def _as_it_is(_patch: Patch) -> None:
    """The tables are changed, not the code."""


def _add_foreign_key(engine: Engine) -> None:
    _drop_foreign_key(engine)  # a hunt that was killed has left it behind
    with engine.begin() as connection:
        connection.execute(
            text(
                "ALTER TABLE batch_attempt ADD CONSTRAINT fk_batch_attempt_chunk"
                " FOREIGN KEY (chunk_id) REFERENCES batch_chunk (id) ON DELETE CASCADE"
            )
        )


def _drop_foreign_key(engine: Engine) -> None:
    with engine.begin() as connection:
        connection.execute(
            text("ALTER TABLE batch_attempt DROP CONSTRAINT IF EXISTS fk_batch_attempt_chunk")
        )


_LOOSE = loosen(tables.attempt, "ux_batch_attempt_fence", "ux_batch_attempt_committed")


def _reconnected_bare(patch: Patch) -> None:
    def bare(session: Session) -> None:
        session._is_lost = False

    patch(Session, "_connect_again", bare)


COMMITS = (
    Mutant("no_witness", "the finish does not ask for the witness", _no_witness),
    Mutant("no_fence", "the finish asks for nothing but the witness", _no_fence, prepare=_LOOSE),
    Mutant(
        "late_completion",
        "a chunk that was given back may still be completed",
        _late_completion,
        prepare=_LOOSE,
    ),
    Mutant(
        "fence_outside_commit",
        "effects commit first, the finish follows by itself",
        _fence_outside_commit,
    ),
    Mutant("swallowed_error", "any error of the database is taken for the item's", _swallowed),
    Mutant("counters_outside", "counters are written after the commit", _counters_outside),
    Mutant("errors_outside", "item errors are written before the transaction", _errors_outside),
    Mutant("effects_outside", "effects are written before the transaction", _effects_outside),
    Mutant(
        "no_token",
        "after a doubtful commit, COMPLETED is believed without one's own token",
        _no_token,
        database="postgresql",
    ),
    Mutant("doubt_not_read", "a doubtful commit is tried again without reading", _doubt_not_read),
    Mutant(
        "doubt_unlocked",
        "after a doubtful commit the chunk is read without a lock, its session left alone",
        _doubt_unlocked,
        database="postgresql",
    ),
    Mutant(
        "reconnected_bare",
        "a lost connection comes back without committing each statement by itself",
        _reconnected_bare,
        database="postgresql",
    ),
    Mutant(
        "foreign_key",
        "a foreign key leads from the attempt to its chunk",
        _as_it_is,
        database="postgresql",
        prepare=_add_foreign_key,
        undo=_drop_foreign_key,
    ),
)
