"""A transaction that the database rolled back by itself is noticed, though user code hid the error."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retoma.model.status import RunState
from retoma.store import tables
from tests.engine.night import Night
from tests.engine.small_job import make_job, metadata
from tests.engine.troubles import Hooked, OtherSession, fill_the_disk, lose_a_deadlock, make_gate
from tests.store.shared import SharedDatabases


@pytest.fixture
def maria_url(shared_databases: SharedDatabases, tmp_path: Path) -> Iterator[str]:
    with shared_databases.url("mariadb", tmp_path, metadata) as url:
        yield url
        other = OtherSession(url)
        other.run("DROP TABLE IF EXISTS gate")
        other.close()


@pytest.fixture
def file_url(shared_databases: SharedDatabases, tmp_path: Path) -> Iterator[str]:
    with shared_databases.url("sqlite", tmp_path, metadata) as url:
        yield url


def swallowed_deadlock(url: str) -> tuple[Night, Hooked, list[Any]]:
    """A night whose writer hides the first deadlock, run to its end."""
    errors: list[Any] = []

    def quarrel(tx: Any) -> None:
        if not errors:
            errors.append(lose_a_deadlock(url, tx))

    writer = Hooked(after=quarrel)
    night = Night(url, make_job(writer=writer))
    make_gate(night)
    night.seed(["post", "aside", "post"])
    return night, writer, errors


def check_swallowed_deadlock(url: str) -> None:
    night, writer, errors = swallowed_deadlock(url)
    try:
        assert night.whole() is RunState.PARTIALLY_COMPLETED
        assert errors[0].orig.args[0] == 1213
        assert writer.calls == 2
        assert [key for key, _, _ in night.effects()] == ["key 1", "key 3"]
        assert night.counts()["done"] == 2
        assert night.faults() == [("2", "SET_ASIDE", "ASKED")]
        assert night.attempts() == [(1, "COMPLETED")]
    finally:
        night.close()


def test_a_swallowed_deadlock_loses_nothing(maria_url: str) -> None:
    check_swallowed_deadlock(maria_url)


def check_swallowed_full_disk(url: str) -> None:
    errors: list[Any] = []

    def fill(tx: Any) -> None:
        if not errors:
            errors.append(fill_the_disk(tx))
            assert not tx.connection.connection.driver_connection.in_transaction

    night = Night(url, make_job(writer=Hooked(after=fill)))
    try:
        night.change("CREATE TABLE ballast (body BLOB)")
        night.seed(["post", "aside", "post"])
        assert night.whole() is RunState.PARTIALLY_COMPLETED
        assert errors[0].orig.sqlite_errorname == "SQLITE_FULL"
        assert len(night.effects()) == 2
        assert night.counts()["done"] == 2
        assert night.faults() == [("2", "SET_ASIDE", "ASKED")]
        assert night.attempts() == [(1, "COMPLETED")]
    finally:
        night.close()


def test_a_swallowed_full_disk_leaves_no_completed_chunk_without_effects(file_url: str) -> None:
    check_swallowed_full_disk(file_url)


def test_what_is_written_after_a_swallowed_full_disk_is_not_kept_by_itself(file_url: str) -> None:
    errors: list[Any] = []

    def fill_and_go_on(tx: Any) -> None:
        if not errors:
            errors.append(fill_the_disk(tx))
            tx.change("t", "INSERT INTO ballast VALUES ('outside')")

    night = Night(file_url, make_job(writer=Hooked(after=fill_and_go_on)))
    try:
        night.change("CREATE TABLE ballast (body BLOB)")
        night.seed(["post"] * 3)
        assert night.whole() is RunState.COMPLETED
        assert len(night.effects()) == 3
        assert night.session.fetch("t", "SELECT count(*) FROM ballast")[0][0] == 0
    finally:
        night.close()


def test_a_deadlock_that_is_not_swallowed_is_tried_again(maria_url: str) -> None:
    errors: list[Any] = []

    def quarrel(tx: Any) -> None:
        if not errors:
            errors.append(lose_a_deadlock(maria_url, tx))
            raise errors[0]

    night = Night(maria_url, make_job(writer=Hooked(after=quarrel)))
    try:
        make_gate(night)
        night.seed(["post"] * 3)
        assert night.whole() is RunState.COMPLETED
        assert len(night.effects()) == 3
        assert night.rows(tables.item_error) == []
        assert len(night.clock.pauses) >= 1
    finally:
        night.close()
