"""The fastest way into a table that each database has, within one transaction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, cast

from sqlalchemy import Connection, Engine, Table, select, text
from sqlalchemy.schema import CreateIndex, DropIndex

_ESCAPES = str.maketrans({"\\": "\\\\", "\t": "\\t", "\n": "\\n", "\r": "\\r"})


class Loader:
    """Loads rows within the connection's transaction, which it makes sure is open.

    On PostgreSQL an empty table is loaded without its secondary indexes, which ``finish`` builds in
    one go, and with its rows visible to all from the start (FREEZE): twice as fast, and the first
    reader has nothing to tidy up. The table is locked until the transaction ends.
    """

    def __init__(self, connection: Connection, tables: Iterable[Table]) -> None:
        self._connection = connection
        self._driver = cast(Any, connection.connection.driver_connection)
        self._fresh: list[Table] = []
        if connection.dialect.name == "sqlite" and not self._driver.in_transaction:
            connection.exec_driver_sql("BEGIN IMMEDIATE")  # a driver in autocommit mode opens none
        elif connection.dialect.name == "postgresql":
            for table in tables:
                self._make_fresh(table)

    def _make_fresh(self, table: Table) -> None:
        self._connection.exec_driver_sql(f"LOCK TABLE {table.name} IN ACCESS EXCLUSIVE MODE")
        if self._connection.execute(select(table).limit(1)).first() is None:
            self._connection.execute(text(f"TRUNCATE {table.name}"))
            for index in table.indexes:
                self._connection.execute(DropIndex(index))
            self._fresh.append(table)

    def load(self, table: Table, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows: COPY on PostgreSQL, executemany elsewhere."""
        names = ", ".join(columns)
        if self._connection.dialect.name == "postgresql":
            option = " WITH (FREEZE)" if table in self._fresh else ""
            statement = f"COPY {table.name} ({names}) FROM STDIN{option}"
            with self._driver.cursor() as cursor, cursor.copy(statement) as copy:
                copy.write("".join(_copy_lines(rows)))
            return
        mark = "?" if self._connection.dialect.paramstyle == "qmark" else "%s"
        marks = ", ".join([mark] * len(columns))
        self._connection.exec_driver_sql(
            f"INSERT INTO {table.name} ({names}) VALUES ({marks})", [tuple(row) for row in rows]
        )

    def finish(self) -> None:
        """Build the indexes that were left out."""
        for table in self._fresh:
            for index in table.indexes:
                self._connection.execute(CreateIndex(index))


def refresh_statistics(engine: Engine, tables: Iterable[Table]) -> None:
    """Tell PostgreSQL's planner what has been loaded; the others find out by themselves."""
    if engine.dialect.name == "postgresql":
        with engine.begin() as connection:
            for table in tables:
                connection.exec_driver_sql(f"ANALYZE {table.name}")


def _copy_lines(rows: Iterable[Sequence[Any]]) -> Iterable[str]:
    for row in rows:
        yield "\t".join([_field(value) for value in row]) + "\n"


def _field(value: Any) -> str:
    if value is None:
        return "\\N"
    if isinstance(value, str):
        return value.translate(_ESCAPES) if "\\" in value or not value.isprintable() else value
    return str(value)
