"""The keeper: beats, renews, sweeps and gives back, on a connection of its own."""

from __future__ import annotations

import queue
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from retoma.clock import Clock
from retoma.cluster import takeover
from retoma.cluster.children import Death
from retoma.cluster.sweep import Sweep
from retoma.cluster.timing import Timing
from retoma.events import Event, EventBus
from retoma.model.records import NodeIdentity
from retoma.store import chunks, nodes, progress
from retoma.store.dialects.contract import ZombieRemains
from retoma.store.session import Session
from retoma.store.store import Store, is_database_error, new_token

_SHORT_PATIENCE = "PRAGMA busy_timeout = 500"


@dataclass(slots=True)
class Keeper:
    """Keeps a worker's place in the store; ``tick`` does what is due and returns what it knows."""

    store: Store
    clock: Clock
    timing: Timing
    bus: EventBus
    identity: NodeIdentity
    claims: Callable[[], dict[str, float]]
    sweep: Sweep
    node_id: int
    is_stopping: Callable[[], bool]
    rejoined: Callable[[int], None] = lambda _node_id: None
    """Told the new node's id when this worker was removed and has come back."""

    deaths: queue.SimpleQueue[Death] = field(default_factory=queue.SimpleQueue)
    left: queue.SimpleQueue[tuple[str, str]] = field(default_factory=queue.SimpleQueue)
    """(token, cause) of attempts that ended without a commit; most of them are on the record."""

    beliefs: dict[str, float] = field(default_factory=dict)
    node_belief: float = 0.0
    trouble: str = ""
    trouble_since: float | None = None
    """Since when, by the monotonic clock, no heartbeat has been accepted; None: all is well."""
    _beat_at: float = -1e9
    _renewed_at: float = -1e9
    _swept_at: float = -1e9
    _session: Session | None = None
    _unfinished: list[Death] = field(default_factory=list)
    _unrecorded: dict[str, str] = field(default_factory=dict)
    _own_nodes: set[int] = field(default_factory=set)

    @property
    def session(self) -> Session:
        """The keeper's own connection: it never waits for a pool that work has emptied."""
        if self._session is None:
            self._session = self.store.control()
            if self.store.dialect.name == "sqlite":
                # Whoever holds the write lock may be frozen: the sweep must not wait for it.
                self._session.change("keeper.patience", _SHORT_PATIENCE)
        return self._session

    def tick(self) -> None:
        """One round; what a database did not answer is tried again in the next."""
        self._try(self._bury)
        self._try(self._clear)
        self._try(self._beat)
        self._try(self._renew)
        if self._is_due(self._swept_at, self.timing.sweep):
            self._swept_at = self.clock.monotonic()
            if not self._try(lambda: self.sweep.chunks(self.session)):
                self.sweep.forget()
            self._try(lambda: self.sweep.nodes(self.session, f"node {self.node_id}"))

    def _try(self, act: Callable[[], None]) -> bool:
        # One by one: on SQLite a frozen slot that holds the write lock makes beats fail, and just
        # then the sweep, which only reads at first, must find and end it.
        try:
            act()
        except Exception as error:
            if not is_database_error(error):
                raise
            if self._session is not None:
                self._session.discard()
                self._session = None
            self.trouble = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
            if self.trouble_since is None:
                self.trouble_since = self.clock.monotonic()
            self.bus.publish(Event("database.trouble", detail=self.trouble))
            return False
        return True

    def _is_due(self, last: float, every: float) -> bool:
        return self.clock.monotonic() - last >= every

    def _beat(self) -> None:
        if not self._is_due(self._beat_at, self.timing.beat):
            return
        sent = self.clock.boottime()
        if not nodes.beat(self.session, self.node_id):
            self._own_nodes.add(self.node_id)
            self.node_id = nodes.register(self.session, self._renamed())
            self.rejoined(self.node_id)
            self.bus.publish(Event("node.rejoined", detail=f"as node {self.node_id}"))
        self.node_belief = sent + self.timing.lease - self.timing.margin
        if self._is_due(self._beat_at, 2 * self.timing.beat):
            self.sweep.distrust()
        self._beat_at = self.clock.monotonic()
        self.trouble_since = None

    def _renamed(self) -> NodeIdentity:
        self.identity = replace(self.identity, incarnation=new_token())
        return self.identity

    def _renew(self) -> None:
        """Renew each reported claim, up to its attempt's deadline."""
        if not self._is_due(self._renewed_at, self.timing.renew):
            return
        beliefs = {}
        for token in self.claims():
            sent = self.clock.boottime()
            if chunks.renew(self.session, token, self.timing.lease):
                beliefs[token] = sent + self.timing.lease - self.timing.margin
        self.beliefs = beliefs
        self._renewed_at = self.clock.monotonic()

    def _bury(self) -> None:
        """Give back at once what dead slots held."""
        while not self.deaths.empty():
            self._unfinished.append(self.deaths.get())
        for death in list(self._unfinished):
            if self._give_back(death):
                self._unfinished.remove(death)

    def _clear(self) -> None:
        """Give back what living slots let go while the database did not answer."""
        while not self.left.empty():
            token, cause = self.left.get()
            self._unrecorded[token] = cause
        if not self._unrecorded:
            return
        for row in progress.running_chunks(self.session):
            if row.token in self._unrecorded:
                chunk = takeover.running_from(self.store, self.session, row)
                cause = self._unrecorded[row.token]
                try:
                    takeover.give_back(self.store, self.session, chunk, cause)
                except ZombieRemains:
                    return
                self._tell_given_back(chunk, cause)
        self._unrecorded.clear()

    def is_own(self, node_id: int) -> bool:
        """Whether this worker is that node, or was it before it was removed and came back."""
        self._own_nodes.add(self.node_id)
        return node_id in self._own_nodes

    def _give_back(self, death: Death) -> bool:
        for row in progress.running_chunks(self.session):
            chunk = takeover.running_from(self.store, self.session, row)
            # Another host may have a slot with the same number and the same process id.
            if chunk.owner.pid != death.pid or not self.is_own(chunk.owner.node_id):
                continue
            end = takeover.give_back if self.is_stopping() else takeover.end_crashed
            try:
                end(self.store, self.session, chunk, death.cause)
            except ZombieRemains:
                return False
            self._tell_given_back(chunk, death.cause)
        return True

    def _tell_given_back(self, chunk: takeover.Running, cause: str) -> None:
        claim = chunk.claim
        event = Event("chunk.given_back", claim.run_id, chunk_id=claim.chunk_id, detail=cause)
        self.bus.publish(event)

    def leave(self) -> None:
        """Say goodbye, so that nobody has to find out."""
        for state in ("ACTIVE", "DRAINING", "UNREACHABLE"):
            if nodes.change(self.session, self.node_id, state, "LEFT", self.identity.name, "left"):
                return
