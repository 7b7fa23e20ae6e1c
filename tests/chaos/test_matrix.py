"""Every crash point, with each action, on each victim, in real processes: nothing lost, nothing twice.

The usual run plays a sample of 20 cells on each database; a campaign plays them all.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from sqlalchemy import inspect, text

from retoma.cli.main import main
from retoma.crash_points import CATALOGUE, Passer
from retoma.errors import NotPermitted, UsageError
from retoma.store.store import Store
from retoma.testing.chaos.cells import Action, Cell, Scene, Victim, all_cells, chosen
from retoma.testing.chaos.matrix import Matrix, open_matrix
from tests.databases import BACKENDS, Servers

NAMES = {"sqlite": "sqlite", "postgres": "postgresql", "mariadb": "mariadb"}
SAMPLE, SEED = 20, 7


def every_cell() -> Iterator[object]:
    for backend in BACKENDS:
        sample = set(chosen(NAMES[backend], (), SAMPLE, SEED))
        for cell in all_cells(NAMES[backend]):
            name = f"{backend}-{cell.point}-{cell.scene}-{cell.action}-{cell.victim}"
            marks = () if cell in sample else (pytest.mark.campaign,)
            yield pytest.param(backend, cell, id=name.replace(" ", "_"), marks=marks)


@pytest.fixture(scope="module")
def matrices(
    servers: Servers, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, Matrix]]:
    """A matrix on a database of its own, for each database that a test asks for."""
    from contextlib import ExitStack

    with ExitStack() as stack:

        class Opened(dict[str, Matrix]):
            def __missing__(self, backend: str) -> Matrix:
                folder = tmp_path_factory.mktemp(backend)
                url = stack.enter_context(servers.database(backend, folder))
                self[backend] = open_matrix(url)
                stack.callback(self[backend].store.dispose)
                return self[backend]

        yield Opened()


@pytest.mark.parametrize(("backend", "cell"), list(every_cell()))
def test_a_run_ends_as_if_nobody_had_been_hit(
    backend: str, cell: Cell, matrices: dict[str, Matrix]
) -> None:
    (result,) = replace(matrices[backend], cells=[cell]).run(lambda _: None)
    assert result.is_clean, f"{result.failure}; logs: {result.folder}"


def test_a_cell_whose_point_is_not_reached_has_failed(matrices: dict[str, Matrix]) -> None:
    cell = Cell("chunk.split", Passer.SUPERVISOR, Scene.PLAIN, Action.KILL, Victim.SUPERVISOR)
    (result,) = replace(matrices["sqlite"], cells=[cell]).run(lambda _: None)
    assert not result.is_clean
    assert "the point was not reached" in result.failure
    assert (Path(result.folder) / "program-0.log").exists()


@pytest.mark.parametrize("backend", NAMES.values())
def test_the_rules_leave_no_point_out(backend: str) -> None:
    cells = all_cells(backend)
    assert len(cells) == len(set(cells))
    hit = {cell.point for cell in cells}
    assert hit == {name for point in CATALOGUE for name in point.names(backend)}
    for point in CATALOGUE:
        for name in point.names(backend):
            found = {(c.action, c.victim) for c in cells if c.point == name}
            victims = {
                Passer.LAUNCHER: {Victim.SUPERVISOR},
                Passer.SUPERVISOR: {Victim.SUPERVISOR, Victim.WORKER},
                Passer.SLOT: set(Victim),
            }[point.passer]
            assert found == {(action, victim) for action in Action for victim in victims}


def test_a_sample_is_drawn_by_its_seed() -> None:
    first = chosen("sqlite", sample=10, seed=1)
    assert len(first) == 10
    assert first == chosen("sqlite", sample=10, seed=1)
    assert first != chosen("sqlite", sample=10, seed=2)
    assert {c.point for c in chosen("sqlite", ["chunk.cut"])} == {
        "chunk.cut",
        "chunk.cut.after",
        "chunk.cut.commit.after",
    }
    with pytest.raises(UsageError, match="no crash point on sqlite"):
        chosen("sqlite", ["work.enter"])


def answer(arguments: list[str], capfd: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as ended:
        main(["chaos", "matrix", *arguments])
    out, err = capfd.readouterr()
    return int(str(ended.value.code)), out, err


def test_the_command_tells_each_cell_and_leaves_no_table_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    arguments = ["--database", "sqlite:///chaos.db", "--point", "work.commit.after"]
    code, out, err = answer([*arguments, "--sample", "1", "--json"], capfd)
    found = json.loads(out)
    assert (code, found["chosen"], found["clean"], found["failed"]) == (0, 1, 1, 0), err
    (cell,) = found["cells"]
    assert (cell["point"], cell["result"], cell["failure"]) == ("work.commit.after", "clean", None)
    assert "1 cells on" in err
    store = Store("sqlite:///chaos.db")
    assert not [name for name in inspect(store.engine).get_table_names() if "chaos" in name]
    store.dispose()
    code, out, err = answer([*arguments[:2], "--point", "work.comit"], capfd)
    assert (code, out) == (2, "")
    assert "did you mean work.commit" in err


def test_the_command_ends_with_4_if_a_cell_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    from retoma.testing.chaos import cells

    monkeypatch.setitem(cells._SCENES, "chunk.split", (Scene.PLAIN,))  # there nobody splits
    database = f"sqlite:///{tmp_path / 'chaos.db'}"
    arguments = ["--database", database, "--point", "chunk.split", "--sample", "1"]
    code, out, _ = answer(arguments, capfd)
    assert code == 4
    assert "FAILED: the point was not reached" in out
    assert "0 of 1 cells clean, 1 failed" in out


def test_the_database_is_never_taken_from_the_environment(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RETOMA_DATABASE", "sqlite:///work.db")
    code, _, err = answer([], capfd)
    assert code == 2
    assert "--database" in err


def test_a_database_on_which_others_work_is_refused(database_url: str) -> None:
    matrix = open_matrix(database_url)
    with matrix.store.engine.begin() as connection:
        connection.execute(
            text(
                "INSERT INTO batch_run (instance_id, job_name, launch_token, state, live,"
                " parameters, fingerprint, actor, created_at)"
                " VALUES (1, 'posting', 'x', 'RUNNING', 1, '{}', 'f', 'a', CURRENT_TIMESTAMP)"
            )
        )
    matrix.store.dispose()
    with pytest.raises(NotPermitted, match="others work on"):
        open_matrix(database_url)


def test_a_database_with_a_living_worker_is_refused(database_url: str) -> None:
    from retoma.cluster.identity import this_node
    from retoma.store import nodes

    matrix = open_matrix(database_url)
    session = matrix.store.control()
    node = nodes.register(session, this_node(matrix.store.host, "idle", 1, "0"))
    with pytest.raises(NotPermitted, match="others work on"):
        open_matrix(database_url)
    nodes.change(session, node, "ACTIVE", "LEFT", "idle", "left")
    session.close()
    matrix.store.dispose()
    open_matrix(database_url).store.dispose()
