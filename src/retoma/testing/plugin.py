"""The pytest plugin: loaded in every test run of whoever has Retoma installed, so it loads nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from retoma.model.job import Job
    from retoma.store.store import Store
    from retoma.testing.clock import FakeClock
    from retoma.testing.crash import CrashReport


@pytest.fixture
def retoma_clock() -> FakeClock:
    """A clock that moves only when the test winds it."""
    from retoma.testing.clock import FakeClock

    return FakeClock()


@pytest.fixture
def retoma_store(retoma_clock: FakeClock, tmp_path: Path) -> Iterator[Store]:
    """A store with its control tables in a new SQLite file, whose time is ``retoma_clock``."""
    from retoma.store import migrate
    from retoma.store.store import Store

    store = Store(f"sqlite:///{tmp_path / 'retoma.db'}", clock=retoma_clock)
    migrate.ensure(store)
    yield store
    store.dispose()


@pytest.fixture
def retoma_crash_everywhere(tmp_path: Path) -> Callable[..., CrashReport]:
    """``retoma.testing.crash_everywhere`` on SQLite files in the test's own folder.

    Call it with the job, its parameters, ``result=`` and ``seed=``.
    """
    from retoma.testing.crash import crash_everywhere

    def crash(job: Job, parameters: Mapping[str, Any] | None = None, **more: Any) -> CrashReport:
        return crash_everywhere(job, tmp_path, parameters, **more)

    return crash
