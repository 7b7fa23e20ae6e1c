"""A server stepped in one thread: locks are waited for in virtual time, and what dies leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy.exc import DBAPIError

from retoma.errors import FailureKind
from retoma.store.dialects.contract import Guarded
from retoma.store.store import Store
from retoma.testing.simulation import night
from retoma.testing.simulation.actors import Scene
from retoma.testing.simulation.server_stage import ServerStage
from retoma.testing.simulation.setting import Setting, calm, draw
from retoma.testing.simulation.virtual import VirtualClock
from retoma.testing.simulation.world import World

CALM = replace(calm(draw(0)), latency=0.0)
RAISE = "UPDATE sim_source SET version = version + 1 WHERE id = 1"
VERSION = "SELECT version FROM sim_source WHERE id = 1"
LONG = 1_000.0


@pytest.fixture
def stage(open_stage: Callable[[], ServerStage]) -> Iterator[ServerStage]:
    with open_stage() as stage:
        yield stage


class Town:
    """A world in which each task is a process of its own, with its own view of the database."""

    def __init__(self, stage: ServerStage, setting: Setting = CALM) -> None:
        self.stage = stage
        self.world = World(setting)
        self.looks = 0
        self.going = 0
        self._scene = Scene(self.world, stage, night.job_of(setting))
        stage.reset(setting)
        stage.enter(self.world, self._look)

    def _look(self) -> None:
        self.looks += 1

    def start(self, name: str, work: Callable[[Store], None], after: float = 0.0) -> None:
        process = self.world.process(name, name)
        store = self._scene.store(process)
        self.going += 1

        def run() -> None:
            self.world.wait(after)
            work(store)
            self.going -= 1
            self.world.is_stopped = self.going == 0

        self.world.start(process, name, run)

    def run(self) -> None:
        try:
            self.world.run(LONG)
            assert self.world.ended_by == []
        finally:
            self.world.end()
            self.stage.leave()


def holding(town: Town, seconds: float) -> Callable[[Store], None]:
    def hold(store: Store) -> None:
        session = store.work()
        session.begin("hold")
        session.change("hold", RAISE)
        town.world.wait(seconds)
        session.commit("hold")
        session.close()

    return hold


def test_a_lock_is_waited_for_in_virtual_time(stage: ServerStage) -> None:
    town = Town(stage)
    got: list[float] = []

    def change(store: Store) -> None:
        session = store.control()
        session.change("t", RAISE)
        got.append(town.world.now)
        session.close()

    town.start("holder", holding(town, 3.0))
    town.start("waiter", change, after=1.0)
    town.run()
    assert 3.0 <= got[0] < 4.0
    assert town.world.counters["lock.waited"] >= 2
    assert stage.query(VERSION) == [(3,)]


def test_a_lock_that_is_not_given_back_ends_in_a_passing_error(stage: ServerStage) -> None:
    town = Town(stage)
    ended: list[tuple[float, FailureKind, bool]] = []

    def change(store: Store) -> None:
        session = store.control()
        try:
            session.change("t", RAISE)
        except DBAPIError as error:
            lost = store.dialect.is_connection_lost(error)
            ended.append((town.world.now, store.kind_of(error), lost))
        session.close()

    town.start("holder", holding(town, 30.0))
    town.start("waiter", change, after=1.0)
    town.run()
    assert 6.0 <= ended[0][0] < 8.0
    assert ended[0][1:] == (FailureKind.TRANSIENT, False)
    assert stage.query(VERSION) == [(2,)]


def test_what_a_killed_process_had_open_is_undone(stage: ServerStage) -> None:
    town = Town(stage)

    def begin_and_stand(store: Store) -> None:
        session = store.work()
        session.begin("t")
        session.dialect.enter_work(session, "rt:sim:1:1", 30.0)
        session.change("t", RAISE)
        town.going -= 1
        town.world.wait(LONG)

    def kill_and_change(store: Store) -> None:
        victim = next(p for p in town.world.processes.values() if p.name.startswith("victim"))
        town.world.kill(victim)
        session = store.control()
        session.dialect.end_session(session, "rt:sim:1:1", None)  # noticed at once or late
        session.change("t", "UPDATE sim_source SET version = 10 WHERE id = 1")
        session.close()

    town.start("victim", begin_and_stand)
    town.start("heir", kill_and_change, after=1.0)
    town.run()
    assert stage.query(VERSION) == [(10,)]
    assert town.world.counters.get("lock.waited", 0) == 0, "the old session was still there"


def test_a_restart_breaks_every_connection(stage: ServerStage) -> None:
    town = Town(stage)
    ended: list[bool] = []

    def work(store: Store) -> None:
        session = store.work()
        session.begin("t")
        session.change("t", RAISE)
        town.world.wait(2.0)
        try:
            session.change("t", RAISE)
        except DBAPIError as error:
            ended.append(store.dialect.is_connection_lost(error))
        session.discard()

    def restart(_store: Store) -> None:
        stage.restart()

    town.start("worker", work)
    town.start("fate", restart, after=1.0)
    town.run()
    assert ended == [True]
    assert stage.query(VERSION) == [(1,)]


def test_the_database_has_the_time_of_the_world(stage: ServerStage) -> None:
    town = Town(stage)
    seen: list[Any] = []

    def ask(store: Store) -> None:
        town.world.wait(100.0)
        town.world.clock_offset = -30.0
        session = store.control()
        told = session.fetch("t", "SELECT {now}")[0][0]
        seen.append(
            (told.replace(tzinfo=None), VirtualClock(town.world).utc().replace(tzinfo=None))
        )
        session.close()

    town.start("asker", ask)
    town.run()
    assert abs((seen[0][0] - seen[0][1]).total_seconds()) < 0.5


@pytest.mark.parametrize(("kind", "version"), [("lost.committed", 2), ("lost.rolled_back", 1)])
def test_a_control_transactions_answer_can_be_lost(
    stage: ServerStage, kind: str, version: int
) -> None:
    town = Town(stage, replace(CALM, storm_seconds=LONG, rates_at_commits=((kind, 1.0),)))
    ended: list[bool] = []

    def change(store: Store) -> None:
        session = store.control()
        try:
            session.once(Guarded(name="t", guard=RAISE), {})
        except DBAPIError as error:
            ended.append(store.dialect.is_connection_lost(error))
        session.discard()

    town.start("worker", change)
    town.run()
    assert ended == [True]
    assert stage.query(VERSION) == [(version,)]


def test_the_tables_are_looked_at_after_what_may_have_changed_them(stage: ServerStage) -> None:
    town = Town(stage)
    seen: list[int] = []
    untouched = Guarded(name="t", guard="UPDATE batch_chunk SET tries = 0 WHERE id = -1")
    unwatched = Guarded(name="t", guard=RAISE)
    changed = Guarded(
        name="t",
        guard=RAISE,
        then=("UPDATE batch_chunk SET tries = 0 WHERE {guarded}",),
    )

    def work(store: Store) -> None:
        session = store.control()
        for operation in (untouched, unwatched, changed):
            session.once(operation, {})
            seen.append(town.looks)
        session.close()
        holding(town, 0.0)(store)
        seen.append(town.looks)

    town.start("worker", work)
    town.run()
    assert seen == [0, 0, 1, 2]


def test_a_statement_whose_process_dies_while_it_waits_harms_nobody(stage: ServerStage) -> None:
    for seed in range(4):  # the server notices the death at once in some, late in others
        town = Town(stage, replace(CALM, seed=seed))

        def change(store: Store) -> None:
            store.control().change("t", RAISE)

        def kill(_store: Store, town: Town = town) -> None:
            victim = next(p for p in town.world.processes.values() if p.name.startswith("victim"))
            town.going -= 1
            town.world.kill(victim)
            town.world.wait(60.0)

        town.start("holder", holding(town, 50.0))
        town.start("victim", change, after=1.0)
        town.start("killer", kill, after=3.0)
        town.run()
        assert town.world.counters["lock.waited"] >= 2
        assert stage.query(VERSION)[0][0] in (2, 3)
        stage.reset(CALM)
        assert stage.query(VERSION) == [(1,)], "something of the world before is still at work"


def test_a_hiccup_is_no_lost_connection(stage: ServerStage) -> None:
    town = Town(stage)
    seen: list[tuple[FailureKind, bool]] = []

    def work(store: Store) -> None:
        session = store.control()
        driver: Any = session.connection.connection.driver_connection
        error = driver.lock_timeout()
        seen.append((store.kind_of(error), store.dialect.is_connection_lost(error)))
        session.close()

    town.start("worker", work)
    town.run()
    assert seen == [(FailureKind.TRANSIENT, False)]
