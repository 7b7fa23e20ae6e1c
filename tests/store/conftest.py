"""A store on each database, with its control tables empty."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.store.session import Session
from retoma.store.store import Store
from tests.databases import BACKENDS, Servers
from tests.store.shared import SharedDatabases, TidyStore


@pytest.fixture(scope="session")
def shared_databases(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedDatabases]:
    """The databases that the tests of this folder share, one after the other."""
    shared = SharedDatabases(servers, tmp_path_factory.mktemp("store"))
    yield shared
    shared.close()


@pytest.fixture(params=BACKENDS)
def store_url(
    request: pytest.FixtureRequest, shared_databases: SharedDatabases, tmp_path: Path
) -> Iterator[str]:
    """The URL of a database with empty control tables; the test runs once on each backend."""
    with shared_databases.url(request.param, tmp_path) as url:
        yield url


@pytest.fixture(params=[name for name in BACKENDS if name != "sqlite"])
def server_url(
    request: pytest.FixtureRequest, shared_databases: SharedDatabases, tmp_path: Path
) -> Iterator[str]:
    """The same, but only on the databases that have a server and row locks."""
    with shared_databases.url(request.param, tmp_path) as url:
        yield url


def _opened(url: str) -> Iterator[Store]:
    store = TidyStore(url)
    yield store
    store.dispose()


@pytest.fixture
def store(store_url: str) -> Iterator[Store]:
    """A store with empty control tables."""
    yield from _opened(store_url)


@pytest.fixture
def server_store(server_url: str) -> Iterator[Store]:
    """A store with empty control tables on a server."""
    yield from _opened(server_url)


@pytest.fixture
def session(store: Store) -> Iterator[Session]:
    """A control session of ``store``."""
    opened = store.control()
    yield opened
    opened.close()


@pytest.fixture
def server_session(server_store: Store) -> Iterator[Session]:
    """A control session of ``server_store``."""
    opened = server_store.control()
    yield opened
    opened.close()
