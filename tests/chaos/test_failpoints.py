"""The catalogue names what the code passes, and faults never meet a production store."""

from __future__ import annotations

import ast
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from sqlalchemy import text

import retoma
from retoma.cluster.timing import DEFAULT_TIMING
from retoma.crash_points import CATALOGUE, EVERY_NAME, Kind
from retoma.errors import NotPermitted, UsageError
from retoma.faults import no_point, point_from
from retoma.store import migrate, production
from retoma.store.store import Store
from retoma.testing.chaos.job import JOB

ROOT = Path(__file__).parents[2]
PACKAGES = ("engine", "cluster", "store", "readers", "writers", "operations")
PASSES = {"fetch", "change", "begin", "commit", "at", "point"}
ARMED = {"RETOMA_ALLOW_FAULTS": "1", "RETOMA_FAULTS": "chunk.cut=kill@marker"}

# Name or its beginning -> why it is no crash point, though a statement passes it.
NO_CRASH_POINTS = {
    "chunk.doubt": "asked only after the answer to a COMMIT was lost; tested with a lossy wire",
    "chunk.witness_check": "asked only to word a refusal",
    "doctor": "a look of a person",
    "errors.": "a look of a person",
    "keeper.patience": "a setting of a new connection",
    "request.stop": "an operator's one insert",
    "run.get": "a look at one run",
    "run.recent": "a look of a person",
    "step.failures": "words for a step that has failed already",
    "store.": "the store's own name and mark",
    "verify.": "a look of a person",
    "why.": "a look of a person",
    "work.deadlines": "a setting of a new connection",
    "writer.chunk": "a writer of files; killed at each of its statements in tests/writers",
    "writer.segments": "a writer of files; killed at each of its statements in tests/writers",
    "writer.store": "a writer of files; killed at each of its statements in tests/writers",
}


def passed_names() -> Iterator[tuple[str, str]]:
    """(name, call) of each literal name that the code gives to the scheduling point."""
    for package in PACKAGES:
        for path in (ROOT / "src" / "retoma" / package).rglob("*.py"):
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                if not isinstance(node, ast.Call):
                    continue
                function = node.func
                called = getattr(function, "attr", getattr(function, "id", "")).lstrip("_")
                first = node.args[0] if node.args else None
                if called == "Guarded":
                    first = next(k.value for k in node.keywords if k.arg == "name")
                elif called == "fetch_runs":
                    first = node.args[1]
                elif called not in PASSES:
                    continue
                if isinstance(first, ast.Constant) and isinstance(first.value, str):
                    yield first.value, called


def test_every_point_of_the_catalogue_is_passed_by_the_code_in_the_way_it_says() -> None:
    calls: dict[str, set[str]] = {}
    for name, called in passed_names():
        calls.setdefault(name.removesuffix(".after"), set()).add(called)
    missing = [point.name for point in CATALOGUE if point.name not in calls]
    assert not missing, f"nobody passes {missing}"
    for point in CATALOGUE:
        assert ("Guarded" in calls[point.name]) == (point.kind is Kind.CONTROL), point.name


def test_every_statement_of_the_engine_is_a_crash_point_or_says_why_not() -> None:
    known = {point.name for point in CATALOGUE}
    strange = {
        name
        for name, _ in passed_names()
        if name.removesuffix(".after") not in known and not name.startswith(tuple(NO_CRASH_POINTS))
    }
    assert not strange, f"enter them in retoma.crash_points, or here with a reason: {strange}"


def test_each_point_has_one_name_and_one_line_of_words() -> None:
    names = [point.name for point in CATALOGUE]
    assert len(names) == len(set(names))
    for point in CATALOGUE:
        assert re.fullmatch(r"[a-zA-Z][^\n|]{10,80}[^.\n]", point.words), point


def test_the_page_of_the_matrix_shows_the_catalogue() -> None:
    page = (ROOT / "docs" / "reference" / "chaos.md").read_text("utf-8")
    shown = re.findall(
        r"^\| `([a-z._]+)` \| (\w+) \| (\w+) \| (.+?) \| (.+?) \|$", page, re.MULTILINE
    )
    wanted = [
        (
            p.name,
            str(p.passer),
            str(p.kind),
            "all" if len(p.databases) == 3 else ", ".join(p.databases),
            p.words,
        )
        for p in CATALOGUE
    ]
    assert shown == wanted


@pytest.mark.parametrize(
    ("faults", "words"),
    [
        ("chunk.finnish=kill@m", ("chunk.finnish", "did you mean chunk.finish")),
        ("chunk.finish.later=kill@m", ("chunk.finish.later",)),
        ("chunk.finish=crash@m", ("says no action", "chunk.finish=kill@MARKERFILE")),
        ("chunk.finish=kill", ("says no action",)),
        ("chunk.cut=kill@m,,", ("''",)),
    ],
)
def test_an_unknown_fault_is_refused(faults: str, words: tuple[str, ...]) -> None:
    with pytest.raises(UsageError) as refused:
        point_from({"RETOMA_ALLOW_FAULTS": "1", "RETOMA_FAULTS": faults})
    said = f"{refused.value} {refused.value.safe} {refused.value.next_step}"
    assert all(word in said for word in (*words, "Nothing was started"))


@pytest.mark.parametrize("flag", [{}, {"RETOMA_ALLOW_FAULTS": ""}, {"RETOMA_ALLOW_FAULTS": "yes"}])
def test_without_the_flag_nothing_is_armed(flag: Mapping[str, str]) -> None:
    assert point_from({**flag, "RETOMA_FAULTS": "chunk.cut=kill@m"}) is no_point
    assert point_from({"RETOMA_ALLOW_FAULTS": "1"}) is no_point


def test_an_armed_point_is_passed_unharmed_by_whom_it_does_not_name(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    marker.touch()  # it has happened already
    point = point_from({**ARMED, "RETOMA_FAULTS": f"chunk.cut=kill@{marker}"})
    for name in EVERY_NAME:
        point(name)


@pytest.fixture
def url(database_url: str) -> str:
    """A store marked as production."""
    store = Store(database_url)
    migrate.ensure(store)
    assert production.mark(store, is_production=True, actor="somebody")
    store.dispose()
    return database_url


def command(*arguments: str, **settings: str) -> tuple[int, str, str]:
    """Exit code, output and errors of a ``retoma`` command."""
    ended = subprocess.run(
        [sys.executable, "-m", "retoma", *arguments],
        env={**os.environ, **settings},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return ended.returncode, ended.stdout, ended.stderr


def contents(url: str) -> list[int]:
    """How many rows the tables have that a command might have written."""
    store = Store(url)
    try:
        with store.engine.connect() as connection:
            return [
                connection.execute(text(f"SELECT count(*) FROM {table}")).scalar_one()
                for table in ("batch_run", "batch_node", "batch_event", "batch_request")
            ]
    finally:
        store.dispose()


def test_a_production_store_is_not_opened_with_faults_allowed(
    url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = contents(url)
    app = ("--app", "retoma.testing.chaos.job", "--database", url)
    for arguments in (
        ("run", "chaos", "-p", "cell=a", *app),
        ("worker", *app),
        ("db", "mark", "--no-production", "--database", url),
    ):
        code, out, err = command(*arguments, **ARMED)
        assert (code, out) == (9, "")
        assert "is marked as production" in err
        assert "RETOMA_ALLOW_FAULTS" in err
        assert "Nothing was started" in err
    monkeypatch.setenv("RETOMA_ALLOW_FAULTS", "1")  # the flag alone is enough
    store = Store(url)
    with pytest.raises(NotPermitted):
        retoma.submit(store, JOB, {"cell": "a"})
    store.dispose()
    assert contents(url) == before


def test_without_the_flag_a_production_store_works_and_only_the_matrix_is_refused(url: str) -> None:
    app = ("--app", "retoma.testing.chaos.job", "--database", url)
    assert command("submit", "chaos", "-p", "cell=a", *app)[0] == 0
    code, out, err = command("chaos", "matrix", "--database", url)
    assert (code, out) == (9, "")
    assert "the crash matrix kills workers" in err


def test_the_mark_is_set_and_taken_away_and_its_history_is_kept(url: str) -> None:
    for is_marked, is_changed in ((True, False), (False, True)):
        verb = "--production" if is_marked else "--no-production"
        code, out, _ = command("db", "mark", verb, "--database", url, "--json")
        assert (code, json.loads(out)) == (0, {"production": is_marked, "changed": is_changed})
    assert command("status", "--database", url, **ARMED)[0] == 0
    store = Store(url)
    with store.engine.connect() as connection:
        statement = (
            "SELECT before_state, after_state FROM batch_event WHERE noun = 'store' ORDER BY id"
        )
        rows = connection.execute(text(statement)).fetchall()
    store.dispose()
    assert rows == [("ORDINARY", "PRODUCTION"), ("PRODUCTION", "ORDINARY")]


def test_a_slot_with_faults_allowed_ends_before_it_works_on_a_production_store(url: str) -> None:
    settings = {
        "url": url, "apps": ["retoma.testing.chaos.job"], "run_id": None, "node_id": 1, "slot": 0,
        "believe": 1e12, "supervisor": os.getpid(),
        "timing": {name: getattr(DEFAULT_TIMING, name) for name in DEFAULT_TIMING.__slots__},
    }  # fmt: skip
    slot = subprocess.Popen(
        [sys.executable, "-m", "retoma.cluster.slot"],
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, **ARMED},
        text=True,
    )
    assert slot.stdin is not None
    slot.stdin.write(json.dumps(settings) + "\n")
    slot.stdin.flush()
    assert slot.stderr is not None
    said = slot.stderr.read()
    assert slot.wait(30) not in (0, 3)
    assert "is marked as production" in said
    slot.stdin.close()
    slot.stderr.close()


def test_tables_of_the_first_release_are_brought_up_and_are_not_marked(database_url: str) -> None:
    from alembic import command as alembic

    store = Store(database_url)
    migrate.upgrade(store)
    with store.engine.connect().execution_options(retoma_work=True) as connection:
        configuration = migrate._configuration()
        configuration.attributes["connection"] = connection
        alembic.downgrade(configuration, "0001")
        connection.commit()
    assert migrate.current_version(store) == "0001"
    migrate.ensure(store)
    assert migrate.current_version(store) == migrate.HEAD
    assert not production.is_production(store)
    store.dispose()
