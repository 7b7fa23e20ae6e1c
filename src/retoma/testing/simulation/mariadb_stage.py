"""The stage on a real MariaDB: several connections, stepped statement by statement in one thread.

A statement that waits for a lock is noticed (InnoDB's monitor), and the others go on.
"""

from __future__ import annotations

import copy
import re
import select
from typing import Any, Self

import pymysql
from pymysql.connections import Connection
from pymysql.constants import CLIENT, COMMAND, ER, SERVER_STATUS
from pymysql.cursors import Cursor
from sqlalchemy import Engine, event

from retoma.store.dialects.mariadb import _SESSION
from retoma.testing.simulation.server_stage import ServerStage
from retoma.testing.simulation.stage import TABLES
from retoma.testing.simulation.stepped import GLANCE_MILLISECONDS, WIRE, Stepped
from retoma.testing.simulation.virtual import VirtualClock

_COM_RESET_CONNECTION = 0x1F
_LOST = 2013
_NOW = ServerStage.now.encode()
_WAITS = re.compile(r"^LOCK WAIT(?:(?!^---).)*?^MariaDB thread id (\d+)", re.MULTILINE | re.DOTALL)


class LostAnswer(pymysql.err.OperationalError):  # type: ignore[misc]  # PyMySQL has no types
    """The connection broke: what the server did last is open."""

    __module__ = "pymysql.err"  # by which the code knows an error of the driver

    def __init__(self, words: str) -> None:
        super().__init__(_LOST, words)


class _UnheardCursor(Cursor):  # type: ignore[misc]
    """What the pool tidies up after the dead reaches no server."""

    def execute(self, query: Any, args: Any = None) -> int:
        return 0


class SteppedConnection(Stepped, Connection):  # type: ignore[misc]
    """A connection that lets the others go on while its statement waits for a lock."""

    lost = LostAnswer
    _sock: Any

    def number(self) -> int:
        return int(self.thread_id())

    def part(self) -> Self | None:
        session = copy.copy(self)
        self._sock = self._rfile = None
        session.owner, session.is_cut, session._result = None, False, None
        try:  # locks, open work and settings go with it, as when a connection ends
            session._execute_command(_COM_RESET_CONNECTION, b"")
            session._read_ok_packet()
        except pymysql.err.Error:
            session.drop()
            return None
        return session

    def as_new(self) -> Self | None:
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        if poller.poll(0):  # the server has something to say: that it is ending the session
            self.drop()
            return None
        self.autocommit(False)
        return self

    def drop(self) -> None:
        self._force_close()

    def is_in_transaction(self) -> bool:
        return bool(self.server_status & SERVER_STATUS.SERVER_STATUS_IN_TRANS)

    def is_blocked(self) -> bool:
        with WIRE.observer.cursor() as cursor:
            cursor.execute("SHOW ENGINE INNODB STATUS")  # the tables of its locks come 0.1 s late
            found = cursor.fetchone()[2]
        sessions = found[found.index("LIST OF TRANSACTIONS FOR EACH SESSION") :]
        return str(self.number()) in _WAITS.findall(sessions)

    def cancel_statement(self) -> None:
        _end(f"KILL QUERY {self.number()}")

    def cursor(self, cursor: Any = None) -> Any:
        return super().cursor(_UnheardCursor if self._is_unheard() else cursor)

    def autocommit(self, value: bool) -> None:
        if not self._is_unheard():
            super().autocommit(value)

    def _is_unheard(self) -> bool:
        return self.is_cut and (self.owner is None or not self.owner.is_alive or WIRE.world is None)

    def _execute_command(self, command: int, sql: str | bytes) -> None:
        world = self.played_in()
        if world is None:
            super()._execute_command(command, sql)
            return
        query = sql.encode(self.encoding) if isinstance(sql, str) else sql
        instant = f"TIMESTAMP'{VirtualClock(world).utc():%Y-%m-%d %H:%M:%S.%f}'"
        super()._execute_command(command, query.replace(_NOW, instant.encode()))
        poller = select.poll()
        poller.register(self._sock, select.POLLIN)
        self.await_answer(world, lambda: poller.poll(GLANCE_MILLISECONDS) or None)

    def commit_late(self) -> bool:
        try:
            super()._execute_command(COMMAND.COM_QUERY, b"COMMIT")
            self._read_ok_packet()
        except pymysql.err.Error:
            return False
        return True

    def lock_timeout(self) -> Exception:
        error: Exception = pymysql.err.OperationalError(ER.LOCK_WAIT_TIMEOUT, "lock wait timeout")
        return error

    def roll_back_silently(self, *, is_noticed: bool) -> None:
        """As a server does after a deadlock: the driver goes on in a new transaction, unaware."""
        with self.cursor() as cursor:
            cursor.execute("ROLLBACK")


def _end(statement: str) -> None:
    with WIRE.observer.cursor() as cursor:
        try:
            cursor.execute(statement)
        except pymysql.err.Error as error:
            if error.args[0] != ER.NO_SUCH_THREAD:
                raise


class MariaDbStage(ServerStage):
    """One database of a server; the instant is written into each statement that asks for it."""

    name = "MariaDB"
    occupy = "SELECT GET_LOCK(CONCAT('retoma simulation ', SHA1(DATABASE())), 0)"

    def furnish(self, engine: Engine) -> None:
        return

    def connect(self) -> SteppedConnection:
        return SteppedConnection(**self._options())

    def observe(self) -> Any:
        event.listen(self.engine, "connect", _prepare)
        options = self._options()
        options["client_flag"] |= CLIENT.MULTI_STATEMENTS
        return Connection(**options, autocommit=True, init_command=_SESSION)

    def _options(self) -> dict[str, Any]:
        _, options = self.engine.dialect.create_connect_args(self.engine.url)
        return {**options, "charset": "utf8mb4", "ssl_disabled": True}

    def ask(self, statements: list[str]) -> list[list[Any]]:
        with self.observer.cursor() as cursor:
            cursor.execute("; ".join(statements))
            found = [list(cursor.fetchall())]
            while cursor.nextset():
                found.append(list(cursor.fetchall()))
        return found

    def empty(self, items: list[Any]) -> None:
        deletes = "; ".join(f"DELETE FROM {table}" for table in TABLES)
        rows = ", ".join(f"({number}, '{verdict}', 1)" for number, verdict in items)
        with self.observer.cursor() as cursor:
            cursor.execute(
                f"BEGIN NOT ATOMIC START TRANSACTION; {deletes};"
                f" INSERT INTO sim_source VALUES {rows}; COMMIT; END"
            )

    def end_sessions(self, numbers: list[int]) -> None:
        for number in numbers:
            _end(f"KILL CONNECTION {number}")
        listed = ", ".join(map(str, numbers))
        while self.query(f"SELECT 1 FROM information_schema.processlist WHERE id IN ({listed})"):
            continue


def _prepare(connection: Any, _record: Any) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SESSION)
