"""Every failure has a kind, whatever a driver or a job's own code raises."""

from __future__ import annotations

import sqlite3
from typing import Any

import pytest

from retoma.errors import FailureKind
from retoma.store.dialects.contract import Dialect
from retoma.store.dialects.mariadb import MariaDb
from retoma.store.dialects.postgres import Postgres
from retoma.store.dialects.sqlite import Sqlite
from retoma.store.store import Store

DIALECTS: list[Dialect] = [Sqlite(), Postgres(), MariaDb()]
TABLE = "CREATE TABLE kinds (id INTEGER PRIMARY KEY, n INTEGER NOT NULL CHECK (n < 10))"
TEXT = "a text that cannot be a number"


@pytest.mark.parametrize(
    ("statement", "expected"),
    [
        ("INSERT INTO kinds VALUES (1, 1)", FailureKind.DUPLICATE),
        ("INSERT INTO kinds VALUES (2, NULL)", FailureKind.INVALID_ITEM),
        ("INSERT INTO kinds VALUES (2, 11)", FailureKind.INVALID_ITEM),
        ("INSERT INTO nowhere VALUES (1)", FailureKind.PERMANENT),
        ("SELEKT 1", FailureKind.PERMANENT),
        ("SELECT nothing FROM kinds", FailureKind.PERMANENT),
    ],
)
def test_what_the_database_refuses_has_the_same_kind_everywhere(
    database_url: str, statement: str, expected: FailureKind
) -> None:
    store = Store(database_url)
    with store.engine.connect() as connection:
        connection.exec_driver_sql(TABLE)
        connection.exec_driver_sql("INSERT INTO kinds VALUES (1, 1)")
        with pytest.raises(Exception) as caught:
            connection.exec_driver_sql(statement)
    store.dispose()
    assert store.kind_of(caught.value) is expected


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
@pytest.mark.parametrize(
    "error",
    [ValueError(["a", "list"]), KeyError({"a": 1}), OSError(1062, "no"), RuntimeError(1048), TEXT],
    ids=repr,
)
def test_an_error_of_user_code_is_never_taken_for_a_refused_row(
    dialect: Dialect, error: Any
) -> None:
    raised = error if isinstance(error, Exception) else RuntimeError(error)
    kind = dialect.classify(raised)
    assert kind not in (FailureKind.INVALID_ITEM, FailureKind.DUPLICATE)


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_a_text_that_cannot_be_encoded_is_the_items_fault(dialect: Dialect) -> None:
    with pytest.raises(UnicodeEncodeError) as caught:
        "\ud800".encode()
    assert dialect.classify(caught.value) is FailureKind.INVALID_ITEM


def test_sqlites_full_disk_and_lock_pass_but_a_broken_file_does_not() -> None:
    kinds = {}
    for name in ("SQLITE_FULL", "SQLITE_BUSY", "SQLITE_IOERR", "SQLITE_CORRUPT", "SQLITE_NOTADB"):
        error = sqlite3.OperationalError(name)
        error.sqlite_errorname = name
        kinds[name] = Sqlite().classify(error)
    assert [str(kind) for kind in kinds.values()] == ["TRANSIENT"] * 3 + ["PERMANENT"] * 2
