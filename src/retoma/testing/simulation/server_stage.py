"""A stage on a database server: what PostgreSQL and MariaDB have in common."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine, inspect
from sqlalchemy.pool import NullPool

from retoma.errors import NotPermitted
from retoma.store import migrate
from retoma.store.store import Store
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.stage import Stage, WorldClock
from retoma.testing.simulation.stepped import WIRE, Stepped, SteppedSession
from retoma.testing.simulation.world import World

_SEEDS_A_COLLECTION = 20


def require_own(store: Store) -> None:
    """Refuse a database that holds anything but an earlier simulation: its rows would be deleted."""
    names = set(inspect(store.engine).get_table_names())
    if names and night.SOURCE.name not in names:
        raise NotPermitted(
            f"the database {store.shown_url} is not empty: the simulation deletes what it finds",
            safe="Nothing was touched.",
            next_step="create a database of its own, for example: CREATE DATABASE simulation",
        )


class ServerStage(Stage):
    """One database of a server that stands ready; ``prepare`` may change its tables."""

    session_class = SteppedSession
    now = "retoma_sim_now()"

    def __init__(self, url: str, prepare: Callable[[Engine], None] = lambda _engine: None) -> None:
        store = Store(url)
        try:
            store.check_connection()
            require_own(store)
        except BaseException:
            store.dispose()
            raise
        self.url = store.url
        migrate.ensure(store)
        night.metadata.create_all(store.engine)
        prepare(store.engine)
        self.furnish(store.engine)
        store.dispose()
        self.engine = create_engine(
            self.url,
            creator=lambda: WIRE.take(self.connect),
            poolclass=NullPool,  # the wire keeps them itself
            isolation_level="READ COMMITTED",
        )
        self.clock = WorldClock()
        self.observer = WIRE.observer = self.observe()
        self._played = 0
        gc.collect()
        gc.freeze()  # so that collecting what a seed leaves behind is cheap

    @abstractmethod
    def furnish(self, engine: Engine) -> None:
        """What the database itself needs, once."""

    @abstractmethod
    def connect(self) -> Stepped:
        """A new session."""

    @abstractmethod
    def observe(self) -> Any:
        """A connection from outside the world, each of whose statements stands alone."""

    @abstractmethod
    def empty(self, items: list[Any]) -> None:
        """Leave no rows but these items."""

    @abstractmethod
    def end_sessions(self, numbers: list[int]) -> None:
        """End these sessions, and see them gone."""

    def tell_time(self) -> None:
        """Let the database know the virtual instant."""

    def reset(self, setting: Setting) -> None:
        self._played += 1
        if self._played % _SEEDS_A_COLLECTION == 0:
            gc.collect()
        self.empty(night.first_items(setting))

    def enter(self, world: World, on_commit: Any) -> None:
        WIRE.world = self.clock.world = world
        WIRE.on_commit, WIRE.tell_time = on_commit, self.tell_time
        WIRE.waiting = 0
        world.on_kill = WIRE.cut

    def leave(self) -> None:
        WIRE.world = self.clock.world = None
        self.restart()

    def restart(self) -> None:
        WIRE.break_all()
        if WIRE.lingering:
            self.end_sessions(WIRE.lingering)
            WIRE.lingering.clear()

    def close(self) -> None:
        self.engine.dispose()
        WIRE.forget()
        gc.collect()
        gc.unfreeze()
        self.observer.close()
