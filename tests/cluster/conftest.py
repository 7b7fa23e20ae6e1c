"""A scene on each database; whatever a test starts is gone when it ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.scene import Scene
from tests.databases import Servers

MakeScene = Callable[..., Scene]


def _scenes(url: str, folder: Path) -> Iterator[MakeScene]:
    made: list[Scene] = []

    def make(**settings: Any) -> Scene:
        made.append(Scene(url, folder, **settings))
        return made[-1]

    try:
        yield make
    finally:
        for scene in made:
            scene.close()


@pytest.fixture
def make_scene(database_url: str, tmp_path: Path) -> Iterator[MakeScene]:
    """Builds the test's scene; ``make_scene(items=…, scale=…)``. Once on each database."""
    yield from _scenes(database_url, tmp_path)


@pytest.fixture
def scene(make_scene: MakeScene) -> Scene:
    """A scene with its usual size."""
    return make_scene()


@pytest.fixture
def make_sqlite_scene(sqlite_url: str, tmp_path: Path) -> Iterator[MakeScene]:
    """The same on SQLite alone."""
    yield from _scenes(sqlite_url, tmp_path)


@pytest.fixture
def make_postgres_scene(postgres_url: str, tmp_path: Path) -> Iterator[MakeScene]:
    """The same on PostgreSQL alone."""
    yield from _scenes(postgres_url, tmp_path)


@pytest.fixture(params=["postgres", "mariadb"])
def make_server_scene(
    request: pytest.FixtureRequest, servers: Servers, tmp_path: Path
) -> Iterator[MakeScene]:
    """The same on each database that has a server."""
    with servers.database(request.param, tmp_path) as url:
        yield from _scenes(url, tmp_path)
