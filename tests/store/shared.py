"""One database a backend with the control tables, emptied for each test: much faster than a new one.

SQLite gets a fresh copy of a prepared file instead, because tests kill processes that hold it.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from sqlalchemy import MetaData, create_engine, insert, text

from retoma.store import migrate, tables
from retoma.store.session import Session
from retoma.store.store import Store, normal_url
from tests.databases import Servers


class SharedDatabases:
    """Hands out the same server database again and again, empty each time."""

    def __init__(self, servers: Servers, folder: Path) -> None:
        self._servers = servers
        self._folder = folder
        self._urls: dict[str, str] = {}
        self._open = ExitStack()

    @contextmanager
    def url(self, backend: str, folder: Path, *more: MetaData) -> Iterator[str]:
        """The URL of an empty database with the control tables and those of ``more``."""
        prepared = self._prepared(backend)
        if backend == "sqlite":
            copy = folder / "retoma.db"
            shutil.copy(self._folder / "retoma.db", copy)
            url = f"sqlite:///{copy}"
        else:
            url = prepared
            _empty(url)
            _drop(url, *more)  # a test that was killed may have left its own
        _create(url, *more)
        yield url
        if backend != "sqlite":
            _drop(url, *more)

    def close(self) -> None:
        """Drop them."""
        self._open.close()

    def _prepared(self, backend: str) -> str:
        if backend not in self._urls:
            url = self._open.enter_context(self._servers.database(backend, self._folder))
            store = Store(url)
            migrate.ensure(store)
            store.dispose()
            self._urls[backend] = url
        return self._urls[backend]


class TidyStore(Store):
    """Closes every session that a test opened on it, whatever became of it."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self._sessions: list[Session] = []

    def control(self) -> Session:
        self._sessions.append(super().control())
        return self._sessions[-1]

    def work(self) -> Session:
        self._sessions.append(super().work())
        return self._sessions[-1]

    def dispose(self) -> None:
        for session in self._sessions:
            session.close()
        super().dispose()


def _empty(url: str) -> None:
    engine = create_engine(normal_url(url))
    with engine.begin() as connection:
        for table in tables.metadata.sorted_tables:
            connection.execute(table.delete())
        row = {"id": 1, "name": "t3st", "created_at": text("CURRENT_TIMESTAMP")}
        connection.execute(insert(tables.store_identity).values(**row))
    engine.dispose()


def _create(url: str, *more: MetaData) -> None:
    engine = create_engine(normal_url(url))
    for metadata in more:
        metadata.create_all(engine)
    engine.dispose()


def _drop(url: str, *more: MetaData) -> None:
    engine = create_engine(normal_url(url))
    for metadata in more:
        metadata.drop_all(engine)
    engine.dispose()
