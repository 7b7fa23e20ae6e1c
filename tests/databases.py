"""The databases that the tests run on: one server of each kind a test process, started when asked.

| Backend | Server | Instead of it |
| --- | --- | --- |
| sqlite | none: a file in the test's own folder | |
| postgres | `retoma.embedded`: the wheel, or the system's programs | `RETOMA_TEST_POSTGRES=URL` |
| mariadb | the system's `mariadbd`, in a throw-away directory | `RETOMA_TEST_MARIADB=URL` |

Each test gets a fresh, empty database. A URL given in the environment must belong to a user who may
create and drop databases. A backend that is not on this machine is skipped with a reason, unless
`RETOMA_TEST_REQUIRE` (a comma list such as `sqlite,postgres,mariadb`) names it: then it fails.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, unquote, urlsplit

import pytest

from retoma.embedded import (
    EmbeddedPostgres,
    PostgresNotFoundError,
    give_to,
    throw_away_directory,
    unprivileged_account,
)
from retoma.server_guard import GuardedServer, ServerPlan

BACKENDS = ("sqlite", "postgres", "mariadb")
_SCHEMES = {"sqlite": "sqlite", "postgresql": "postgres", "mariadb": "mariadb", "mysql": "mariadb"}


class BackendMissingError(Exception):
    """The backend's server is not installed here; the message says how to get it."""


def backend_of(url: str) -> str:
    """`sqlite`, `postgres` or `mariadb`."""
    return _SCHEMES[urlsplit(url).scheme.partition("+")[0]]


class Servers:
    """The servers of this test process: each starts at its first use and ends with `stop`."""

    def __init__(self) -> None:
        self._urls: dict[str, str] = {}
        self._missing: dict[str, str] = {}
        self._stops: list[Callable[[], None]] = []

    @contextmanager
    def database(self, backend: str, folder: Path) -> Iterator[str]:
        """The URL of a new, empty database, which is dropped at the end."""
        if backend == "sqlite":
            yield f"sqlite:///{folder / 'retoma.db'}"
            return
        server = urlsplit(self._url(backend))
        create, drop = _POSTGRES if backend == "postgres" else _MARIADB
        name = f"retoma_test_{secrets.token_hex(6)}"
        create(server, name)
        try:
            yield server._replace(path=f"/{name}").geturl()
        finally:
            drop(server, name)

    def stop(self) -> None:
        while self._stops:
            self._stops.pop()()

    def _url(self, backend: str) -> str:
        if backend in self._missing:
            _give_up(backend, self._missing[backend])
        if backend not in self._urls:
            given = os.environ.get(f"RETOMA_TEST_{backend.upper()}")
            try:
                self._urls[backend] = given or self._start(backend)
            except BackendMissingError as error:
                self._missing[backend] = str(error)
                _give_up(backend, str(error))
        return self._urls[backend]

    def _start(self, backend: str) -> str:
        url, stop = _start_postgres() if backend == "postgres" else _start_mariadb()
        self._stops.append(stop)
        return url


def _give_up(backend: str, reason: str) -> None:
    required = os.environ.get("RETOMA_TEST_REQUIRE", "").replace(" ", "").split(",")
    if backend in required:
        pytest.fail(f"{backend} is required by RETOMA_TEST_REQUIRE: {reason}", pytrace=False)
    pytest.skip(reason)  # a laptop may lack the server; CI requires all three and skips none


# ---------------------------------------------------------------------------------------------
# PostgreSQL


def _start_postgres() -> tuple[str, Callable[[], None]]:
    server = EmbeddedPostgres()
    try:
        return server.start(), server.stop
    except PostgresNotFoundError as error:
        raise BackendMissingError(f"{error} Or set RETOMA_TEST_POSTGRES to a URL.") from error


def _postgres(server: SplitResult, *statements: str) -> None:
    import psycopg

    dsn = server._replace(scheme="postgresql").geturl()
    with psycopg.connect(dsn, autocommit=True) as connection:
        for statement in statements:
            connection.execute(statement.encode())


def _create_postgres(server: SplitResult, name: str) -> None:
    _postgres(server, f"CREATE DATABASE {name}")


def _drop_postgres(server: SplitResult, name: str) -> None:
    _postgres(server, f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")


# ---------------------------------------------------------------------------------------------
# MariaDB


def _start_mariadb() -> tuple[str, Callable[[], None]]:
    # Debian puts the server in sbin, which is not on the PATH of an ordinary user.
    path = os.environ.get("PATH", os.defpath) + ":/usr/sbin:/usr/local/sbin"
    daemon = shutil.which("mariadbd", path=path)
    installer = shutil.which("mariadb-install-db", path=path)
    if daemon is None or installer is None:
        raise BackendMissingError(
            "MariaDB is not installed: apt-get install mariadb-server (its service need not run), "
            "or set RETOMA_TEST_MARIADB to a URL."
        )
    account = unprivileged_account("mysql", "nobody")
    directory = throw_away_directory("retoma-mariadb-", account)
    password = secrets.token_hex(16)
    # root may come in by the socket only, so nobody on this machine finds an open server.
    users = directory / "users.sql"
    users.write_text(
        f"CREATE USER IF NOT EXISTS retoma@'%' IDENTIFIED BY '{password}';\n"
        "GRANT ALL PRIVILEGES ON *.* TO retoma@'%' WITH GRANT OPTION;\n"
    )
    users.chmod(0o600)
    give_to(users, account)
    prepare = [installer, "--no-defaults", f"--datadir={directory}/data", "--skip-test-db"]
    prepare += ["--auth-root-authentication-method=socket", "--skip-name-resolve"]
    serve = [daemon, "--no-defaults", f"--datadir={directory}/data", f"--init-file={users}"]
    serve += ["--bind-address=127.0.0.1", "--port={port}", f"--socket={directory}/mariadb.sock"]
    serve += [f"--pid-file={directory}/mariadb.pid", "--skip-name-resolve"]
    # The time zone is the machine's on purpose: nothing may depend on it.
    serve += ["--innodb-flush-log-at-trx-commit=1", "--innodb-buffer-pool-size=256M"]
    serve += ["--character-set-server=utf8mb4"]
    server = GuardedServer(
        ServerPlan(
            directory=str(directory),
            prepare=prepare,
            serve=serve,
            ready_text="ready for connections",
            port_taken_text="Bind on TCP/IP port",
            stop_signal=signal.SIGKILL,  # an orderly end takes seconds and saves nothing here
            uid=account.uid if account else None,
            gid=account.gid if account else None,
        )
    )
    return f"mariadb+pymysql://retoma:{password}@127.0.0.1:{server.port}/", server.stop


def _mariadb(server: SplitResult) -> Any:
    import pymysql

    return pymysql.connect(
        host=server.hostname or "127.0.0.1",
        port=server.port or 3306,
        user=unquote(server.username or "root"),
        password=unquote(server.password or ""),
        autocommit=True,
    )


def _create_mariadb(server: SplitResult, name: str) -> None:
    with _mariadb(server) as connection, connection.cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} CHARACTER SET utf8mb4")


def _drop_mariadb(server: SplitResult, name: str) -> None:
    import pymysql

    with _mariadb(server) as connection, connection.cursor() as cursor:
        # A transaction left open by a test would hold the drop for ever: end its session first.
        cursor.execute("SELECT id FROM information_schema.processlist WHERE db = %s", (name,))
        for (session,) in cursor.fetchall():
            try:
                cursor.execute(f"KILL {int(session)}")
            except pymysql.err.OperationalError as error:
                if error.args[0] != 1094:  # it left by itself meanwhile
                    raise
        cursor.execute(f"DROP DATABASE IF EXISTS {name}")


_POSTGRES = (_create_postgres, _drop_postgres)
_MARIADB = (_create_mariadb, _drop_mariadb)
