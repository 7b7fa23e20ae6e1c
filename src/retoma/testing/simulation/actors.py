"""Who lives in the simulated world: workers made of the real supervisor, keeper, coordinator and slot."""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.cluster.children import Child, Children
from retoma.cluster.identity import this_node
from retoma.cluster.joining import join
from retoma.cluster.supervisor import Supervisor
from retoma.cluster.work import Orders, SlotWork
from retoma.engine.history import Entry, Log, no_log
from retoma.engine.launch import Launched, launch
from retoma.errors import FailureKind
from retoma.events import Event, EventBus
from retoma.model.job import Job
from retoma.release import VERSION
from retoma.store import requests, runs
from retoma.store.store import Store, is_database_error
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import TIMING
from retoma.testing.simulation.stage import Stage
from retoma.testing.simulation.virtual import VirtualClock, VirtualHost
from retoma.testing.simulation.world import Process, World

_SOURCE_CHANGED = "SELECT count(*) FROM batch_run WHERE failure_kind = 'SOURCE_CHANGED'"
_KEEPER_SECONDS = 1.2
_HEAR_SECONDS = 1.5
_PAUSE_SECONDS = 2.0
_LOOK_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class SlotHandle:
    """A simulated slot as its supervisor holds it."""

    process: Process
    orders: Orders

    @property
    def pid(self) -> int:
        return self.process.pid

    def poll(self) -> int | None:
        return self.process.code

    def kill(self) -> None:
        self.process.world.kill(self.process)

    def wait(self) -> int:
        return self.process.code or 0


@dataclass(slots=True, kw_only=True)
class VirtualChildren(Children):
    """Slots as simulated processes."""

    scene: Scene
    supervisor: Process

    def spawn(self, number: int, node_id: int, believe: float) -> None:
        world = self.scene.world
        process = world.process(f"slot{number}", self.supervisor.host, self.supervisor)
        orders = Orders(node_id, believe)
        child = Child(number, SlotHandle(process, orders))
        self.alive[number] = child

        def report(message: Mapping[str, Any]) -> None:
            if message.get("kind") == FailureKind.LOST_RACE:
                world.count("commit.refused")
            if process.is_alive and self.supervisor.is_alive:
                self.take(child, message)

        work = SlotWork(
            store=self.scene.store(process),
            jobs={self.scene.job.name: self.scene.job},
            timing=TIMING,
            orders=orders,
            number=number,
            run_id=None,
            report=report,
            random=random.Random(world.random.random()),
            log=self.scene.hear_attempt,
        )

        def pause(seconds: float) -> None:
            world.wait(max(seconds, _PAUSE_SECONDS))

        world.start(process, "slot", lambda: work.serve(pause))

    def hear(self, timeout: float) -> None:
        if timeout:
            self.scene.world.wait(_HEAR_SECONDS)

    def tell(self, child: Child, order: Mapping[str, Any]) -> None:
        assert isinstance(child.process, SlotHandle)
        child.process.orders.take(order)

    def forget(self, child: Child) -> None:
        return


@dataclass(slots=True)
class Scene:
    """One world with its database and its job."""

    world: World
    stage: Stage
    job: Job
    told: Log = no_log
    _in_doubt: set[tuple[int, int]] = field(default_factory=set)

    def store(self, process: Process) -> Store:
        """A process's view of the database."""
        store = Store(
            self.stage.url,
            engine=self.stage.engine,
            point=self.world.point,
            clock=VirtualClock(self.world, process.clock_error),
            host=VirtualHost(self.world, process, self.stage.writer),
        )
        store.session_class = self.stage.session_class
        if self.stage.now is not None:
            store.dialect.now = self.stage.now
        return store

    def worker(self, number: int) -> Process:
        """Start a worker."""
        world = self.world
        host = "host" if self.world.setting.is_one_host else f"host{number}"
        process = world.process(f"worker{number}", host)

        def loop(tick: Callable[[], None], every: float) -> Callable[[], None]:
            def forever() -> None:
                while True:
                    tick()
                    world.wait(every)

            return forever

        def main() -> None:
            store = self.store(process)
            jobs = {self.job.name: self.job}
            bus = EventBus()
            bus.subscribe(self._hear)
            supervisor = Supervisor(
                store, jobs, (), world.setting.slots, timing=TIMING, clock=store.clock, bus=bus
            )
            identity = this_node(store.host, process.name, world.setting.slots, VERSION)
            sent = store.clock.boottime()
            node_id = join(store, identity, TIMING, bus)
            children = VirtualChildren(store.clock, scene=self, supervisor=process)
            supervisor.begin(children, identity, node_id, sent)
            world.start(process, "keeper", loop(supervisor.keeper.tick, _KEEPER_SECONDS))
            world.start(
                process, "coordinator", loop(supervisor.coordinator.tick, TIMING.coordinate)
            )
            while not supervisor.is_over():
                supervisor.tick()

        world.start(process, "main", main)
        return process

    def hear_attempt(self, entry: Entry) -> None:
        """Count what an attempt tells of itself: the rare endings must not stay untried."""
        self.told(entry)
        key = (entry.chunk_id, entry.fence)
        if entry.kind == "unknown":
            self._in_doubt.add(key)
        elif key in self._in_doubt and entry.kind in ("ok", "fail"):
            self._in_doubt.discard(key)
            self.world.count(f"doubt.{entry.kind}")

    def _hear(self, event: Event) -> None:
        if event.name == "run.coordinated" and event.detail.startswith("node"):
            self.world.count("run.taken_over")
        self.world.count(event.name)
        self.world.tell(f"event {event.name} {event.detail}")

    def launcher(self, number: int) -> None:
        """A scheduler of the site: it asks for the job until it is complete."""
        process = self.world.process(f"launcher{number}", "elsewhere")
        process.is_mortal = False
        store = self.store(process)

        def main() -> None:
            session = store.control()
            while not self.world.is_complete:
                try:
                    found = launch(session, self.job, {}, "launcher").found
                    if found is Launched.COMPLETE:
                        self.world.is_complete = True
                except Exception as error:
                    if not is_database_error(error):
                        raise
                    session.discard()
                    session = store.control()
                self.world.wait(_LOOK_SECONDS)

        self.world.start(process, "main", main)

    def keep_manned(self) -> None:
        """The init system of the site: it starts workers that are gone."""
        process = self.world.process("init", "elsewhere")
        process.is_mortal = False

        def main() -> None:
            crew: dict[int, Process] = {}
            while True:
                for number in range(1, self.world.setting.workers + 1):
                    if number not in crew or not crew[number].is_alive:
                        crew[number] = self.worker(number)
                self.world.wait(self.world.random.uniform(1.0, 10.0))

        self.world.start(process, "main", main)

    def ask_to_stop(self) -> None:
        """An operator asks the latest run to stop."""
        process = self.world.process("operator", "elsewhere")
        process.is_mortal = False
        store = self.store(process)

        def main() -> None:
            session = store.control()
            try:
                latest = runs.live(session)
                if latest:
                    requests.ask_to_stop(session, latest[0].run_id, "operator", "a wish")
            except Exception as error:
                if not is_database_error(error):
                    raise
                self.world.tell("the wish was not heard")
            finally:
                session.close()

        self.world.start(process, "main", main)

    def let_a_row_come_late(self) -> None:
        """A row is committed to the source while it is read; a run that fails of it loses it again.

        The site's people take it out of the source then, for another night.
        """
        setting = self.world.setting
        late = setting.late_item
        if not late:
            return
        verdict = night.verdicts_of(setting)[late - 1]
        process = self.world.process("ledger", "elsewhere")
        process.is_mortal = False
        store = self.store(process)

        def change(text: str) -> None:
            while True:
                session = store.control()
                try:
                    session.change("source.change", text)
                except Exception as error:
                    if not is_database_error(error):
                        raise
                    self.world.wait(_LOOK_SECONDS)
                else:
                    return
                finally:
                    session.close()

        def main() -> None:
            change(f"INSERT INTO sim_source VALUES ({late}, '{verdict}', 1)")
            night.FATE.late_at = self.world.moment
            while not self.stage.query(_SOURCE_CHANGED)[0][0]:
                self.world.wait(_LOOK_SECONDS)
            change(f"DELETE FROM sim_source WHERE id = {late}")
            night.FATE.late_at = None
            self.world.count("late.withdrawn")

        self.world.start(process, "main", main)
