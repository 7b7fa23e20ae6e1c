"""Sessions of a database server, stepped statement by statement in one thread.

A statement that waits for a lock is noticed, and the others go on. What a process leaves behind when
it dies is undone at once or late; a commit's answer can be lost. Each server adds how its driver
does it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Self, TypeVar

from sqlalchemy import Executable
from sqlalchemy.exc import DBAPIError

from retoma.store.session import Session
from retoma.testing.simulation.invariants import touches_watched
from retoma.testing.simulation.world import Process, World

T = TypeVar("T")
GLANCE_MILLISECONDS = 4
_POLL_SECONDS = 0.7
_PATIENCE_SECONDS = 5.0
_LATE_SECONDS = 40.0
_NEVER = 1e9
_IN_FLIGHT_SECONDS = 3.0
_ENDING = ("zombie.end", "zombie.find")


class ServerWire:
    """All connections of the current world."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.on_commit: Callable[[], None] = lambda: None
        self.tell_time: Callable[[], None] = lambda: None
        self.observer: Any = None
        self.open: list[Stepped] = []
        self.spare: list[Stepped] = []
        """Sessions of the server that serve again: a new one is slow."""

        self.lingering: list[int] = []
        """Numbers of sessions that the server may not have ended yet."""

        self.waiting = 0
        """How many statements wait for a lock."""

    def cut(self, process: Process) -> None:
        """The process is gone; the server may notice at once or late."""
        world = self.world
        for connection in list(process.connections):
            is_late = world is not None and not world.is_over and world.random.random() < 0.5
            connection.break_off(is_noticed=not is_late)
            if is_late and world is not None:
                world.count("fault.noticed_late")
                share = world.random.random()
                delay = share * _LATE_SECONDS if share < 0.5 else _NEVER
                world.start(world.watchman, "server", _later(world, delay, connection))
        process.connections.clear()

    def break_all(self) -> None:
        """Every connection breaks."""
        for connection in list(self.open):
            connection.break_off()

    def take(self, connect: Callable[[], Stepped]) -> Stepped:
        """A connection for the process whose turn it is."""
        found = None
        while self.spare and found is None:
            found = self.spare.pop().as_new()
        found = found or connect()
        if self.world is not None and self.world.current is not None:
            found.owner = self.world.current
            found.owner.connections.append(found)
        self.open.append(found)
        return found

    def forget(self) -> None:
        """Nothing serves again."""
        for connection in self.spare:
            connection.drop()
        self.spare.clear()


def _later(world: World, delay: float, connection: Stepped) -> Callable[[], None]:
    def notice() -> None:
        world.wait(delay)
        connection.break_off()

    return notice


WIRE = ServerWire()


class Stepped(ABC):
    """What a driver's connection needs to take turns: it stands before the driver's class."""

    lost: ClassVar[type[Exception]]
    """The driver's error for an answer that did not arrive."""

    owner: Process | None = None
    is_cut = False
    is_waiting = False
    """Its statement waits for a lock, whether its process still lives or not."""

    @abstractmethod
    def number(self) -> int:
        """By which the server knows the session."""

    @abstractmethod
    def part(self) -> Self | None:
        """The session as a connection of its own, rolled back, while this one can't reach it any more.

        None if the session can't serve again.
        """

    @abstractmethod
    def as_new(self) -> Self | None:
        """The same session as the driver hands it out; None if the server has ended it."""

    @abstractmethod
    def drop(self) -> None:
        """Let go of the session without a word."""

    @abstractmethod
    def is_in_transaction(self) -> bool:
        """Whether there is something to commit or to roll back."""

    @abstractmethod
    def is_blocked(self) -> bool:
        """Whether the server says that the statement waits for another session."""

    @abstractmethod
    def cancel_statement(self) -> None:
        """End the statement, as the server does when a lock can't be had in time."""

    @abstractmethod
    def commit_late(self) -> bool:
        """Whether the server takes a COMMIT from a connection that is cut off already."""

    @abstractmethod
    def lock_timeout(self) -> Exception:
        """The driver's error for a lock that could not be had in time; the connection lives on."""

    def break_off(self, *, is_noticed: bool = True) -> None:
        """Nothing more is sent; ``is_noticed``: the server learns of it at once."""
        self.is_cut = True
        if not is_noticed or self not in WIRE.open:
            return
        WIRE.open.remove(self)
        number = self.number()
        session = None if self.is_waiting else self.part()
        if session is not None:
            WIRE.spare.append(session)
        else:
            WIRE.lingering.append(number)
            self.drop()

    def close(self) -> None:
        """The pool gives the connection back; what the dead have left is the wire's business."""
        if self.owner is not None and self in self.owner.connections:
            self.owner.connections.remove(self)
        if not self.is_cut:
            self.break_off()

    def played_in(self) -> World | None:
        """The world, if a living process of it speaks; raises ``lost`` if it can't be heard."""
        world, owner = WIRE.world, self.owner
        if world is None or owner is None or owner.world is not world or not owner.is_alive:
            return None
        if self.is_cut:
            raise self.lost("the connection is gone")
        return world

    def await_answer(self, world: World, look: Callable[[], T | None]) -> T:
        """What ``look`` finds; the others go on while the statement waits for one of them."""
        until = world.now + _PATIENCE_SECONDS
        while True:
            found = look()
            if found is not None:
                self.is_waiting = False
                return found
            if not self.is_blocked():
                continue
            if world.now >= until:
                self.cancel_statement()
                until = float("inf")
                continue
            world.count("lock.waited")
            world.disturb(_POLL_SECONDS)
            self._let_others_go_on(world)
            if self.is_cut:
                raise self.lost("the connection is gone")

    def _let_others_go_on(self, world: World) -> None:
        self.is_waiting = True
        WIRE.waiting += 1
        try:
            world.wait(_POLL_SECONDS)
        finally:
            WIRE.waiting -= 1

    def commit(self) -> None:
        """Commit what is open, if fate allows it."""
        act: Callable[[], None] = super().commit  # type: ignore[misc]  # the driver's
        if WIRE.world is None or self.owner is None or not self.is_in_transaction():
            act()
        else:
            WIRE.world.commit(act, WIRE.on_commit, self._lose_commit)

    def rollback(self) -> None:
        """Roll back what is open; the server has done so for a connection that is gone."""
        if not self.is_cut and self.is_in_transaction():
            super().rollback()  # type: ignore[misc]  # the driver's

    def lose(self, words: str) -> Exception:
        """Break off, and give the error that tells it."""
        self.break_off()
        return self.lost(words)

    def _lose_commit(self, words: str) -> Exception:
        """A COMMIT that has not arrived may still be on its way."""
        world = WIRE.world
        if world is None or not self.is_in_transaction() or world.random.random() < 0.5:
            return self.lose(words)
        self.break_off(is_noticed=False)
        world.count("fault.commit_in_flight")
        delay = world.random.random() * _IN_FLIGHT_SECONDS
        world.start(world.watchman, "wire", self._arrives(world, delay))
        return self.lost(words)

    def _arrives(self, world: World, delay: float) -> Callable[[], None]:
        def arrive() -> None:
            world.wait(delay)
            world.disturb()
            if self not in WIRE.open:  # whoever sent it has died meanwhile
                return
            if self.commit_late():
                WIRE.on_commit()
            self.break_off()

        return arrive


class SteppedSession(Session):
    """A control transaction may lose its answer, and is looked at if it has changed anything."""

    _CONTROL = ("WITH ", "BEGIN NOT ATOMIC")

    def fetch(
        self, name: str, statement: Executable | str, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        if name == "work.enter" and parameters is not None and "deadline" in parameters:
            parameters = {**parameters, "deadline": "0"}  # a world's time is not the server's
        found = super().fetch(name, statement, parameters)
        if WIRE.world is not None and name in _ENDING and found and found[0][0] is not None:
            WIRE.world.count("zombie.ended")
        return found

    def _run_text(self, statement: str, parameters: Any) -> Any:
        driver: Any = self.connection.connection.driver_connection
        world = WIRE.world
        if world is None or driver.owner is None or not statement.startswith(self._CONTROL):
            return super()._run_text(statement, parameters)
        results: list[Any] = []

        def act() -> Any:
            results.append(self.connection.exec_driver_sql(statement, parameters))
            return results[0]

        def committed() -> None:
            if touches_watched(statement) and _has_hit(results[0]):
                WIRE.on_commit()

        try:
            return world.commit(act, committed, driver.lose)
        except driver.lost as error:
            raise DBAPIError.instance(statement, parameters, error, driver.Error) from error


def _has_hit(result: Any) -> bool:
    """Whether the guard changed a row; the answer stays to be read."""
    row = result.cursor.fetchone()
    result.cursor.scroll(-1)
    return bool(row[0])
