"""Tests of the tests: with a guard taken out of the finish, the promised behaviour goes wrong."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.errors import FailureKind
from retoma.store import chunks, tables
from retoma.testing import Killed, KilledAt
from retoma.testing.history import Broken, check
from tests.databases import BACKENDS
from tests.engine.night import Night
from tests.engine.small_job import make_job, metadata
from tests.engine.test_witness import check_swallowed_deadlock
from tests.engine.troubles import OtherSession
from tests.store.shared import SharedDatabases

FENCE = " AND fence = :fence AND token = :token"
WITNESS = " AND EXISTS (SELECT 1 FROM batch_attempt WHERE id = :witness AND chunk_id = :chunk_id)"


@pytest.fixture(params=BACKENDS)
def url(
    request: pytest.FixtureRequest, shared_databases: SharedDatabases, tmp_path: Path
) -> Iterator[str]:
    with shared_databases.url(request.param, tmp_path, metadata) as found:
        yield found


def take_out(monkeypatch: pytest.MonkeyPatch, guard: str) -> None:
    assert guard in chunks._FINISH
    monkeypatch.setattr(chunks, "_FINISH", chunks._FINISH.replace(guard, ""))


def check_late_owner_is_refused(url: str) -> None:
    """Its history row removed, only the finish stands between a late owner and the commit."""
    old, new = Night(url, make_job()), Night(url, make_job(), slot=1)
    try:
        old.seed(["post"] * 3)
        old.launch()
        old.advance()
        found = old.find()
        assert found is not None
        new.take_over_all()
        new.change("DELETE FROM batch_attempt")
        new.run_id = old.run_id
        assert new.find() is not None
        assert old.attempt(*found).kind is FailureKind.LOST_RACE
        assert old.effects() == []
        assert old.rows(tables.chunk)[0].state == "RUNNING"
    finally:
        old.close()
        new.close()


def test_a_late_owner_is_refused(url: str) -> None:
    check_late_owner_is_refused(url)


def test_without_the_fence_a_late_owner_would_commit(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, FENCE)
    with pytest.raises(AssertionError):
        check_late_owner_is_refused(url)


def test_the_history_shows_a_late_owner_that_committed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, FENCE)
    old = Night(url, make_job())
    new = Night(url, make_job(), slot=1, point=KilledAt("chunk.processed"))
    try:
        old.seed(["post"] * 3)
        new.run_id = old.launch().run_id
        old.advance()
        late = old.find()
        new.take_over_all()
        new.change("DELETE FROM batch_attempt")
        taken = new.find()
        assert late is not None
        assert taken is not None
        with pytest.raises(Killed):
            new.attempt(*taken)
        assert old.attempt(*late).kind is None
        found = [each.broken for each in check(new.told + old.told, old.store, old.run_id)]
        assert found == [Broken.OK_AFTER_HIGHER_FENCE, Broken.NEVER_ENDED]
    finally:
        old.close()
        new.close()


def test_without_the_witness_a_swallowed_deadlock_would_lose_items(
    shared_databases: SharedDatabases, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    take_out(monkeypatch, WITNESS)
    with shared_databases.url("mariadb", tmp_path, metadata) as url:
        try:
            with pytest.raises(AssertionError):
                check_swallowed_deadlock(url)
        finally:
            other = OtherSession(url)
            other.run("DROP TABLE IF EXISTS gate")
            other.close()
