"""Mutants of the sweep: who counts as lost, and what becomes of what he held."""

from __future__ import annotations

from datetime import timedelta
from types import SimpleNamespace
from typing import Any

from retoma.cluster import takeover
from retoma.cluster.coordinator import Coordinator
from retoma.cluster.suspicion import Suspicion
from retoma.cluster.sweep import Sweep
from retoma.store import chunks, progress
from retoma.store.session import Session
from retoma.store.tables import instant_text
from retoma.testing.simulation.mutants.mutant import Mutant, Patch


def _one_reading(patch: Patch) -> None:
    def observe(_self: Suspicion, expired: Any, _now: float) -> set[Any]:
        return {thing for thing, _mark in expired}

    patch(Suspicion, "observe", observe)


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


def _host_clock(patch: Patch) -> None:
    statement = progress._RUNNING.replace("{now}", ":now").replace("{lease}", ":longest")

    def running(session: Session) -> list[Any]:
        now = session._clock.utc().replace(tzinfo=None)
        longest = now + timedelta(seconds=progress._LONGEST_LEASE_SECONDS)
        values = {"now": instant_text(now), "longest": instant_text(longest)}
        return session.fetch("sweep.running", statement, values)

    patch(progress, "running_chunks", running)


def _skip_locked(patch: Patch) -> None:
    original = progress.running_chunks

    def running(session: Session) -> list[Any]:
        if session.backend == "sqlite":  # it has no such words
            return original(session)
        values = {"lease_seconds": progress._LONGEST_LEASE_SECONDS}
        statement = progress._RUNNING + " FOR UPDATE SKIP LOCKED"
        return session.fetch("sweep.running", statement, values)

    patch(progress, "running_chunks", running)


def _zombie_left(patch: Patch) -> None:
    toothless: Any = SimpleNamespace(
        dialect=SimpleNamespace(end_session=lambda _session, _name, _pid: None)
    )
    for name in ("end_lost", "end_crashed", "give_back"):
        original = getattr(takeover, name)

        def end(
            _store: Any, session: Session, chunk: Any, cause: str, original: Any = original
        ) -> Any:
            return original(toothless, session, chunk, cause)

        patch(takeover, name, end)


def _lost_as_crash(patch: Patch) -> None:
    original = chunks.release

    def release(session: Session, claimed: Any, **options: Any) -> bool:
        if options["outcome"] == "LOST":
            is_final = claimed.tries + 1 >= takeover._TRIES
            options |= {"tries": 1, "to_state": "FAILED" if is_final else "PENDING"}
        return original(session, claimed, **options)

    patch(chunks, "release", release)


TAKEOVER = (
    Mutant(
        "one_reading",
        "one reading of the database's clock is enough to take a chunk",
        _one_reading,
    ),
    Mutant("host_clock", "a process judges leases by the clock of its own machine", _host_clock),
    Mutant(
        "expired_hidden",
        "the sweep does not see chunks whose lease has run out",
        _expired_hidden,
    ),
    Mutant(
        "skip_locked",
        "the sweep looks with SKIP LOCKED",
        _skip_locked,
        database="postgresql",
    ),
    Mutant(
        "coordination_kept",
        "nobody takes the run of a coordinator that died",
        _coordination_kept,
    ),
    Mutant(
        "orphan_forgotten",
        "a claim whose answer was lost is left to its slot",
        _orphan_forgotten,
    ),
    Mutant(
        "zombie_left",
        "a chunk is taken without ending its old session",
        _zombie_left,
        database="postgresql",
    ),
    Mutant(
        "lost_as_crash",
        "a chunk whose worker was lost has used up a try, as if its code had crashed",
        _lost_as_crash,
    ),
)
