"""A night on each database: control tables and the small job's own, all empty."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from retoma.model.job import Job
from tests.databases import BACKENDS, Servers
from tests.engine.night import Night
from tests.engine.small_job import make_job, metadata
from tests.store.shared import SharedDatabases

Nights = Callable[..., Night]


@pytest.fixture(scope="session")
def shared_databases(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SharedDatabases]:
    """The databases that the tests of this folder share, one after the other."""
    shared = SharedDatabases(servers, tmp_path_factory.mktemp("engine"))
    yield shared
    shared.close()


@pytest.fixture(params=BACKENDS)
def night_url(
    request: pytest.FixtureRequest, shared_databases: SharedDatabases, tmp_path: Path
) -> Iterator[str]:
    """The URL of a database with empty tables; the test runs once on each backend."""
    with shared_databases.url(request.param, tmp_path, metadata) as url:
        yield url


@pytest.fixture
def night(night_url: str) -> Iterator[Nights]:
    """Makes nights on that database, with the small job unless another is given."""
    made: list[Night] = []

    def make(job: Job | None = None, **more: Any) -> Night:
        made.append(Night(night_url, job or make_job(), **more))
        return made[-1]

    yield make
    for each in made:
        each.close()
