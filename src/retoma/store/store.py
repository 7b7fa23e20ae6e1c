"""The store: engine, dialect, and the sessions that everything else works through."""

from __future__ import annotations

import secrets
from typing import Any

from sqlalchemy import Engine, make_url, text
from sqlalchemy.exc import ArgumentError, DBAPIError, NoSuchModuleError, OperationalError

from retoma.clock import SYSTEM_CLOCK, Clock
from retoma.errors import DatabaseUnreachable, FailureKind, UsageError
from retoma.faults import Point, no_point
from retoma.host import THIS_HOST, Host
from retoma.store.dialects.contract import Dialect
from retoma.store.session import Session

_SCHEMES = {
    "postgres": "postgresql+psycopg",
    "postgresql": "postgresql+psycopg",
    "mysql": "mariadb+pymysql",
    "mariadb": "mariadb+pymysql",
}


def new_token() -> str:
    """A random value that makes a claim unmistakable."""
    return secrets.token_hex(16)


def dialect_for(name: str, clock: Clock = SYSTEM_CLOCK, host: Host = THIS_HOST) -> Dialect:
    """The dialect of an SQLAlchemy backend name."""
    if name == "sqlite":
        from retoma.store.dialects.sqlite import Sqlite

        return Sqlite(clock, host)
    if name == "postgresql":
        from retoma.store.dialects.postgres import Postgres

        return Postgres()
    if name in ("mysql", "mariadb"):
        from retoma.store.dialects.mariadb import MariaDb

        return MariaDb()
    raise UsageError(
        f"database {name!r} is not supported",
        next_step="use sqlite:///FILE, postgresql://… or mariadb://…",
    )


def normal_url(url: str) -> str:
    """The URL with the driver that Retoma uses; raises ``UsageError`` for what is no URL."""
    scheme, separator, rest = url.partition("://")
    if not separator:
        raise UsageError(
            f"{url[:60]!r} is no database URL",
            next_step="use sqlite:///FILE, postgresql://USER@HOST/NAME or mariadb://USER@HOST/NAME",
        )
    url = f"{_SCHEMES.get(scheme, scheme)}://{rest}"
    try:
        make_url(url)
    except (ArgumentError, ValueError) as error:
        raise UsageError(f"the database URL can't be read: {error}") from None
    return url


class Store:
    """One control store, in the database of the work itself."""

    session_class: type[Session] = Session

    def __init__(
        self,
        url: str,
        *,
        engine: Engine | None = None,
        point: Point = no_point,
        clock: Clock = SYSTEM_CLOCK,
        host: Host = THIS_HOST,
    ) -> None:
        self.url = normal_url(url)
        parsed = make_url(self.url)
        backend = parsed.get_backend_name()
        if backend == "sqlite" and parsed.database in (None, "", ":memory:"):
            raise UsageError(
                "a database in memory dies with its process and can't be taken up again",
                next_step="use sqlite:///FILE",
            )
        self.dialect = dialect_for(backend, clock, host)
        self.point = point
        self.clock = clock
        self.host = host
        try:
            self.engine = engine or self.dialect.make_engine(self.url)
        except (NoSuchModuleError, ModuleNotFoundError) as error:
            raise UsageError(
                f"the driver of this database is not installed: {error}",
                next_step="pip install 'retoma[postgres]' or 'retoma[mariadb]'",
            ) from None
        self._name: str | None = None

    @property
    def shown_url(self) -> str:
        """The URL without its password."""
        return make_url(self.url).render_as_string(hide_password=True)

    def check_connection(self) -> None:
        """One connection; raises ``DatabaseUnreachable`` with the driver's reason."""
        try:
            with self.engine.connect() as connection:
                connection.execute(text("SELECT 1"))
        except DBAPIError as error:
            reason = str(error.orig).strip().splitlines()[0] if error.orig else str(error)
            raise DatabaseUnreachable(
                f"the database {self.shown_url} did not answer: {reason}",
                safe="Nothing was started or stored.",
                next_step="check the URL and the server, then repeat the same command",
            ) from None

    def control(self) -> Session:
        """A session whose every statement is its own transaction."""
        connection = self.engine.connect()
        if self.dialect.name != "sqlite":
            connection = connection.execution_options(isolation_level="AUTOCOMMIT")
        return self.session_class(connection, self.dialect, self.point, self.clock)

    def work(self) -> Session:
        """A session for work transactions."""
        connection = self.engine.connect().execution_options(retoma_work=True)
        return self.session_class(connection, self.dialect, self.point, self.clock)

    def name(self, session: Session) -> str:
        """The store's own short name, which keeps apart the sessions of several stores."""
        if self._name is None:
            self._name = str(session.fetch("store.name", "SELECT name FROM batch_store")[0][0])
        return self._name

    def session_name(self, session: Session, chunk_id: int, fence: int) -> str:
        """The name under which a chunk's work session can be found and ended."""
        return f"rt:{self.name(session)}:{chunk_id}:{fence}"

    def kind_of(self, error: BaseException) -> FailureKind:
        """The kind of a failure that came from the database or its driver."""
        return self.dialect.classify(error)

    def dispose(self) -> None:
        """Close all pooled connections."""
        self.engine.dispose()


def is_database_error(error: BaseException) -> bool:
    """Whether an error comes from the database or its driver, not from a job's own code."""
    if isinstance(error, DBAPIError):
        return True
    return type(error).__module__.split(".")[0] in ("psycopg", "pymysql", "sqlite3")


def is_disconnected(error: BaseException) -> bool:
    """Whether the connection is gone for good."""
    invalidated: Any = getattr(error, "connection_invalidated", False)
    return bool(invalidated) or isinstance(error, OperationalError)
