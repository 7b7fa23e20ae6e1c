"""PostgreSQL, direct or behind a pooler in transaction mode."""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any

from sqlalchemy import Engine, create_engine, text
from sqlalchemy.dialects.postgresql import dialect as postgres_dialect
from sqlalchemy.engine.interfaces import Dialect as DriverDialect
from sqlalchemy.exc import DBAPIError

from retoma.errors import FailureKind
from retoma.store.dialects.contract import Dialect, Guarded, Statements, ZombieRemains

_TRANSIENT_CLASSES = ("08", "40", "53", "55", "57", "58", "25")
_ENTER_WORK = text(
    "SELECT set_config('application_name', :name, true),"
    " set_config('statement_timeout', :deadline, true),"
    " set_config('lock_timeout', :lock, true),"
    " set_config('idle_in_transaction_session_timeout', :deadline, true),"
    " set_config('client_connection_check_interval', '2s', true),"
    " set_config('jit', 'off', true)"
)
_END = text(
    "SELECT pid, pg_terminate_backend(pid) FROM pg_stat_activity"
    " WHERE application_name = :name AND datname = current_database() AND pid <> pg_backend_pid()"
)
_LOCK_TIMEOUT = "(SELECT set_config('lock_timeout', '{seconds}s', true)) IS NOT NULL"


class Postgres(Dialect):
    """One statement a control transaction: the guard and its followers are CTEs of one SELECT."""

    name = "postgresql"
    now = "clock_timestamp()"

    def make_engine(self, url: str) -> Engine:
        return create_engine(
            url,
            isolation_level="READ COMMITTED",
            pool_size=4,
            max_overflow=4,
            connect_args={
                "prepare_threshold": None,  # prepared statements break behind a transaction pooler
                "connect_timeout": 10,
                "keepalives_idle": 10,
                "keepalives_interval": 5,
                "keepalives_count": 3,
                "tcp_user_timeout": 20_000,
            },
        )

    def parameter_style(self) -> DriverDialect:
        style: DriverDialect = postgres_dialect(paramstyle="pyformat")  # type: ignore[no-untyped-call]
        return style

    def after(self, parameter: str) -> str:
        return f"{self.now} + make_interval(secs => CAST(:{parameter} AS double precision))"

    def _fold(self, operation: Guarded) -> str:
        extra = {
            "held": "EXISTS (SELECT 1 FROM held)" if operation.hold else "1 = 1",
            "guarded": "EXISTS (SELECT 1 FROM guard)",
            "picked": f"(SELECT id {operation.pick} LIMIT 1 FOR UPDATE SKIP LOCKED)",
            "guard_id": "(SELECT id FROM guard)",
            "then0_id": "(SELECT id FROM then0)",
        }
        guard = self.render(operation.guard, extra)
        if operation.lock_timeout_seconds is not None:
            guard += " AND " + _LOCK_TIMEOUT.format(seconds=operation.lock_timeout_seconds)
        parts = [f"guard AS ({guard} RETURNING id)"]
        if operation.hold:
            strength = "FOR UPDATE" if operation.hold_exclusively else "FOR SHARE"
            parts.insert(0, f"held AS (SELECT id {self.render(operation.hold, extra)} {strength})")
        for number, statement in enumerate(operation.then):
            parts.append(f"then{number} AS ({self.render(statement, extra)} RETURNING id)")
        return f"WITH {', '.join(parts)} SELECT count(*) FROM guard"

    def once(self, session: Statements, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        return bool(
            session.fetch(operation.name, self.kept("fold", operation, self._fold), parameters)[0][
                0
            ]
        )

    def enter_work(self, session: Statements, name: str, deadline_seconds: float) -> None:
        deadline = f"{max(int(deadline_seconds * 1000), 1000)}ms"
        session.fetch("work.enter", _ENTER_WORK, {"name": name, "deadline": deadline, "lock": "5s"})

    def end_session(self, session: Statements, name: str, owner_pid: int | None) -> None:
        for _ in range(50):
            if not session.fetch("zombie.end", _END, {"name": name}):
                return
            session.pause(0.05)
        raise ZombieRemains(name)

    def insert_rows(
        self, session: Statements, table: Any, columns: tuple[str, ...], rows: list[Any]
    ) -> None:
        session.at("insert.copy")
        target, names = self.insert_target(session, table, columns)
        driver = session.connection.connection.driver_connection
        assert driver is not None
        with (
            driver.cursor() as cursor,
            cursor.copy(f"COPY {target} ({names}) FROM STDIN") as copy,
        ):
            for block in _blocks(rows):
                copy.write(block)

    def classify(self, error: BaseException) -> FailureKind:
        original = error.orig if isinstance(error, DBAPIError) else error
        state = getattr(original, "sqlstate", None)
        if state == "23505":
            return FailureKind.DUPLICATE
        if state is not None and state[:2] in ("22", "23"):
            return FailureKind.INVALID_ITEM
        if state is not None and not state.startswith(_TRANSIENT_CLASSES):
            return FailureKind.PERMANENT
        if isinstance(original, UnicodeEncodeError) or (
            state is None and type(original).__name__ == "DataError"
        ):
            return FailureKind.INVALID_ITEM
        return FailureKind.TRANSIENT

    def is_connection_lost(self, error: BaseException) -> bool:
        original = error.orig if isinstance(error, DBAPIError) else error
        state = getattr(original, "sqlstate", None)
        return state is None or state.startswith(("08", "57P"))


_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


def _field(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES)
    return str(value)


def _blocks(rows: Iterable[Any]) -> Iterable[str]:
    """COPY's text format in blocks of some 64 kB; formatting ourselves is half the driver's time."""
    buffer = io.StringIO()
    for row in rows:
        buffer.write("\t".join([_field(value) for value in row]))
        buffer.write("\n")
        if buffer.tell() > 65_536:
            yield buffer.getvalue()
            buffer.seek(0)
            buffer.truncate()
    if buffer.tell():
        yield buffer.getvalue()
