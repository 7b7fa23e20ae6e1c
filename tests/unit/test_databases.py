"""The databases that the other tests stand on are fresh, apart, and really there."""

from __future__ import annotations

from pathlib import Path

import pytest
import sqlalchemy as sa

from tests.databases import BACKENDS, Servers, backend_of


def ask(url: str, *statements: str) -> list[object]:
    engine = sa.create_engine(url)
    try:
        with engine.begin() as connection:
            answers = [connection.execute(sa.text(statement)) for statement in statements]
            return [answer.scalar() if answer.returns_rows else None for answer in answers]
    finally:
        engine.dispose()


@pytest.mark.parametrize("_again", [1, 2])
def test_a_test_finds_an_empty_database(database_url: str, _again: int) -> None:
    assert ask(database_url, "CREATE TABLE t (x INTEGER)", "SELECT COUNT(*) FROM t") == [None, 0]


def test_a_url_tells_its_backend(sqlite_url: str, postgres_url: str, mariadb_url: str) -> None:
    assert [backend_of(url) for url in (sqlite_url, postgres_url, mariadb_url)] == list(BACKENDS)
    assert "SQLite" not in str(ask(mariadb_url, "SELECT VERSION()"))
    assert "MariaDB" in str(ask(mariadb_url, "SELECT VERSION()"))
    assert "PostgreSQL" in str(ask(postgres_url, "SELECT VERSION()"))


def test_a_database_is_dropped_though_a_transaction_is_open(
    servers: Servers, tmp_path: Path, database_url: str
) -> None:
    backend = backend_of(database_url)
    with servers.database(backend, tmp_path / "..") as url:
        engine = sa.create_engine(url)
        connection = engine.connect()
        connection.execute(sa.text("CREATE TABLE t (x INTEGER)"))
        connection.execute(sa.text("INSERT INTO t VALUES (1)"))
    if backend == "sqlite":  # the file goes with the test's folder
        connection.close()
    else:
        with pytest.raises(sa.exc.DBAPIError):
            connection.execute(sa.text("SELECT * FROM t"))
        connection.invalidate()
    engine.dispose()


def test_a_missing_backend_is_skipped_and_a_required_one_fails(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("RETOMA_TEST_MARIADB", raising=False)
    monkeypatch.setattr("tests.databases.shutil.which", lambda *_names, **_options: None)
    skipped, failed = pytest.skip.Exception, pytest.fail.Exception
    for required, outcome in (("", skipped), ("postgres", skipped), ("sqlite, mariadb", failed)):
        monkeypatch.setenv("RETOMA_TEST_REQUIRE", required)
        # A skip that is not expected would not fail this test but skip it: so both are caught.
        with pytest.raises((skipped, failed), match="apt-get install mariadb-server") as caught:
            Servers().database("mariadb", tmp_path).__enter__()
        assert caught.type is outcome
