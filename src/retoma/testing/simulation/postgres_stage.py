"""The stage on a real PostgreSQL: several connections, stepped statement by statement in one thread.

A statement that waits for a lock is noticed (``pg_blocking_pids``), and the others go on.
"""

from __future__ import annotations

import gc
import select
from collections.abc import Callable
from typing import Any

import psycopg
from psycopg import pq
from psycopg.waiting import Ready, Wait
from sqlalchemy import Engine, create_engine, inspect, make_url, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from retoma.errors import NotPermitted
from retoma.store import migrate
from retoma.store.session import Session
from retoma.store.store import Store
from retoma.testing.simulation import night
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.stage import TABLES, Stage, WorldClock
from retoma.testing.simulation.world import Process, World

_GLANCE_MILLISECONDS = 2
_POLL_SECONDS = 0.7
_PATIENCE_SECONDS = 5.0
_CLOCK_SECONDS = 0.2
_LATE_SECONDS = 40.0
_SEEDS_A_COLLECTION = 20
_NOW = "retoma_sim_now()"
_CLOCK = (
    "DROP TABLE IF EXISTS sim_clock",
    "CREATE UNLOGGED TABLE sim_clock (at timestamptz NOT NULL)",
    "INSERT INTO sim_clock VALUES (clock_timestamp())",
    f"CREATE OR REPLACE FUNCTION {_NOW} RETURNS timestamptz LANGUAGE sql VOLATILE"
    " AS 'SELECT at FROM sim_clock'",
)


class LostAnswer(psycopg.OperationalError):
    """The connection broke: what the server did last is open."""

    __module__ = "psycopg.errors"  # by which the code knows an error of the driver


class PostgresWire:
    """All connections of the current world."""

    def __init__(self) -> None:
        self.world: World | None = None
        self.on_commit: Any = lambda: None
        self.observer: Any = None
        self.open: list[SteppedConnection] = []

    def cut(self, process: Process) -> None:
        """The process is gone; the server may notice at once or late."""
        world = self.world
        for connection in process.connections:
            is_late = world is not None and not world.is_over and world.random.random() < 0.5
            connection.break_off(is_noticed=not is_late)
            if is_late and world is not None:
                world.count("fault.noticed_late")
                delay = world.random.random() * _LATE_SECONDS
                world.start(world.watchman, "server", _later(world, delay, connection))
        process.connections.clear()

    def is_blocked(self, pid: int) -> bool:
        """Whether the backend waits for another one."""
        row = self.observer.execute("SELECT cardinality(pg_blocking_pids(%s))", (pid,)).fetchone()
        return bool(row[0])


def _later(world: World, delay: float, connection: SteppedConnection) -> Callable[[], None]:
    def notice() -> None:
        world.wait(delay)
        connection.pgconn.finish()

    return notice


WIRE = PostgresWire()


class SteppedConnection(psycopg.Connection[Any]):
    """A connection that lets the others go on while its statement waits for a lock."""

    owner: Process | None = None
    is_cut = False

    def break_off(self, *, is_noticed: bool = True) -> None:
        """Nothing more is sent; ``is_noticed``: the server learns of it at once."""
        self.is_cut = True
        if is_noticed:
            self.pgconn.finish()

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        world, owner = WIRE.world, self.owner
        if world is None or owner is None or owner.world is not world or not owner.is_alive:
            if self.is_cut or self.closed:  # the pool tidies up what the dead have left behind
                gen.close()
                return None
            return super().wait(gen, interval, timeout)
        if self.is_cut:
            raise LostAnswer("the connection is gone")
        try:
            wanted = next(gen)
            while True:
                wanted = gen.send(self._ready(world, wanted))
        except StopIteration as ended:
            return ended.value

    def _ready(self, world: World, wanted: Wait) -> Ready:
        poller = select.poll()
        mask = (select.POLLIN if wanted & Wait.R else 0) | (
            select.POLLOUT if wanted & Wait.W else 0
        )
        poller.register(self.pgconn.socket, mask)
        until = world.now + _PATIENCE_SECONDS
        while True:
            for _, event in poller.poll(_GLANCE_MILLISECONDS):
                found = (Ready.R if event & ~select.POLLOUT else 0) | (
                    Ready.W if event & select.POLLOUT else 0
                )
                return Ready(found)
            if not WIRE.is_blocked(self.pgconn.backend_pid):
                continue
            if world.now >= until:
                self.cancel()
                until = float("inf")
                continue
            world.count("lock.waited")
            world.wait(_POLL_SECONDS)
            if self.is_cut:
                raise LostAnswer("the connection is gone")

    def commit(self) -> None:
        world = WIRE.world
        if world is None or self.owner is None:
            super().commit()
            return
        if self.pgconn.transaction_status != pq.TransactionStatus.INTRANS:
            super().commit()
            return
        self.surely(world, super().commit)

    def rollback(self) -> None:
        if not self.is_cut and not self.closed:
            super().rollback()

    def surely(self, world: World, act: Callable[[], Any]) -> Any:
        """Commit something, unless fate breaks the connection before or after."""
        return world.commit(act, WIRE.on_commit, self._lose)

    def _lose(self, words: str) -> Exception:
        self.break_off()
        return LostAnswer(words)

    def roll_back_silently(self, *, is_noticed: bool) -> None:
        """As a server does after a deadlock: the driver goes on in a new transaction, unaware."""
        self.execute("ROLLBACK")
        self.execute("BEGIN")


class SteppedSession(Session):
    """Sets the database's virtual clock before a statement; a control statement may lose its answer."""

    def _run_text(self, statement: str, parameters: Any) -> Any:
        world = WIRE.world
        if world is None:
            return super()._run_text(statement, parameters)
        driver: Any = self.connection.connection.driver_connection
        if not statement.startswith("WITH") or driver.owner is None or not driver.autocommit:
            return super()._run_text(statement, parameters)
        try:
            return driver.surely(
                world, lambda: self.connection.exec_driver_sql(statement, parameters)
            )
        except LostAnswer as error:
            raise DBAPIError.instance(statement, parameters, error, psycopg.Error) from error


def require_own(store: Store) -> None:
    """Refuse a database that holds anything but an earlier simulation: its rows would be deleted."""
    names = set(inspect(store.engine).get_table_names())
    if names and "sim_clock" not in names:
        raise NotPermitted(
            f"the database {store.shown_url} is not empty: the simulation deletes what it finds",
            safe="Nothing was touched.",
            next_step="create a database of its own: createdb simulation",
        )


class PostgresStage(Stage):
    """One database of a server that stands ready; ``prepare`` may change its tables."""

    session_class = SteppedSession
    now = _NOW

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
        with store.engine.begin() as connection:
            for statement in _CLOCK:
                connection.execute(text(statement))
            name = make_url(url).database
            connection.execute(text(f'ALTER DATABASE "{name}" SET synchronous_commit = off'))
        store.dispose()
        plain = make_url(url).set(drivername="postgresql").render_as_string(hide_password=False)
        self._observer = psycopg.connect(plain, autocommit=True)
        WIRE.observer = self._observer
        self._clock = WorldClock()
        self._told = -1e9
        self._played = 0
        gc.collect()
        gc.freeze()  # so that collecting what a seed leaves behind is cheap

        def connect() -> SteppedConnection:
            found = SteppedConnection.connect(plain, prepare_threshold=None)
            if WIRE.world is not None and WIRE.world.current is not None:
                found.owner = WIRE.world.current
                found.owner.connections.append(found)
            WIRE.open.append(found)
            return found

        self.engine = create_engine(
            self.url, creator=connect, poolclass=NullPool, isolation_level="READ COMMITTED"
        )

    def query(self, statement: str) -> list[Any]:
        return self._observer.execute(statement).fetchall()

    def reset(self, setting: Setting) -> None:
        self._played += 1
        if self._played % _SEEDS_A_COLLECTION == 0:
            gc.collect()
        self._observer.execute("; ".join(f"DELETE FROM {table}" for table in TABLES))
        with self._observer.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO sim_source VALUES (%s, %s, 1)", night.first_items(setting)
            )

    def enter(self, world: World, on_commit: Any) -> None:
        WIRE.world = self._clock.world = world
        WIRE.on_commit, world.on_kill = on_commit, WIRE.cut
        self._told = -1e9
        world.on_turn = self._tell_time

    def _tell_time(self, now: float) -> None:
        if abs(now - self._told) >= _CLOCK_SECONDS:
            self._told = now
            self._observer.execute("UPDATE sim_clock SET at = %s", (self._clock.utc(),))

    def leave(self) -> None:
        WIRE.world = self._clock.world = None
        for connection in WIRE.open:
            connection.is_cut = True
            connection.pgconn.finish()
        WIRE.open.clear()
        self._observer.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        )

    def restart(self) -> None:
        for connection in list(WIRE.open):
            connection.break_off()

    def close(self) -> None:
        self.engine.dispose()
        gc.collect()
        gc.unfreeze()
        self._observer.close()
