"""Connections to a real SQLite file that belong to simulated processes.

A lock that another process holds is waited for in virtual time; a process that dies loses its locks;
a commit's answer can be lost, and a transaction can be rolled back behind the driver's back.
"""

from __future__ import annotations

import sqlite3
from collections import namedtuple
from typing import Any, ClassVar

from sqlalchemy import Engine, create_engine, event
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from retoma.clock import Clock
from retoma.store.dialects.sqlite import Sqlite
from retoma.store.session import Session
from retoma.testing.simulation.invariants import touches_watched
from retoma.testing.simulation.world import Process, World

_IS_WATCHED: dict[str, bool] = {}
_POLL_SECONDS = 0.7
_MOST_SPARE = 200  # the dead of many seeds give theirs back together, when they are collected
_MOST_PREPARED = 500  # more than there are statements: none is prepared twice
_BUSY_SECONDS = 4.0


class LostAnswer(sqlite3.OperationalError):
    """The answer of the database did not arrive."""

    sqlite_errorname = "SQLITE_IOERR"


class Wire:
    """All connections of the current world."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.stage = 0
        self.on_commit: Any = lambda: None
        self.open: list[SimConnection] = []
        self.spare: list[SimConnection] = []

    def connect(self, path: str) -> SimConnection:
        """A connection; one that was thrown away serves again, for opening a file is slow."""
        if self.spare:
            return self.spare.pop()
        connection = sqlite3.connect(
            path,
            factory=SimConnection,
            check_same_thread=False,
            cached_statements=_MOST_PREPARED,
        )
        connection.isolation_level = None
        connection.stage = self.stage
        return connection

    def forget(self) -> None:
        """The database is gone: nothing of it serves again."""
        for connection in (*self.open, *self.spare):
            connection.close_for_good()
        self.open.clear()
        self.spare.clear()
        self.stage += 1

    def cut(self, process: Process) -> None:
        """The process is gone: so are its locks and its open transaction."""
        for connection in process.connections:
            connection.break_off()
        process.connections.clear()

    def writer(self) -> Process | None:
        """The process whose connection holds the write lock."""
        for connection in self.open:
            if connection.owner is not None and connection.in_transaction:
                return connection.owner
        return None


WIRE = Wire()


class SimCursor(sqlite3.Cursor):
    """Waits for locks in virtual time."""

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        connection: SimConnection = self.connection  # type: ignore[assignment]
        return connection.guarded(sql, super().execute, sql, parameters)

    def executemany(self, sql: str, parameters: Any, /) -> Any:
        connection: SimConnection = self.connection  # type: ignore[assignment]
        return connection.guarded(sql, super().executemany, sql, parameters)


class SimConnection(sqlite3.Connection):
    """One connection; ``owner`` is the process that has it checked out."""

    owner: Process | None = None
    is_cut = False
    is_prepared = False
    stage = 0
    patience = _BUSY_SECONDS
    has_touched = False
    """The open transaction may have changed a table that the invariants speak of."""

    def cursor(self, *_arguments: Any, **_options: Any) -> Any:
        return super().cursor(SimCursor)

    def break_off(self) -> None:
        """No statement reaches the database any more; what was open is undone."""
        if not self.is_cut and self.stage == WIRE.stage:
            super().rollback()
        self.is_cut, self.has_touched = True, False

    def guarded(self, sql: str, act: Any, *given: Any) -> Any:
        """Run a statement: wait while it is locked, and let fate strike at a COMMIT."""
        world = WIRE.world
        if world is None or self.owner is None:
            return act(*given)
        if self.is_cut:
            raise LostAnswer("the connection is gone")
        touches = _IS_WATCHED.get(sql)
        if touches is None:  # these two are never entered, so that the many are looked up but once
            if sql == "COMMIT":
                return self._commit(world, lambda: act(*given))
            if sql.startswith("PRAGMA busy_timeout"):
                self.patience = float(sql.rpartition("=")[2]) / 1000  # in virtual time only
                return None
            touches = _IS_WATCHED[sql] = touches_watched(sql)
        if touches:
            self.has_touched = True
        try:
            found = act(*given)
        except sqlite3.OperationalError as error:
            found = self._again(world, error, act, given)
        if self.has_touched and not self.in_transaction:
            self._look()
        return found

    def _look(self) -> None:
        """Have the tables looked at if this transaction may have changed what is watched."""
        if self.has_touched:
            self.has_touched = False
            WIRE.on_commit()

    def _again(
        self, world: World, error: sqlite3.OperationalError, act: Any, given: tuple[Any, ...]
    ) -> Any:
        until = world.now + self.patience
        while error.sqlite_errorname == "SQLITE_BUSY" and world.now < until:
            world.count("lock.waited")
            world.disturb(_POLL_SECONDS)
            world.wait(_POLL_SECONDS)
            if self.is_cut:
                raise LostAnswer("the connection is gone")
            try:
                return act(*given)
            except sqlite3.OperationalError as again:
                error = again
        raise error

    def commit(self) -> None:
        world = WIRE.world
        if world is None or self.owner is None:
            super().commit()
        elif self.is_cut:
            raise LostAnswer("the connection is gone")
        elif self.in_transaction:
            self._commit(world, super().commit)

    def _commit(self, world: World, act: Any) -> Any:
        return world.commit(act, self._look, self._lose)

    def _lose(self, words: str) -> Exception:
        self.break_off()
        return LostAnswer(words)

    def lock_timeout(self) -> Exception:
        """What SQLite says when a lock could not be had in time; the connection lives on."""
        error = sqlite3.OperationalError("database is locked")
        error.sqlite_errorname = "SQLITE_BUSY"
        return error

    def roll_back_silently(self, *, is_noticed: bool) -> None:
        """As a server does after a deadlock: the driver goes on in a new transaction, unaware.

        ``is_noticed``: as SQLite does when its disk is full; the driver can tell.
        """
        super().rollback()
        if not is_noticed:
            super().cursor().execute("BEGIN IMMEDIATE")

    def close(self) -> None:
        self.break_off()
        if self in WIRE.open:
            WIRE.open.remove(self)
        if self.owner is not None and self in self.owner.connections:
            self.owner.connections.remove(self)
        self.owner = None
        if self in WIRE.spare:
            return
        if self.stage != WIRE.stage or len(WIRE.spare) >= _MOST_SPARE:
            super().close()  # its file is gone, or there are enough of them
        else:
            WIRE.spare.append(self)

    def close_for_good(self) -> None:
        """Let go of the file."""
        super().close()

    def execute(self, sql: str, parameters: Any = (), /) -> Any:
        # Only the preparation of a new connection comes this way.
        return None if self.is_prepared else super().execute(sql, parameters)

    def create_function(self, *arguments: Any, **options: Any) -> None:
        if not self.is_prepared:
            super().create_function(*arguments, **options)

    def rollback(self) -> None:
        if not self.is_cut:
            super().rollback()


class DirectSession(Session):
    """Hands texts to the driver itself: most of a simulated statement's time would be spent in between.

    The statements, their order and their errors are the same.
    """

    _rows: ClassVar[dict[str, Any]] = {}
    _driver: Any = None

    def _run_text(self, statement: str, parameters: Any) -> Any:
        if self._driver is None:
            self._driver = self.connection.connection.driver_connection
        cursor = self._driver.cursor()
        try:
            cursor.execute(statement, parameters or ())
        except sqlite3.Error as error:
            raise DBAPIError.instance(statement, parameters, error, sqlite3.Error) from error
        if cursor.description is not None:
            cursor.row_factory = self._row_of(statement, cursor.description)
        return cursor

    def _connect_again(self) -> None:
        super()._connect_again()
        self._driver = None

    def _row_of(self, statement: str, description: Any) -> Any:
        found = self._rows.get(statement)
        if found is None:
            names = [str(column[0]) for column in description]
            row: Any = namedtuple("Row", names, rename=True)  # type: ignore[misc]  # noqa: PYI024
            found = self._rows[statement] = lambda _cursor, values: row._make(values)
        return found


def make_engine(path: str, clock: Clock) -> Engine:
    """An engine whose connections know their process; one serves all seeds of a campaign."""
    engine = create_engine(
        f"sqlite:///{path}",
        poolclass=NullPool,  # the wire keeps them itself
        creator=lambda: WIRE.connect(path),
    )
    Sqlite(clock).attach(engine)

    @event.listens_for(engine, "connect")
    def born(connection: SimConnection, _record: Any) -> None:
        connection.execute("PRAGMA busy_timeout = 0")
        connection.execute("PRAGMA synchronous = OFF")
        connection.is_prepared = True
        WIRE.open.append(connection)

    @event.listens_for(engine, "checkout")
    def taken(connection: SimConnection, _record: Any, _proxy: Any) -> None:
        process = WIRE.world.current if WIRE.world else None
        connection.owner, connection.is_cut = process, False
        connection.patience = _BUSY_SECONDS
        if process is not None:
            process.connections.append(connection)

    @event.listens_for(engine, "checkin")
    def returned(connection: SimConnection | None, _record: Any) -> None:
        if connection is not None:
            if connection.owner is not None and connection in connection.owner.connections:
                connection.owner.connections.remove(connection)
            connection.owner = None

    return engine
