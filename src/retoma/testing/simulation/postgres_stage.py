"""The stage on a real PostgreSQL: several connections, stepped statement by statement in one thread.

A statement that waits for a lock is noticed (``pg_blocking_pids``), and the others go on.
"""

from __future__ import annotations

import select
from contextlib import suppress
from typing import Any, Self

import psycopg
from psycopg import pq
from psycopg.waiting import Ready, Wait
from sqlalchemy import Engine, make_url, text

from retoma.testing.simulation.server_stage import ServerStage
from retoma.testing.simulation.stage import TABLES
from retoma.testing.simulation.stepped import GLANCE_MILLISECONDS, WIRE, Stepped
from retoma.testing.simulation.world import World

_CLOCK_SECONDS = 0.2
_END_MILLISECONDS = 5_000
_CLOCK = (
    "DROP TABLE IF EXISTS sim_clock",
    "CREATE UNLOGGED TABLE sim_clock (at timestamptz NOT NULL)",
    "INSERT INTO sim_clock VALUES (clock_timestamp())",
    f"CREATE OR REPLACE FUNCTION {ServerStage.now} RETURNS timestamptz LANGUAGE sql VOLATILE"
    " AS 'SELECT at FROM sim_clock'",
)
_AT_REST = (
    pq.TransactionStatus.IDLE,
    pq.TransactionStatus.INTRANS,
    pq.TransactionStatus.INERROR,
)


class LostAnswer(psycopg.OperationalError):
    """The connection broke: what the server did last is open."""

    __module__ = "psycopg.errors"  # by which the code knows an error of the driver


class SteppedCursor(psycopg.Cursor[Any]):
    """Sees to it that the database knows the time that a statement asks for."""

    def execute(self, query: Any, *arguments: Any, **options: Any) -> Any:
        if ServerStage.now in str(query):
            WIRE.tell_time()
        return super().execute(query, *arguments, **options)


class SteppedConnection(Stepped, psycopg.Connection[Any]):
    """A connection that lets the others go on while its statement waits for a lock."""

    lost = LostAnswer

    def number(self) -> int:
        return self.pgconn.backend_pid

    def part(self) -> Self | None:
        if self.pgconn.transaction_status not in _AT_REST:
            return None
        if self.is_in_transaction():
            self.pgconn.exec_(b"ROLLBACK")
        if self.pgconn.transaction_status != pq.TransactionStatus.IDLE:
            return None
        session = type(self)(self.pgconn)
        session.cursor_factory = SteppedCursor
        session._prepared = self._prepared  # noqa: SLF001 - what the server has prepared stays so
        self.pgconn = _gone()
        return session

    def as_new(self) -> Self | None:
        poller = select.poll()
        poller.register(self.pgconn.socket, select.POLLIN)
        if poller.poll(0):  # the server has something to say: that it is ending the session
            self.drop()
            return None
        return self

    def drop(self) -> None:
        self.pgconn.finish()

    def is_in_transaction(self) -> bool:
        return self.pgconn.transaction_status in (
            pq.TransactionStatus.INTRANS,
            pq.TransactionStatus.INERROR,
        )

    def is_blocked(self) -> bool:
        row = WIRE.observer.execute(
            "SELECT cardinality(pg_blocking_pids(%s))", (self.number(),)
        ).fetchone()
        return bool(row[0])

    def cancel_statement(self) -> None:
        self.cancel()

    def wait(self, gen: Any, interval: float = 0.1, timeout: float | None = None) -> Any:
        world = self.played_in()
        if world is None:
            if self.is_cut or self.closed:  # the pool tidies up what the dead have left behind
                gen.close()
                return None
            return super().wait(gen, interval, timeout)
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

        def look() -> Ready | None:
            for _, event in poller.poll(GLANCE_MILLISECONDS):
                found = (Ready.R if event & ~select.POLLOUT else 0) | (
                    Ready.W if event & select.POLLOUT else 0
                )
                return Ready(found)
            return None

        return self.await_answer(world, look)

    def commit_late(self) -> bool:
        return bool(self.pgconn.exec_(b"COMMIT").status == pq.ExecStatus.COMMAND_OK)

    def lock_timeout(self) -> Exception:
        return psycopg.errors.LockNotAvailable("canceling statement due to lock timeout")

    def roll_back_silently(self, *, is_noticed: bool) -> None:
        """What PostgreSQL does after an error that code has swallowed: it refuses all that follows."""
        with suppress(psycopg.errors.DivisionByZero):
            self.execute("SELECT 1 / 0")


def _gone() -> pq.abc.PGconn:
    found = pq.PGconn.connect_start(b"host=/nowhere")
    found.finish()
    return found


class PostgresStage(ServerStage):
    """One database of a server; its clock is a row of a table, told when somebody asks for it."""

    name = "PostgreSQL"
    occupy = "SELECT pg_try_advisory_lock(hashtext('retoma simulation'))"

    def furnish(self, engine: Engine) -> None:
        self._told = -1e9
        with engine.begin() as connection:
            for statement in _CLOCK:
                connection.execute(text(statement))
            name = make_url(self.url).database
            connection.execute(text(f'ALTER DATABASE "{name}" SET synchronous_commit = off'))

    def _plain_url(self) -> str:
        url = make_url(self.url).set(drivername="postgresql")
        return url.render_as_string(hide_password=False)

    def connect(self) -> SteppedConnection:
        # Unlike the product, which may sit behind a pooler, it lets the server keep its plans: they
        # cost more than the statements.
        return SteppedConnection.connect(self._plain_url(), cursor_factory=SteppedCursor)

    def observe(self) -> Any:
        return psycopg.connect(self._plain_url(), autocommit=True, prepare_threshold=None)

    def ask(self, statements: list[str]) -> list[list[Any]]:
        cursor = self.observer.execute("; ".join(statements))
        found = [cursor.fetchall()]
        while cursor.nextset():
            found.append(cursor.fetchall())
        return found

    def empty(self, items: list[Any]) -> None:
        deletes = "; ".join(f"DELETE FROM {table}" for table in TABLES)
        rows = ", ".join(f"({number}, '{verdict}', 1)" for number, verdict in items)
        self.observer.execute(f"{deletes}; INSERT INTO sim_source VALUES {rows}")

    def enter(self, world: World, on_commit: Any) -> None:
        super().enter(world, on_commit)
        self._told = -1e9
        world.on_turn = self._turn

    def _turn(self, _now: float) -> None:
        if WIRE.waiting:  # a statement that asks for the time again when it has got its lock
            self.tell_time()

    def tell_time(self) -> None:
        world = self.clock.world
        if world is not None and abs(world.now + world.clock_offset - self._told) >= _CLOCK_SECONDS:
            self._told = world.now + world.clock_offset
            self.observer.execute("UPDATE sim_clock SET at = %s", (self.clock.utc(),))

    def end_sessions(self, numbers: list[int]) -> None:
        for number in numbers:
            self.observer.execute(
                "SELECT pg_terminate_backend(%s, %s)", (number, _END_MILLISECONDS)
            )
