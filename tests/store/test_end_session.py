"""Ending someone else's work ends his session, and nobody else's."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from retoma.host import THIS_HOST
from retoma.store import chunks, migrate, tables
from retoma.store.dialects.contract import ZombieRemains
from retoma.store.dialects.sqlite_lock import holder_of_write_lock
from retoma.store.session import Session
from retoma.store.store import Store, is_database_error
from tests.store.scene import OWNER, rows_of, scene

HOLDER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None)
connection.execute("SELECT count(*) FROM batch_store").fetchall()
if sys.argv[2] == "lock":
    connection.execute("BEGIN IMMEDIATE")
print("ready", flush=True)
time.sleep(60)
"""


def working(store: Store, name: str) -> Session:
    work = store.work()
    work.begin("work.begin")
    store.dialect.enter_work(work, name, 30.0)
    return work


def is_alive(work: Session) -> bool:
    try:
        work.fetch("t", "SELECT 1")
    except Exception as error:
        if not is_database_error(error):
            raise
        work.discard()
        return False
    work.abandon()
    return True


def test_the_session_of_that_name_is_ended_and_no_other(server_store: Store) -> None:
    old, other = working(server_store, "rt:s:1:1"), working(server_store, "rt:s:1:2")
    similar = working(server_store, "rt:s:1:11")
    control = server_store.control()
    server_store.dialect.end_session(control, "rt:s:1:1", None)
    assert control.fetch("t", "SELECT 1")[0][0] == 1
    assert [is_alive(work) for work in (old, other, similar)] == [False, True, True]


def test_nothing_is_ended_if_nobody_bears_the_name(server_store: Store) -> None:
    work = working(server_store, "rt:s:1:1")
    control = server_store.control()
    server_store.dialect.end_session(control, "rt:s:2:1", None)
    assert is_alive(work)


def test_what_the_ended_session_had_written_is_gone_when_its_end_is_seen(
    server_store: Store,
) -> None:
    made = scene(server_store, server_store.control())
    claimed = made.cut(100)
    assert claimed is not None
    work = working(server_store, claimed.session_name)
    chunks.witness(work, claimed, OWNER)
    server_store.dialect.end_session(made.session, claimed.session_name, None)
    assert made.give_back(claimed)  # its history row would collide with the witness
    assert [row.outcome for row in rows_of(made.session, tables.attempt)] == ["GIVEN_BACK"]
    assert not is_alive(work)


def test_a_session_that_has_left_its_work_has_no_name_any_more(server_store: Store) -> None:
    work = working(server_store, "rt:s:1:1")
    work.commit("work.commit")
    server_store.dialect.leave_work(work)
    work.begin("work.begin")
    server_store.dialect.enter_work(work, "rt:s:2:1", 30.0)
    server_store.dialect.end_session(server_store.control(), "rt:s:1:1", None)
    assert is_alive(work)


def test_a_name_that_is_taken_on_mariadb_means_that_a_zombie_remains(mariadb_url: str) -> None:
    store = Store(mariadb_url)
    work, second = working(store, "rt:s:1:1"), store.work()
    second.begin("work.begin")
    with pytest.raises(ZombieRemains):
        store.dialect.enter_work(second, "rt:s:1:1", 30.0)
    second.discard()
    work.discard()
    store.dispose()


@contextmanager
def process(path: Path, what: str) -> Iterator[subprocess.Popen[str]]:
    command = [sys.executable, "-c", HOLDER, str(path), what]
    child = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        yield child
    finally:
        child.kill()
        child.wait()
        child.stdout.close()


@pytest.fixture
def sqlite_store(sqlite_url: str) -> Iterator[Store]:
    store = Store(sqlite_url)
    migrate.ensure(store)
    yield store
    store.dispose()


def test_on_sqlite_the_owner_is_ended_only_if_it_holds_the_write_lock(
    sqlite_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "retoma.db"
    control = sqlite_store.control()
    with process(path, "lock") as holder, process(path, "idle") as idle:
        assert holder_of_write_lock(THIS_HOST, str(path)) == holder.pid
        for pid in (idle.pid, None):
            sqlite_store.dialect.end_session(control, "rt:s:1:1", pid)
            assert (holder.poll(), idle.poll()) == (None, None)
        sqlite_store.dialect.end_session(control, "rt:s:1:1", holder.pid)
        assert holder.wait(timeout=5) == -signal.SIGKILL
        assert idle.poll() is None
        assert holder_of_write_lock(THIS_HOST, str(path)) is None
        control.change("t", "UPDATE batch_store SET id = 1")
    control.close()


def test_on_sqlite_nobody_ends_himself(sqlite_store: Store, tmp_path: Path) -> None:
    control, work = sqlite_store.control(), sqlite_store.work()
    work.begin("work.begin")
    own = holder_of_write_lock(THIS_HOST, str(tmp_path / "retoma.db"))
    assert own is not None
    sqlite_store.dialect.end_session(control, "rt:s:1:1", own)
    assert is_alive(work)
    work.close()
    control.close()


def test_on_sqlite_asking_for_the_holder_does_not_drop_its_lock(
    sqlite_store: Store, tmp_path: Path
) -> None:
    path = tmp_path / "retoma.db"
    work = sqlite_store.work()
    work.begin("work.begin")
    for _ in range(3):
        assert holder_of_write_lock(THIS_HOST, str(path)) is not None
    work.change("t", "UPDATE batch_store SET id = 1")
    work.commit("work.commit")
    assert holder_of_write_lock(THIS_HOST, str(path)) is None
    work.close()
