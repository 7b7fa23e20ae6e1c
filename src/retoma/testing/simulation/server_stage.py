"""A stage on a database server: what PostgreSQL and MariaDB have in common."""

from __future__ import annotations

import gc
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from sqlalchemy import Engine, create_engine, inspect
from sqlalchemy.pool import NullPool

from retoma.errors import AlreadyRunning, NotPermitted
from retoma.store import migrate
from retoma.store.store import Store
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.stage import Stage, WorldClock
from retoma.testing.simulation.stepped import WIRE, Stepped, SteppedSession
from retoma.testing.simulation.world import World

_SEEDS_A_COLLECTION = 20
_NEXT = "create a database of its own, for example: CREATE DATABASE simulation"


def require_own(store: Store) -> None:
    """Refuse a database that holds anything but an earlier simulation: its rows would be deleted."""
    names = set(inspect(store.engine).get_table_names())
    if names and night.SOURCE.name not in names:
        raise NotPermitted(
            f"the database {store.shown_url} is not empty: the simulation deletes what it finds",
            safe="Nothing was touched.",
            next_step=_NEXT,
        )


class ServerStage(Stage):
    """One database of a server that stands ready; ``prepare`` may change its tables."""

    session_class = SteppedSession
    now = "retoma_sim_now()"
    occupy: str
    """Answers 1 if the database is ours from now on, until the observer's connection ends."""

    def __init__(self, url: str, prepare: Callable[[Engine], None] = lambda _engine: None) -> None:
        """Raises ``NotPermitted`` on somebody's data, ``AlreadyRunning`` beside another simulation."""
        store = Store(url)
        try:
            store.check_connection()
            require_own(store)
            self.url = store.url
            self._take_hold(store.shown_url)
            migrate.ensure(store)
            night.metadata.create_all(store.engine)
            prepare(store.engine)
            self.furnish(store.engine)
        finally:
            store.dispose()
        self.clock = WorldClock()
        self._played = 0
        self._looked: dict[str, None] = {}
        self._ahead: dict[str, list[Any]] = {}
        self._is_looking = False
        gc.collect()
        gc.freeze()  # so that collecting what a seed leaves behind is cheap

    def _take_hold(self, shown_url: str) -> None:
        self.engine = create_engine(
            self.url,
            creator=lambda: WIRE.take(self.connect),
            poolclass=NullPool,  # the wire keeps them itself
            isolation_level="READ COMMITTED",
        )
        self.observer = self.observe()
        if not self.ask([self.occupy])[0][0][0]:
            self.observer.close()
            raise AlreadyRunning(
                f"another simulation is at work on {shown_url}",
                safe="Nothing was touched.",
                next_step=_NEXT,
            )
        WIRE.observer = self.observer

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
    def ask(self, statements: list[str]) -> list[list[Any]]:
        """The rows of each statement, in one round trip of the observer."""

    @abstractmethod
    def empty(self, items: list[Any]) -> None:
        """Leave no rows but these items."""

    @abstractmethod
    def end_sessions(self, numbers: list[int]) -> None:
        """End these sessions, and see them gone."""

    def tell_time(self) -> None:
        """Let the database know the virtual instant."""

    def query(self, statement: str) -> list[Any]:
        if statement in self._ahead:
            return self._ahead.pop(statement)
        if self._is_looking:
            self._looked[statement] = None
        return self.ask([statement])[0]

    def _looking(self, on_commit: Callable[[], None]) -> Callable[[], None]:
        """What the looks before have asked, one by one, is asked at once."""

        def look() -> None:
            asked = list(self._looked)
            self._ahead = dict(zip(asked, self.ask(asked), strict=True)) if asked else {}
            self._is_looking = True
            try:
                on_commit()
            finally:
                self._is_looking = False
                self._ahead.clear()

        self._looked.clear()
        return look

    def reset(self, setting: Setting) -> None:
        self._played += 1
        if self._played % _SEEDS_A_COLLECTION == 0:
            gc.collect()
        self.empty(night.first_items(setting))

    def enter(self, world: World, on_commit: Any) -> None:
        WIRE.world = self.clock.world = world
        WIRE.on_commit, WIRE.tell_time = self._looking(on_commit), self.tell_time
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
