"""A real database on which one seed is played after the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from types import TracebackType
from typing import Any, Self

from sqlalchemy import Engine

from retoma.store.session import Session
from retoma.store.tables import metadata as control
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.virtual import EPOCH, VirtualClock
from retoma.testing.simulation.world import Process, World

TABLES = [
    table.name
    for table in (*control.sorted_tables, *night.metadata.sorted_tables)
    if table.name != "batch_store"
]


class Stage(ABC):
    """What a database must offer to the simulation."""

    name: str
    """The database's name, for people."""

    url: str
    engine: Engine
    session_class: type[Session]
    now: str | None = None
    """SQL for the virtual instant, if the database has a clock of its own."""

    @abstractmethod
    def query(self, statement: str) -> list[Any]:
        """What the tables say now, seen from outside the world."""

    @abstractmethod
    def reset(self, setting: Setting) -> None:
        """Empty tables, and the items of the setting."""

    @abstractmethod
    def enter(self, world: World, on_commit: Any) -> None:
        """The connections belong to this world from now on."""

    @abstractmethod
    def leave(self) -> None:
        """The world is over: nothing of it stays open."""

    @abstractmethod
    def restart(self) -> None:
        """Every connection breaks; what was open is undone."""

    def writer(self) -> Process | None:
        """The process that holds the one write lock, if the database has such a thing."""
        return None

    @abstractmethod
    def close(self) -> None:
        """Give everything back."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


class WorldClock:
    """The clock of a database that has none of its own: that of whatever world is played."""

    def __init__(self) -> None:
        self.world: World | None = None

    def utc(self) -> Any:
        return VirtualClock(self.world).utc() if self.world else EPOCH

    def monotonic(self) -> float:
        return 0.0

    def boottime(self) -> float:
        return 0.0

    def sleep(self, seconds: float) -> None:
        return
