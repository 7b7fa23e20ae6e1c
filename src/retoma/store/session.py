"""One database connection whose every statement passes the scheduling point.

At the scheduling point a test can kill, freeze, delay or interleave; in production nothing happens.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

from sqlalchemy import Connection, Executable, RootTransaction
from sqlalchemy.exc import ResourceClosedError

from retoma.clock import SYSTEM_CLOCK, Clock
from retoma.errors import WitnessGone
from retoma.faults import Point, no_point
from retoma.store.dialects.contract import Dialect, Guarded


class Session:
    """Reads, control transactions and work transactions on one connection.

    A *control* session lets every statement be its own transaction; a *work* session has explicit
    ones (``begin`` … ``commit``). One thread uses it at a time.
    """

    def __init__(
        self,
        connection: Connection,
        dialect: Dialect,
        point: Point = no_point,
        clock: Clock = SYSTEM_CLOCK,
    ) -> None:
        self.connection = connection
        self.dialect = dialect
        self.backend = dialect.name
        self.settings: dict[str, Any] = {}
        self._point = point
        self._clock = clock
        self._transaction: RootTransaction | None = None
        self._is_lost = False

    def at(self, name: str) -> None:
        """The scheduling point."""
        self._point(name)

    def pause(self, seconds: float) -> None:
        """Wait between two statements; never inside a transaction."""
        self._clock.sleep(seconds)

    def _require_transaction(self) -> None:
        """Raise ``WitnessGone`` if the database has ended the work transaction by itself.

        The next statement would stand alone and stay, though the chunk is rolled back.
        """
        if self._transaction is not None and self.dialect.has_rolled_back(self):
            raise WitnessGone("the database rolled the work transaction back by itself")

    def _execute(self, name: str, statement: Executable | str, parameters: Any) -> Any:
        self._require_transaction()
        self._point(name)
        if self._is_lost:
            self._connect_again()
        if isinstance(statement, str):
            result = self._run_text(self.dialect.prepared(statement), parameters or None)
        else:
            result = self.connection.execute(statement, parameters or {})
        self._point(name + ".after")
        return result

    def _run_text(self, statement: str, parameters: Any) -> Any:
        return self.connection.exec_driver_sql(statement, parameters)

    def fetch(
        self, name: str, statement: Executable | str, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """All rows of one statement."""
        return list(self._execute(name, statement, parameters).fetchall())

    def change(
        self, name: str, statement: Executable | str, parameters: Mapping[str, Any] | None = None
    ) -> int:
        """Run one statement; the number of rows that it matched."""
        return int(self._execute(name, statement, parameters).rowcount)

    def once(self, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        """Run a control transaction in one round trip; whether its guard changed one row."""
        return self.dialect.once(self, operation, parameters)

    def insert(self, table: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in bulk within the open transaction."""
        self._require_transaction()
        if rows:
            self.dialect.insert_rows(self, table, tuple(columns), list(rows))

    def begin(self, name: str) -> None:
        """BEGIN of a work transaction."""
        self._point(name)
        if self._is_lost:
            self._connect_again()
        self._transaction = self.connection.begin()

    def savepoint(self, name: str) -> None:
        """SAVEPOINT within the open transaction."""
        self._require_transaction()
        self._point("savepoint")
        self.connection.exec_driver_sql(f"SAVEPOINT {name}")

    def back_to(self, name: str) -> None:
        """ROLLBACK TO SAVEPOINT."""
        self._point("savepoint.back")
        self.connection.exec_driver_sql(f"ROLLBACK TO SAVEPOINT {name}")

    def commit(self, name: str) -> None:
        """COMMIT of the open transaction."""
        self._point(name)
        assert self._transaction is not None
        transaction, self._transaction = self._transaction, None
        transaction.commit()
        self._point(name + ".after")

    def abandon(self) -> None:
        """ROLLBACK whatever is open; a broken connection is thrown away."""
        transaction, self._transaction = self._transaction, None
        try:
            if transaction is not None:
                transaction.rollback()
            else:
                self.connection.rollback()
            if self.dialect.name == "sqlite":
                driver = self.connection.connection.driver_connection
                if driver is not None and driver.in_transaction:
                    driver.execute("ROLLBACK")
        except Exception:
            self.discard()
        self._is_lost = self.connection.closed or self.connection.invalidated

    def _connect_again(self) -> None:
        """A new connection, set up as the lost one was.

        SQLAlchemy by itself reconnects without the isolation level that was set on the connection:
        what should commit by itself would wait for a COMMIT that never comes.
        """
        options = self.connection.get_execution_options()
        engine = self.connection.engine
        with suppress(ResourceClosedError):
            self.connection.close()
        self.settings.clear()
        self.connection = engine.connect().execution_options(**options)
        self._is_lost = False

    def discard(self) -> None:
        """Throw the connection away; the next statement would need a new session."""
        self.settings.clear()
        with suppress(ResourceClosedError):  # it has been closed already
            self.connection.invalidate()
        self.connection.close()

    def close(self) -> None:
        """Give the connection back."""
        try:
            self.connection.close()
        except Exception:
            self.discard()
