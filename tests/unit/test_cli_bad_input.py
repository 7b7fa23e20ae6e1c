"""A mistake on the command line ends with one clear message and its exit code, never a traceback."""

from __future__ import annotations

import socket
import sqlite3
import subprocess
import sys
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pytest

from retoma.cli.main import main

DAY = ("-p", "reference_date=2026-11-30")
RETOMA = Path(sys.executable).with_name("retoma")


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder of its own, with no settings from outside."""
    monkeypatch.chdir(tmp_path)
    for name in ("RETOMA_DATABASE", "RETOMA_APPS", "RETOMA_DEBUG"):
        monkeypatch.delenv(name, raising=False)
    return tmp_path


def answer(arguments: Sequence[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    """Exit code, standard output and standard error of a command."""
    with pytest.raises(SystemExit) as ended:
        main(list(arguments))
    out, err = capfd.readouterr()
    return int(str(ended.value.code)), out, err


def check(
    arguments: Sequence[str], code: int, words: Sequence[str], capfd: pytest.CaptureFixture[str]
) -> str:
    found, out, err = answer(arguments, capfd)
    assert (found, out) == (code, "")
    assert "Traceback" not in err
    assert "internal error" not in err
    assert "sqlalche.me" not in err
    messages = [line for line in err.splitlines() if line.startswith(("retoma: ", "Error: "))]
    assert len(messages) == 1
    for word in words:
        assert word in err
    return err


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("run", "nosuch"), ("'nosuch'", "posting", "--app")),
        (("submit", "nosuch"), ("'nosuch'", "Nothing was started")),
        (("run", "posting"), ("'reference_date' is missing",)),
        (("run", "posting", *DAY, "-p", "colour=red"), ("unknown parameter 'colour'",)),
        (("run", "posting", "-p", "reference_date=2026-02-30"), ("'2026-02-30'", "2026-11-30")),
        (("run", "posting", "-p", "reference_date=30/11/2026"), ("'30/11/2026'",)),
        (("run", "posting", "-p", "reference_date="), ("must be a date",)),
        (
            ("run", "posting", "-p", "reference_date=x", "-p", "colour=red"),
            ("'colour'", "must be a date"),
        ),
        (("run", "posting", "-p", "reference_date"), ("'reference_date' is no NAME=VALUE",)),
        (("run", "posting", "-p", "=2026-11-30"), ("no NAME=VALUE",)),
        (("run", "posting", *DAY, *DAY), ("given twice",)),
        (("run", "posting", *DAY, "--app", "no_such_module"), ("'no_such_module'", "PYTHONPATH")),
        (("run", "posting", *DAY, "--slots", "0"), ("--slots",)),
        (("run", "posting", *DAY, "--slots", "many"), ("--slots",)),
        (("run", "posting", *DAY, "--database", "oracle://x/y"), ("'oracle'", "postgresql://")),
        (("run", "posting", *DAY, "--database", "nonsense"), ("'nonsense'", "sqlite:///")),
        (("run", "posting", *DAY, "--database", ""), ("database URL",)),
        (("status", "--database", "postgresql://h:port/x"), ("URL",)),
        (("status",), ("no control tables", "Nothing was created", "retoma db migrate")),
        (("errors", "list", "1"), ("no control tables",)),
        (("run", "posting", *DAY, "--database", "sqlite://"), ("in memory",)),
        (("status", "abc"), ("'abc'",)),
        (("nosuch",), ("'nosuch'",)),
        (("run", "posting", "--nosuch"), ("--nosuch",)),
        (("db", "sql", "--backend", "oracle"), ("oracle",)),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else None,
)
def test_a_mistake_is_named_and_exits_with_2(
    arguments: tuple[str, ...], words: tuple[str, ...], capfd: pytest.CaptureFixture[str]
) -> None:
    check(arguments, 2, words, capfd)


@pytest.mark.parametrize("verb", ["status", "stop", "verify", "errors list", "errors export"])
def test_an_unknown_run_is_named_and_exits_with_2(
    verb: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert answer(("db", "migrate"), capfd)[0] == 0
    check((*verb.split(), "999"), 2, ("no run 999", "retoma status"), capfd)


def test_looking_creates_no_database(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check(("status", "--database", "sqlite:///typo.db"), 2, ("typo.db",), capfd)
    assert not (folder / "typo.db").exists()


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "mariadb", "mysql"])
def test_a_closed_port_exits_with_7_and_hides_the_password(
    scheme: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    url = f"{scheme}://ana:s3cret@127.0.0.1:{port}/night"
    err = check(
        ("run", "posting", *DAY, "--database", url), 7, ("did not answer", "Nothing"), capfd
    )
    assert "s3cret" not in err


def test_a_sqlite_file_that_cannot_be_made_exits_with_7(capfd: pytest.CaptureFixture[str]) -> None:
    for path in ("/proc/nowhere/x.db", "no/such/folder/x.db"):
        words = ("unable to open database file", path)
        check(("run", "posting", *DAY, "--database", f"sqlite:///{path}"), 7, words, capfd)


def test_a_folder_is_no_database(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    (folder / "folder").mkdir()
    check(("run", "posting", *DAY, "--database", "sqlite:///folder"), 7, ("folder",), capfd)


@pytest.mark.parametrize("content", [b"a text, and no database at all\n" * 50, b"\x00\xff" * 3_000])
def test_a_file_that_is_no_database_is_left_as_it_is(
    folder: Path, content: bytes, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "other.db").write_bytes(content)
    check(("status", "--database", "sqlite:///other.db"), 7, ("not a database",), capfd)
    assert (folder / "other.db").read_bytes() == content


def test_a_wrong_parameter_stores_nothing(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    check(("run", "posting", "-p", "reference_date=x"), 2, ("must be a date",), capfd)
    assert list(folder.iterdir()) == []


def test_the_installed_command_answers_the_same(folder: Path) -> None:
    command = [RETOMA, "run", "nosuch"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("retoma: no job is named 'nosuch'")


def test_control_characters_of_the_input_do_not_reach_the_terminal(
    capfd: pytest.CaptureFixture[str],
) -> None:
    err = check(("run", "no\x1b[31msuch"), 2, ("no job is named",), capfd)
    assert "\x1b" not in err


def test_a_missing_table_is_said_in_words_and_needs_a_person(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    assert answer(("db", "migrate"), capfd)[0] == 0
    with closing(sqlite3.connect(folder / "retoma.db")) as connection:
        connection.execute("DROP TABLE batch_run")
        connection.commit()
    check(("status",), 4, ("a table is missing", "batch_run"), capfd)


def test_a_module_that_breaks_while_it_is_imported_is_named_without_a_traceback(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "broken_app.py").write_text("raise RuntimeError('half an app')\n")
    monkeypatch.syspath_prepend(folder)
    command = ("run", "posting", *DAY, "--app", "broken_app")
    code, out, err = answer(command, capfd)
    assert (code, out) == (2, "")
    assert "broken_app" in err
    assert "half an app" in err
    assert "Traceback" not in err
