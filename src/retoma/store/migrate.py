"""Creates and upgrades the control tables by Alembic; prints the same as SQL for a DBA."""

from __future__ import annotations

import io
import os
import secrets
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, insert, inspect, make_url, select, text

from retoma.errors import DatabaseUnreachable, FailureKind, SchemaMismatch, UsageError
from retoma.store import production, tables
from retoma.store.failure import explained
from retoma.store.store import Store, dialect_for

VERSION_TABLE = "batch_schema_version"
HEAD = "0002"


def _configuration() -> Any:
    from alembic.config import Config

    configuration = Config()
    configuration.set_main_option("script_location", str(Path(__file__).parent / "migrations"))
    return configuration


def current_version(store: Store) -> str | None:
    """The revision of the control tables in the database; None if there are none."""
    store.check_connection()
    with store.engine.connect() as connection:
        if not inspect(connection).has_table(VERSION_TABLE):
            return None
        row = connection.execute(text(f"SELECT version_num FROM {VERSION_TABLE}")).first()
        return None if row is None else str(row[0])


def upgrade(store: Store) -> None:
    """Bring the control tables to this version, one process at a time."""
    from alembic import command

    options = {"retoma_work": True}
    with store.engine.connect().execution_options(**options) as connection:
        _lock(connection)
        configuration = _configuration()
        configuration.attributes["connection"] = connection
        command.upgrade(configuration, "head")
        _give_name(store, connection)
        connection.commit()
        _unlock(connection)


def _is_named(connection: Connection) -> bool:
    return connection.execute(select(tables.store_identity.c.id)).first() is not None


def _give_name(store: Store, connection: Connection) -> None:
    if not _is_named(connection):
        now = text(store.dialect.now)
        row = {"id": 1, "name": secrets.token_hex(4)}
        connection.execute(insert(tables.store_identity).values(**row, created_at=now))


def _ensure_name(store: Store) -> None:
    """Tables that a DBA made from ``offline_sql`` have no name yet: it is random, his text is not."""
    with store.engine.connect() as connection:
        if _is_named(connection):
            return
    with store.engine.connect().execution_options(retoma_work=True) as connection:
        _lock(connection)
        _give_name(store, connection)
        connection.commit()
        _unlock(connection)


def _lock(connection: Connection) -> None:
    if connection.dialect.name == "postgresql":
        connection.execute(text("SELECT pg_advisory_xact_lock(7245106)"))
    elif connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(text("SELECT GET_LOCK('retoma_migrate', 60)"))


def _unlock(connection: Connection) -> None:
    if connection.dialect.name in ("mysql", "mariadb"):
        connection.execute(text("SELECT RELEASE_LOCK('retoma_migrate')"))


def require(store: Store) -> None:
    """Raise ``UsageError`` if there are no control tables; nothing is created by looking."""
    path = make_url(store.url).database if store.dialect.name == "sqlite" else None
    if (path and not Path(path).exists()) or current_version(store) is None:
        raise UsageError(
            f"there are no control tables in {store.shown_url}",
            safe="Nothing was created.",
            next_step="check --database; 'retoma run' or 'retoma db migrate' creates them",
        )
    ensure(store)


def ensure(store: Store) -> None:
    """Create the control tables if there are none; refuse those of another version.

    Refuses a store marked as production as well, if faults are allowed in this process.
    """
    version = current_version(store)
    if version is not None and version >= production.SINCE:
        production.refuse_faults(store, os.environ)
    if version == HEAD:
        _ensure_name(store)
        return
    if version is not None and version > HEAD:
        raise SchemaMismatch(
            f"the control tables are at revision {version}, newer than this release knows ({HEAD})",
            safe="Nothing was changed.",
            next_step="use the release that made them, or a newer one",
        )
    try:
        upgrade(store)
    except Exception as error:
        if current_version(store) == HEAD:
            return  # another process was faster
        if isinstance(error, DatabaseUnreachable):
            raise
        if store.kind_of(error) is FailureKind.TRANSIENT:
            raise explained(error) or error from error
        reason = str(getattr(error, "orig", None) or error).strip().splitlines()[0]
        raise UsageError(
            f"the control tables can't be created in {store.shown_url}: {reason}",
            safe="Nothing was started.",
            next_step="give the user the right to create tables, or let a DBA apply 'retoma db sql'",
        ) from error


def offline_sql(backend: str) -> str:
    """The DDL of the control tables as text, the same each time, for the DBA who applies it himself."""
    from alembic import command

    urls = {
        "sqlite": "sqlite://",
        "postgresql": "postgresql+psycopg://",
        "mariadb": "mariadb+pymysql://",
    }
    dialect_for(backend)
    if backend not in urls:
        raise UsageError(f"no SQL for {backend!r}; use sqlite, postgresql or mariadb")
    configuration = _configuration()
    configuration.set_main_option("sqlalchemy.url", urls[backend])
    output = io.StringIO()
    configuration.output_buffer = output
    command.upgrade(configuration, "head", sql=True)
    return output.getvalue()
