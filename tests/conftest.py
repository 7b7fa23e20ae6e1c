"""What every test may ask for. The databases themselves: tests/databases.py."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from tests.databases import BACKENDS, Servers

# The gate gives the same answer twice; a campaign (RETOMA_TEST_PROFILE=campaign) looks for news.
settings.register_profile("gate", derandomize=True, deadline=None)
settings.register_profile("campaign", max_examples=1000, deadline=None)
settings.load_profile(os.environ.get("RETOMA_TEST_PROFILE", "gate"))


@pytest.fixture(scope="session")
def servers() -> Iterator[Servers]:
    """The database servers of this test process; each one starts at its first use."""
    servers = Servers()
    try:
        yield servers
    finally:
        servers.stop()


@pytest.fixture(params=BACKENDS)
def database_url(request: pytest.FixtureRequest, servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty database; the test runs once on each backend."""
    with servers.database(request.param, tmp_path) as url:
        yield url


@pytest.fixture
def sqlite_url(servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh SQLite file."""
    with servers.database("sqlite", tmp_path) as url:
        yield url


@pytest.fixture
def postgres_url(servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty PostgreSQL database."""
    with servers.database("postgres", tmp_path) as url:
        yield url


@pytest.fixture
def mariadb_url(servers: Servers, tmp_path: Path) -> Iterator[str]:
    """The URL of a fresh, empty MariaDB database."""
    with servers.database("mariadb", tmp_path) as url:
        yield url
