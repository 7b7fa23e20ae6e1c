"""The control tables: made by migration, by a DBA's hand, or by two processes at once, the same."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import inspect

from retoma.clock import SYSTEM_CLOCK, Clock
from retoma.errors import DatabaseUnreachable, SchemaMismatch
from retoma.store import migrate, tables
from retoma.store.store import Store
from retoma.testing import FakeClock
from tests.databases import BACKENDS, Servers
from tests.store.scene import scene

NAMES = {"sqlite": "sqlite", "postgres": "postgresql", "mariadb": "mariadb"}
CREATOR = """
import sys, time, pathlib
from retoma.store import migrate
from retoma.store.store import Store
store = Store(sys.argv[1])
import alembic.command
print("ready", flush=True)
sys.stdin.readline()
migrate.ensure(store)
print(migrate.current_version(store))
"""


@contextmanager
def opened(url: str, clock: Clock = SYSTEM_CLOCK) -> Iterator[Store]:
    store = Store(url, clock=clock)
    try:
        yield store
    finally:
        store.dispose()


def schema_of(store: Store) -> dict[str, Any]:
    """All that the database says of its tables, in comparable form."""
    found: dict[str, Any] = {}
    with store.engine.connect() as connection:
        look = inspect(connection)
        for table in sorted(look.get_table_names()):
            found[table] = {
                "columns": [
                    (c["name"], str(c["type"]), c["nullable"], str(c["default"]).split("_seq")[0])
                    for c in look.get_columns(table)
                ],
                "key": look.get_pk_constraint(table)["constrained_columns"],
                "unique": sorted(
                    (u["name"], *u["column_names"]) for u in look.get_unique_constraints(table)
                ),
                "indexes": sorted(
                    (str(i["name"]), *map(str, i["column_names"])) for i in look.get_indexes(table)
                ),
                "references": look.get_foreign_keys(table),
            }
    return found


def apply_by_hand(store: Store, sql: str) -> None:
    """What a DBA does with the printed text."""
    driver = store.engine.raw_connection()
    try:
        if store.dialect.name == "sqlite":
            driver.driver_connection.executescript(sql)  # type: ignore[union-attr]
        else:
            cursor = driver.cursor()
            pieces = [sql] if store.dialect.name == "postgresql" else sql.split(";\n")
            for piece in filter(str.strip, pieces):
                cursor.execute(piece)
            driver.commit()
    finally:
        driver.close()


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_printed_sql_is_the_same_each_time(backend: str) -> None:
    text = migrate.offline_sql(NAMES[backend])
    assert text == migrate.offline_sql(NAMES[backend])
    assert all(f"CREATE TABLE {name} (" in text for name in tables.metadata.tables)
    assert "FOREIGN KEY" not in text


@pytest.mark.parametrize("backend", BACKENDS)
def test_the_printed_sql_gives_the_schema_of_the_migration(
    backend: str, servers: Servers, tmp_path: Path
) -> None:
    by_hand, by_code = tmp_path / "by_hand", tmp_path / "by_code"
    by_hand.mkdir()
    by_code.mkdir()
    with servers.database(backend, by_hand) as first, servers.database(backend, by_code) as second:
        with opened(first) as store, opened(second) as migrated:
            apply_by_hand(store, migrate.offline_sql(NAMES[backend]))
            migrate.upgrade(migrated)
            assert migrate.current_version(store) == migrate.HEAD
            expected = schema_of(migrated)
            assert set(tables.metadata.tables) < set(expected)
            assert schema_of(store) == expected

            migrate.ensure(store)
            session = store.control()
            assert scene(store, session).cut(10) is not None
            name = store.name(session)
            session.close()
            assert len(name) == 8
            migrate.ensure(store)
        with opened(first) as again:
            session = again.control()
            assert again.name(session) == name
            session.close()


def test_the_migrations_make_what_the_code_expects(database_url: str) -> None:
    with opened(database_url) as store:
        migrate.upgrade(store)
        with store.engine.connect() as connection:
            options = {"compare_type": True, "compare_server_default": True}
            context = MigrationContext.configure(connection, opts=options)
            differences = compare_metadata(context, tables.metadata)
        shown = [d for d in differences if "batch_schema_version" not in str(d)]
        assert shown == []


def test_a_table_that_is_missing_or_changed_would_be_noticed(sqlite_url: str) -> None:
    with opened(sqlite_url) as store:
        migrate.upgrade(store)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("DROP TABLE batch_request")
            connection.exec_driver_sql("ALTER TABLE batch_node ADD COLUMN more INTEGER")
            context = MigrationContext.configure(connection)
            differences = str(compare_metadata(context, tables.metadata))
        assert "batch_request" in differences
        assert "more" in differences


class Holder(FakeClock):
    """Somebody who is the first to write to a new file, and lets go when another has slept."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._connection = sqlite3.connect(file, isolation_level=None)
        self._connection.execute("BEGIN IMMEDIATE")
        self.sleeps_left = 3

    def sleep(self, seconds: float) -> None:
        super().sleep(seconds)
        self.sleeps_left -= 1
        if self.sleeps_left == 0:
            self._connection.execute("ROLLBACK")

    def close(self) -> None:
        self._connection.close()


def test_a_new_file_that_another_writes_to_first_is_waited_for(tmp_path: Path) -> None:
    with (
        closing(Holder(tmp_path / "new.db")) as holder,
        opened(f"sqlite:///{tmp_path / 'new.db'}", holder) as store,
    ):
        store.check_connection()
        assert holder.sleeps_left == 0


def test_a_new_file_that_another_never_lets_go_is_given_up_in_words(tmp_path: Path) -> None:
    with (
        closing(Holder(tmp_path / "new.db")) as holder,
        opened(f"sqlite:///{tmp_path / 'new.db'}", holder) as store,
    ):
        holder.sleeps_left = -1  # never
        began = holder.monotonic()
        with pytest.raises(DatabaseUnreachable, match="database is locked"):
            store.check_connection()
        assert 4.0 <= holder.monotonic() - began < 4.1


def test_processes_that_create_the_tables_at_once_all_succeed(database_url: str) -> None:
    command = [sys.executable, "-c", CREATOR, database_url]
    pipe = subprocess.PIPE
    started = [
        subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True) for _ in range(3)
    ]
    for process in started:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    for process in started:
        out, err = process.communicate(timeout=60)
        assert (process.returncode, out.strip()) == (0, migrate.HEAD), err
    with opened(database_url) as store:
        session = store.control()
        assert session.fetch("t", "SELECT count(*) FROM batch_store")[0][0] == 1
        session.close()


def test_tables_of_a_newer_release_are_refused(sqlite_url: str) -> None:
    with opened(sqlite_url) as store:
        migrate.ensure(store)
        with store.engine.begin() as connection:
            connection.exec_driver_sql("UPDATE batch_schema_version SET version_num = '9999'")
        with pytest.raises(SchemaMismatch, match="9999"):
            migrate.ensure(store)
