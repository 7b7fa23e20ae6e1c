"""The stages on a server, each on a database of its own."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from retoma.testing.simulation.mariadb_stage import MariaDbStage
from retoma.testing.simulation.postgres_stage import PostgresStage
from retoma.testing.simulation.server_stage import ServerStage

STAGES: dict[str, type[ServerStage]] = {"postgres": PostgresStage, "mariadb": MariaDbStage}


@pytest.fixture(params=STAGES)
def server_url(request: pytest.FixtureRequest) -> str:
    """The URL of a fresh, empty database; the test runs once on each server."""
    return str(request.getfixturevalue(f"{request.param}_url"))


@pytest.fixture
def open_stage(server_url: str) -> Callable[[], ServerStage]:
    """Opens the stage on that database."""
    stage = next(made for name, made in STAGES.items() if server_url.startswith(name))
    return lambda: stage(server_url)
