"""Plays one seed on a real SQLite file."""

from __future__ import annotations

import gc
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine

from retoma.store import migrate
from retoma.store.store import Store
from retoma.store.tables import metadata as control
from retoma.testing.simulation import night
from retoma.testing.simulation.actors import EPOCH, Scene, VirtualClock
from retoma.testing.simulation.invariants import Violation, Watch, at_the_end
from retoma.testing.simulation.setting import Script, Setting
from retoma.testing.simulation.sqlite_wire import WIRE, DirectSession, make_engine
from retoma.testing.simulation.world import Stuck, World

_LIVENESS_SECONDS = 400.0
_SEEDS_A_COLLECTION = 20
_JUMP_SECONDS = 30.0
_MEMORY = ("/dev/shm",)  # noqa: S108 - a private folder is made in it
Trace = Callable[[float, str, str], None]


@dataclass(frozen=True, slots=True)
class Played:
    """How a seed went: ``violation`` names the invariant that did not hold, if any."""

    seed: int
    violation: str | None
    text: str
    fired: Script
    statements: int
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)


class _Clock:
    """The clock of the database: that of whatever world is played."""

    def utc(self) -> Any:
        return VirtualClock(WIRE.world).utc() if WIRE.world else EPOCH

    def monotonic(self) -> float:
        return 0.0

    def boottime(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        return


class SqliteStage:
    """A database file that serves one seed after the other."""

    def __init__(self, prepare: Callable[[Engine], None] = lambda _engine: None) -> None:
        memory = next((path for path in _MEMORY if Path(path).is_dir()), None)
        self._folder = tempfile.TemporaryDirectory(prefix="retoma-sim-", dir=memory)
        self.path = str(Path(self._folder.name) / "night.db")
        self.url = f"sqlite:///{self.path}"
        store = Store(self.url)
        migrate.ensure(store)
        night.metadata.create_all(store.engine)
        prepare(store.engine)
        store.dispose()
        self.engine: Engine = make_engine(self.path, _Clock())
        self.observer = sqlite3.connect(self.path, isolation_level=None)
        names = [table.name for table in (*control.sorted_tables, *night.metadata.sorted_tables)]
        self._played = 0
        gc.collect()
        gc.freeze()  # so that collecting what a seed leaves behind is cheap
        self._clear = [f"DELETE FROM {name}" for name in names if name != "batch_store"]

    def query(self, statement: str) -> list[Any]:
        """What the tables say now."""
        return self.observer.execute(statement).fetchall()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.engine.dispose()
        WIRE.forget()
        self.observer.close()
        self._folder.cleanup()

    def _reset(self, setting: Setting) -> None:
        self._played += 1
        if self._played % _SEEDS_A_COLLECTION == 0:
            gc.collect()
        rows = [(n, verdict, 1) for n, verdict in enumerate(night.verdicts_of(setting), start=1)]
        self.observer.execute("BEGIN IMMEDIATE")
        for statement in self._clear:
            self.observer.execute(statement)
        self.observer.executemany("INSERT INTO sim_source VALUES (?, ?, ?)", rows)
        self.observer.execute("COMMIT")

    def play(self, setting: Setting, trace: Trace | None = None) -> Played:
        """Play a world to its end."""
        self._reset(setting)
        world = World(setting, trace)
        watch = Watch(world, self.query)
        scene = Scene(
            world,
            self.url,
            self.engine,
            night.job_of(setting),
            WIRE.writer,
            is_one_host=True,
            session_class=DirectSession,
        )
        failed: list[Exception] = []

        def on_commit() -> None:
            try:
                watch.look()
            except Violation as violation:
                failed.append(violation)

        night.FATE.world, night.FATE.swallow, night.FATE.hiccup = world, None, False
        night.FATE.computed.clear()
        WIRE.world, WIRE.on_commit, world.on_kill = world, on_commit, WIRE.cut
        try:
            scene.launcher()
            scene.keep_manned()
            _schedule(scene)
            limit = setting.storm_seconds + _LIVENESS_SECONDS
            world.run(lambda: scene.is_complete or bool(failed), limit)
        except Stuck as stuck:
            errors = "; ".join({f"{type(e).__name__}: {e}"[:200] for e in world.ended_by})
            failed.append(Violation("run_ends", f"{stuck} {errors}".strip()))
        finally:
            world.end()
            WIRE.world = None
            for connection in list(WIRE.open):
                connection.break_off()
        if not failed:
            try:
                at_the_end(world, self.query)
            except Violation as violation:
                failed.append(violation)
        first = failed[0] if failed else None
        return Played(
            seed=setting.seed,
            violation=first.name if isinstance(first, Violation) else None,
            text=str(first) if first else "",
            fired=tuple(world.fired),
            statements=world.statements,
            seconds=world.now,
            counters=world.counters,
        )


def _schedule(scene: Scene) -> None:
    """What happens to the world as a whole, at instants that the seed draws."""
    world = scene.world
    fate = world.process("fate", "elsewhere")
    fate.is_mortal = False

    def event(kind: str, at: float, size: float) -> Callable[[], None]:
        def happen() -> None:
            world.wait(at)
            world.count(f"fault.{kind}")
            world.tell(f"fate: {kind}")
            if kind == "clock.forward":
                world.clock_offset += size * _JUMP_SECONDS
            elif kind == "clock.back":
                world.clock_offset -= size * _JUMP_SECONDS
            elif kind == "stop":
                scene.ask_to_stop()
            else:
                for connection in list(WIRE.open):
                    if connection.owner is not None:
                        connection.break_off()

        return happen

    for kind, _rate in world.setting.events:
        fault = world.fate(((kind, 1.0),))
        if fault is not None:
            at = world.random.uniform(0.0, world.setting.storm_seconds)
            world.start(fate, kind, event(kind, at, fault[1]))
