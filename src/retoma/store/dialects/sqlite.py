"""SQLite: several processes of one host share a file in WAL mode; one writer at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event
from sqlalchemy.dialects.sqlite import dialect as sqlite_dialect
from sqlalchemy.engine.interfaces import Dialect as DriverDialect
from sqlalchemy.exc import DBAPIError

from retoma.clock import SYSTEM_CLOCK, Clock
from retoma.errors import FailureKind
from retoma.host import THIS_HOST, Host
from retoma.store.dialects.contract import Dialect, Guarded, Statements, ZombieRemains
from retoma.store.dialects.sqlite_lock import holder_of_write_lock
from retoma.store.tables import instant_text

_BUSY_MILLISECONDS = 4_000


class Sqlite(Dialect):
    """``BEGIN IMMEDIATE`` held only for a control transaction; the clock is the host's."""

    name = "sqlite"
    now = "retoma_now()"
    row_lock = ""
    mark = "?"

    def __init__(self, clock: Clock = SYSTEM_CLOCK, host: Host = THIS_HOST) -> None:
        self._clock = clock
        self._host = host

    def make_engine(self, url: str) -> Engine:
        engine = create_engine(url)
        self.attach(engine)
        return engine

    def parameter_style(self) -> DriverDialect:
        return sqlite_dialect(paramstyle="named")

    def attach(self, engine: Engine) -> None:
        """Give an engine what the protocol needs of each connection."""
        clock = self._clock

        @event.listens_for(engine, "connect")
        def prepare(connection: sqlite3.Connection, _record: Any) -> None:
            connection.isolation_level = None  # every statement is its own, unless BEGIN was said
            connection.create_function("retoma_now", 0, lambda: _now(clock))
            connection.create_function("retoma_after", 1, lambda seconds: _after(clock, seconds))
            connection.execute(f"PRAGMA busy_timeout = {_BUSY_MILLISECONDS}")
            self._share_by_wal(connection)
            connection.execute("PRAGMA synchronous = FULL")
            connection.execute("PRAGMA cache_size = -32768")

        @event.listens_for(engine, "begin")
        def begin(connection: Connection) -> None:
            if connection.get_execution_options().get("retoma_work"):
                connection.exec_driver_sql("BEGIN IMMEDIATE")

    def _share_by_wal(self, connection: sqlite3.Connection) -> None:
        """WAL mode for the file.

        While another connection writes to a file that is not in WAL mode yet, as when two commands
        make a new store together, SQLite refuses the change at once, without the busy handler
        (https://www.sqlite.org/c3ref/busy_handler.html), so the waiting is done here.
        """
        until = self._clock.monotonic() + _BUSY_MILLISECONDS / 1000
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
            except sqlite3.OperationalError as error:
                if not self.is_connection_lost(error) or self._clock.monotonic() > until:
                    raise
                self._clock.sleep(0.01)
            else:
                return

    def after(self, parameter: str) -> str:
        return f"retoma_after(:{parameter})"

    def once(self, session: Statements, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        session.change(operation.name, "BEGIN IMMEDIATE")
        try:
            is_done = self._run(session, operation, parameters)
            end = ("commit", "COMMIT") if is_done else ("rollback", "ROLLBACK")
            session.change(f"{operation.name}.{end[0]}", end[1])
            return is_done
        except BaseException:
            session.abandon()
            raise

    def _run(self, session: Statements, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        bound = dict(parameters)
        if operation.hold:
            held = self._part(f"SELECT id {operation.hold} LIMIT 1")
            if not session.fetch(operation.name, held, bound):
                return False
        if operation.pick:
            pick = self._part(f"SELECT id {operation.pick} LIMIT 1")
            picked = session.fetch(operation.name, pick, bound)
            if not picked:
                return False
            bound["picked_"] = picked[0][0]
        if session.change(operation.name, self._part(operation.guard), bound) != 1:
            return False
        if any("{guard_id}" in statement for statement in operation.then):
            bound["guard_id_"] = self._inserted(session)
        is_asked = any("{then0_id}" in statement for statement in operation.then)
        for number, statement in enumerate(operation.then):
            session.change(operation.name, self._part(statement), bound)
            if number == 0 and is_asked:
                bound["then0_id_"] = self._inserted(session)
        return True

    def _part(self, template: str) -> str:
        return self.kept("part", template, self._render_part)

    def _render_part(self, template: str) -> str:
        extra = {"held": "1 = 1", "guarded": "1 = 1", "picked": ":picked_"}
        extra |= {"guard_id": ":guard_id_", "then0_id": ":then0_id_"}
        return self.render(template, extra)

    def _inserted(self, session: Statements) -> int:
        return int(session.connection.exec_driver_sql("SELECT last_insert_rowid()").scalar_one())

    def enter_work(self, session: Statements, name: str, deadline_seconds: float) -> None:
        return

    def end_session(self, session: Statements, name: str, owner_pid: int | None) -> None:
        path = session.connection.engine.url.database
        if not path or owner_pid is None:
            return
        for _ in range(100):
            holder = holder_of_write_lock(self._host, path)
            if holder is None or holder != owner_pid or holder == self._host.pid():
                return  # whoever else holds it is alive and brief; the fence refuses the old owner
            try:
                self._host.kill(holder)
            except ProcessLookupError:
                return
            except PermissionError as error:
                raise ZombieRemains(name) from error
            session.pause(0.05)
        raise ZombieRemains(name)

    def has_rolled_back(self, session: Statements) -> bool:
        driver = session.connection.connection.driver_connection
        return driver is not None and not driver.in_transaction

    def is_connection_lost(self, error: BaseException) -> bool:
        """Whether the one writer's lock was not to be had: nobody's fault, like a lost database."""
        original = error.orig if isinstance(error, DBAPIError) else error
        return str(getattr(original, "sqlite_errorname", "")).startswith("SQLITE_BUSY")

    def classify(self, error: BaseException) -> FailureKind:
        original = error.orig if isinstance(error, DBAPIError) else error
        name = getattr(original, "sqlite_errorname", "")
        if name in ("SQLITE_CONSTRAINT_UNIQUE", "SQLITE_CONSTRAINT_PRIMARYKEY"):
            return FailureKind.DUPLICATE
        if name.startswith("SQLITE_CONSTRAINT") or name in ("SQLITE_MISMATCH", "SQLITE_TOOBIG"):
            return FailureKind.INVALID_ITEM
        if isinstance(original, (UnicodeEncodeError, OverflowError)):
            return FailureKind.INVALID_ITEM
        if isinstance(original, (sqlite3.ProgrammingError, sqlite3.InterfaceError)):
            return FailureKind.PERMANENT
        if name in (
            "SQLITE_ERROR",
            "SQLITE_READONLY",
            "SQLITE_CORRUPT",
            "SQLITE_NOTADB",
            "SQLITE_AUTH",
        ):
            return FailureKind.PERMANENT
        return FailureKind.TRANSIENT


def _now(clock: Clock) -> str:
    return instant_text(clock.utc().replace(tzinfo=None))


def _after(clock: Clock, seconds: float) -> str:
    instant: datetime = clock.utc().astimezone(UTC).replace(tzinfo=None)
    return instant_text(instant + timedelta(seconds=float(seconds)))
