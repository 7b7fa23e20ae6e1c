"""The stage on a real SQLite file, in memory where the system has such a place."""

from __future__ import annotations

import gc
import sqlite3
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from sqlalchemy import Engine

from retoma.store import migrate
from retoma.store.store import Store
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.sqlite_wire import WIRE, DirectSession, make_engine
from retoma.testing.simulation.stage import TABLES, Stage, WorldClock
from retoma.testing.simulation.world import Process, World

_SEEDS_A_COLLECTION = 20
_MEMORY = ("/dev/shm",)  # noqa: S108 - a private folder is made in it


class SqliteStage(Stage):
    """One database file; ``prepare`` may change its tables before the first seed."""

    name = "SQLite"
    session_class = DirectSession

    def __init__(self, prepare: Callable[[Engine], None] = lambda _engine: None) -> None:
        memory = next((path for path in _MEMORY if Path(path).is_dir()), None)
        self._folder = tempfile.TemporaryDirectory(prefix="retoma-sim-", dir=memory)
        path = str(Path(self._folder.name) / "night.db")
        self.url = f"sqlite:///{path}"
        store = Store(self.url)
        migrate.ensure(store)
        night.metadata.create_all(store.engine)
        prepare(store.engine)
        store.dispose()
        self._clock = WorldClock()
        self.engine = make_engine(path, self._clock)
        self._observer = sqlite3.connect(path, isolation_level=None)
        self._played = 0
        gc.collect()
        gc.freeze()  # so that collecting what a seed leaves behind is cheap

    def query(self, statement: str) -> list[Any]:
        return self._observer.execute(statement).fetchall()

    def reset(self, setting: Setting) -> None:
        self._played += 1
        if self._played % _SEEDS_A_COLLECTION == 0:
            gc.collect()
        self._observer.execute("BEGIN IMMEDIATE")
        for table in TABLES:
            self._observer.execute(f"DELETE FROM {table}")
        self._observer.executemany(
            "INSERT INTO sim_source VALUES (?, ?, 1)", night.first_items(setting)
        )
        self._observer.execute("COMMIT")

    def enter(self, world: World, on_commit: Any) -> None:
        WIRE.world = self._clock.world = world
        WIRE.on_commit, world.on_kill = on_commit, WIRE.cut

    def leave(self) -> None:
        WIRE.world = self._clock.world = None
        for connection in list(WIRE.open):
            connection.break_off()

    def restart(self) -> None:
        for connection in list(WIRE.open):
            if connection.owner is not None:
                connection.break_off()

    def writer(self) -> Process | None:
        return WIRE.writer()

    def close(self) -> None:
        self.engine.dispose()
        WIRE.forget()
        self._observer.close()
        self._folder.cleanup()
        gc.unfreeze()
