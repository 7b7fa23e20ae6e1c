"""A worker: one supervisor and its slots.

The main thread spawns, hears and ends slots, and lives as long as they do (the kernel's parent-death
signal follows the thread that spawned). The keeper and the coordinator run in threads of their own,
each a timer around a tick, each on its own connection.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from retoma.clock import SYSTEM_CLOCK, Clock
from retoma.cluster.children import Children, Death
from retoma.cluster.coordinator import Coordinator
from retoma.cluster.identity import this_node
from retoma.cluster.joining import join
from retoma.cluster.keeper import Keeper
from retoma.cluster.processes import ChildProcesses
from retoma.cluster.sweep import Sweep
from retoma.cluster.timing import DEFAULT_TIMING, Timing
from retoma.errors import NeedsPerson, TransientFailure
from retoma.events import Event, EventBus
from retoma.model.job import Job
from retoma.model.records import NodeIdentity
from retoma.model.status import RunState
from retoma.release import VERSION
from retoma.store.store import Store

_HEAR_SECONDS = 0.05
_GRACE_SECONDS = 30.0
_SHORTEST_LIFE_SECONDS = 2.0
_PATIENCE_SECONDS = 120.0
_DEATHS_AT_BIRTH = 8


@dataclass(slots=True)
class Supervisor:
    """Runs slots until told to stop, or until the one run it was started for has ended."""

    store: Store
    jobs: Mapping[str, Job]
    apps: Sequence[str]
    slots: int
    name: str = ""
    only_run: int | None = None
    timing: Timing = DEFAULT_TIMING
    clock: Clock = SYSTEM_CLOCK
    bus: EventBus = field(default_factory=EventBus)
    stop_requested: threading.Event = field(default_factory=threading.Event)
    children: Children = field(init=False)
    keeper: Keeper = field(init=False)
    coordinator: Coordinator = field(init=False)
    _stopping: bool = False
    _failure: list[BaseException] = field(default_factory=list)
    _finished: threading.Event = field(default_factory=threading.Event)
    _crashes: int = 0
    _told: tuple[float, int, int] | None = None

    def run(self, token: str | None = None, node_id: int | None = None) -> RunState | None:
        """Work; the state of ``only_run`` if it ended. ``token``: its coordination lease, if held."""
        identity = this_node(self.store.host, self.name, self.slots, VERSION)
        sent = self.clock.boottime()
        node_id = node_id or join(self.store, identity, self.timing, self.bus)
        children = ChildProcesses(
            self.clock,
            url=self.store.url,
            apps=self.apps,
            run_id=self.only_run,
            timing=self.timing,
        )
        self.begin(children, identity, node_id, sent)
        if token is not None and self.only_run is not None:
            self.coordinator.hold(self.only_run, token)
        threads = [
            self._timer("keeper", self.keeper.tick, 0.1),
            self._timer("coordinator", self.coordinator.tick, self.timing.coordinate),
        ]
        try:
            while not self.is_over():
                self.tick()
            self._drain()
        finally:
            children.kill_all()
            self._finished.set()
            for thread in threads:
                thread.join(timeout=10)
        if self._failure:
            raise self._failure[0]
        self.leave()
        return self.coordinator.ended.get(self.only_run) if self.only_run is not None else None

    def begin(self, children: Children, identity: NodeIdentity, node_id: int, sent: float) -> None:
        """Take up the work of a node that was registered; ``sent``: before that, by ``boottime``."""

        def is_mine(_node: int, pid: int) -> bool:
            return any(child.pid == pid for child in list(children.alive.values()))

        def is_held(token: str) -> bool:
            return any(child.token == token for child in list(children.alive.values()))

        self.children = children
        self.keeper = Keeper(
            store=self.store,
            clock=self.clock,
            timing=self.timing,
            bus=self.bus,
            identity=identity,
            claims=children.claims,
            sweep=Sweep(self.store, self.clock, self.timing, self.bus, is_mine, is_held),
            node_id=node_id,
            is_stopping=lambda: self._stopping,
        )
        self.coordinator = Coordinator(
            self.store,
            self.jobs,
            self.clock,
            self.timing,
            self.bus,
            node_id,
            self.slots,
            self.only_run,
        )
        self.keeper.rejoined = self.coordinator.rejoined
        self.keeper.node_belief = sent + self.timing.lease - self.timing.margin

    def leave(self) -> None:
        """Give back what is left, and say goodbye."""
        self.keeper.tick()
        self.coordinator.put_down()
        self.keeper.leave()

    def _timer(self, name: str, tick: Callable[[], None], every: float) -> threading.Thread:
        def loop() -> None:
            while not self._finished.wait(every):
                try:
                    tick()
                except BaseException as error:
                    self._failure.append(error)
                    self.stop_requested.set()
                    return

        thread = threading.Thread(target=loop, name=name, daemon=True)
        thread.start()
        return thread

    def tick(self) -> None:
        """Keep the slots filled and informed, once."""
        children, keeper = self.children, self.keeper
        for number in range(self.slots):
            if number not in children.alive:
                children.spawn(number, keeper.node_id, keeper.node_belief)
        self._inform()
        children.hear(_HEAR_SECONDS)
        children.kill_overdue()
        self._note()
        self._require_database()
        for death in children.reap():
            keeper.deaths.put(death)
            self._require_life(death)
            self.bus.publish(Event("slot.died", detail=death.cause))
            # A slot that dies at birth must not be spawned in a tight loop.
            self.clock.sleep(_pause_seconds(self._crashes))

    def _require_life(self, death: Death) -> None:
        """Slots that die again and again before they hold a chunk would be spawned for ever."""
        self._crashes = self._crashes + 1 if death.was_idle else 0
        if self.only_run is not None and self._crashes >= _DEATHS_AT_BIRTH:
            raise NeedsPerson(
                f"{self._crashes} slots in a row died before they took a chunk: {death.cause}",
                safe="Committed chunks stay; the run stays live and can be taken up.",
                next_step="look at the errors above, cure the cause, then repeat the same command",
            )

    def _require_database(self) -> None:
        """A worker waits for its database as long as it takes; a foreground run tells its caller."""
        keeper = self.keeper
        if self.only_run is None or keeper.trouble_since is None:
            return
        seconds = self.clock.monotonic() - keeper.trouble_since
        if seconds > _PATIENCE_SECONDS:
            raise TransientFailure(
                f"the database has not taken a heartbeat for {seconds:.0f} s: {keeper.trouble}",
                safe="Committed chunks stay; the run stays live and can be taken up.",
                next_step="cure the cause, then repeat the same command",
            )

    def _note(self) -> None:
        while self.children.reports:
            report = self.children.reports.pop(0)
            if "ended" in report:
                self._crashes = 0
                name = "chunk.failed" if report["kind"] else "chunk.completed"
                if report["kind"]:
                    self.keeper.left.put((report["ended"], str(report["message"])))
                self.bus.publish(Event(name, items=report["items"], detail=str(report["message"])))
            elif "trouble" in report:
                self.bus.publish(Event("database.trouble", detail=str(report["trouble"])))

    def _inform(self) -> None:
        keeper = self.keeper
        news = (keeper.node_belief, id(keeper.beliefs), keeper.node_id)
        if news != self._told:
            order = {
                "believe": keeper.node_belief,
                "claims": keeper.beliefs,
                "node": keeper.node_id,
            }
            self.children.tell_all(order)
        self._told = news

    def is_over(self) -> bool:
        """Whether there is a reason to end."""
        if self._failure:
            return True
        if self.only_run is not None:
            # A stop of a foreground run is a request in the store: the coordinator ends the run.
            return self.only_run in self.coordinator.ended
        return self.stop_requested.is_set()

    def _drain(self) -> None:
        """Let the slots finish the chunk in hand; what does not end in time is given back."""
        children, keeper = self.children, self.keeper
        self._stopping = True
        children.tell_all({"stop": True})
        until = self.clock.monotonic() + _GRACE_SECONDS
        while children.alive and self.clock.monotonic() < until:
            children.hear(_HEAR_SECONDS)
            children.kill_overdue()
            self._note()
            for death in children.reap():
                keeper.deaths.put(death)
        for child in list(children.alive.values()):
            child.process.kill()
            child.process.wait()
        for death in children.reap():
            keeper.deaths.put(death)


def _pause_seconds(crashes: int) -> float:
    """How long to wait before the next slot is spawned, after so many that died at birth."""
    return min(0.05 * 2.0 ** min(crashes, 10), _SHORTEST_LIFE_SECONDS)
