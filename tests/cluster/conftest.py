"""A scene on each database; whatever a test starts is gone when it ends."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.cluster.backends import MakeScene
from tests.cluster.scene import Scene
from tests.databases import BACKENDS, Servers


@pytest.fixture(params=BACKENDS)
def backend(request: pytest.FixtureRequest) -> str:
    """All three, unless the test says otherwise (``quick_on``, ``only_on``)."""
    return str(request.param)


@pytest.fixture
def make_scene(backend: str, servers: Servers, tmp_path: Path) -> Iterator[MakeScene]:
    """Builds the test's scene on a fresh database; ``make_scene(items=…, scale=…)``."""
    made: list[Scene] = []
    with servers.database(backend, tmp_path) as url:

        def make(**settings: Any) -> Scene:
            made.append(Scene(url, tmp_path, **settings))
            return made[-1]

        try:
            yield make
        finally:
            for scene in made:
                scene.close()


@pytest.fixture
def scene(make_scene: MakeScene) -> Scene:
    """A scene with its usual size."""
    return make_scene()
