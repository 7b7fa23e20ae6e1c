"""The sweep: finds chunks whose owner is gone, and nodes that fell silent."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from dataclasses import dataclass, field

from retoma.clock import Clock
from retoma.cluster import takeover
from retoma.cluster.identity import is_at_work, is_certainly_dead
from retoma.cluster.suspicion import Suspicion
from retoma.cluster.timing import Timing
from retoma.events import Event, EventBus
from retoma.store import nodes, progress
from retoma.store.dialects.contract import ZombieRemains
from retoma.store.dialects.sqlite_lock import holder_of_write_lock
from retoma.store.session import Session
from retoma.store.store import Store


@dataclass(slots=True)
class Sweep:
    """Looks at all RUNNING chunks and at all nodes, on the caller's session."""

    store: Store
    clock: Clock
    timing: Timing
    bus: EventBus
    is_mine: Callable[[int, int], bool]
    """(node, slot pid) → whether that slot lives in this worker and is renewed here."""

    is_held: Callable[[str], bool] = lambda _token: False
    """Whether a living slot of this worker has reported the claim with that token."""

    waiting_for: dict[int, str] = field(default_factory=dict)
    _suspicion: Suspicion = field(init=False)
    _sound_since: float = field(init=False)

    def __post_init__(self) -> None:
        self._suspicion = Suspicion(self.timing.unchanged)
        self._sound_since = self.clock.monotonic()

    def forget(self) -> None:
        """A sweep failed: all waiting starts anew."""
        self._suspicion.forget()
        self.distrust()

    def distrust(self) -> None:
        """This worker was cut off itself: for a while it judges no other node by its silence."""
        self._sound_since = self.clock.monotonic()

    def chunks(self, session: Session) -> None:
        """Look at all RUNNING chunks once."""
        rows = progress.running_chunks(session)
        chunks = [takeover.running_from(self.store, session, row) for row in rows]
        expired = [
            (chunk.claim.chunk_id, (chunk.claim.fence, chunk.lease_mark))
            for chunk in chunks
            if chunk.is_expired
        ]
        ripe = self._suspicion.observe(expired, self.clock.monotonic())
        ripe -= {c.claim.chunk_id for c in chunks if self._is_only_busy(session, c, ripe)}
        blocker = self._blocker(session, [c for c in chunks if c.claim.chunk_id in ripe])
        if blocker is not None:
            # Nobody could renew behind it: it alone is judged, and all other waiting starts anew.
            self._take(session, blocker, "its lease ran out, and it held up all others")
            self.forget()
            return
        for chunk in chunks:
            if chunk.claim.chunk_id in ripe:
                self._take(session, chunk, "its lease ran out")
            elif not self.is_mine(chunk.owner.node_id, chunk.owner.pid):
                node = nodes.identity(session, chunk.owner.node_id)
                if is_certainly_dead(self.store.host, node, chunk.owner.pid):
                    self._take(session, chunk, "its worker is dead on this host")

    def _is_only_busy(self, session: Session, chunk: takeover.Running, ripe: set[Hashable]) -> bool:
        """On SQLite a long transaction keeps even its own supervisor from renewing its lease.

        So there a slot that runs under a running supervisor is left to that: it ends the slot at the
        attempt's deadline. One host has them all, so that this can be seen. A claim of an own slot that
        it never reported is an orphan: its answer was lost, and nobody works on it.
        """
        if self.store.dialect.name != "sqlite" or chunk.claim.chunk_id not in ripe:
            return False
        is_mine = self.is_mine(chunk.owner.node_id, chunk.owner.pid)
        if is_mine and not self.is_held(chunk.claim.token):
            return False
        node = nodes.identity(session, chunk.owner.node_id)
        return is_at_work(self.store.host, node, chunk.owner.pid)

    def _blocker(self, session: Session, ripe: list[takeover.Running]) -> takeover.Running | None:
        """The chunk whose slot holds SQLite's write lock; other databases lock by row."""
        path = session.connection.engine.url.database
        if not ripe or not path or self.store.dialect.name != "sqlite":
            return None
        holder = holder_of_write_lock(self.store.host, path)
        return next((chunk for chunk in ripe if chunk.owner.pid == holder), None)

    def _take(self, session: Session, chunk: takeover.Running, cause: str) -> None:
        try:
            is_taken = takeover.end_lost(self.store, session, chunk, cause)
        except ZombieRemains:
            self.waiting_for[chunk.claim.chunk_id] = cause
            self.bus.publish(Event("chunk.zombie", chunk_id=chunk.claim.chunk_id, detail=cause))
            return
        self.waiting_for.pop(chunk.claim.chunk_id, None)
        if is_taken:
            self.bus.publish(
                Event("chunk.lost", chunk.claim.run_id, chunk_id=chunk.claim.chunk_id, detail=cause)
            )

    def nodes(self, session: Session, actor: str) -> None:
        """Look at all nodes once, unless an outage may have kept them from beating."""
        timing = self.timing
        if self.clock.monotonic() - self._sound_since < timing.unchanged:
            return
        for node_id, state, is_past in nodes.silent(session, timing.unreachable, timing.removed):
            if is_past:
                nodes.change(session, node_id, state, "REMOVED", actor, "silent too long")
            elif state == "ACTIVE":
                nodes.change(session, node_id, state, "UNREACHABLE", actor, "no heartbeat")
