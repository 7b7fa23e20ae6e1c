"""Killed at any statement, at any act on the disk: the file has each committed row once, in order."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text

from retoma.testing import Killed, KilledAt, crash_everywhere, run_in_process
from retoma.writers import assembly, segments
from tests.databases import Servers
from tests.store.shared import SharedDatabases
from tests.writers.export import expected, export, write_input

FEW = [1, 2, -3, 4]


def content(target: Path) -> str:
    return target.read_bytes().decode()


def take(target: Path) -> str:
    """What was published; removed, so that the next life starts anew. Nothing else may be left."""
    assert list(target.parent.iterdir()) == [target]
    found = content(target)
    target.unlink()
    return found


def result(target: Path) -> Callable[[Any], Any]:
    def answer(connection: Any) -> Any:
        rows = connection.execute(text("SELECT sum(row_count), count(*) FROM file_segment")).one()
        errors = connection.execute(
            text("SELECT item_key, reason FROM batch_item_error ORDER BY 1")
        )
        return take(target), tuple(rows), [tuple(row) for row in errors]

    return answer


@pytest.mark.parametrize("splits", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_a_death_at_any_statement_changes_nothing(tmp_path: Path, splits: bool) -> None:
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    job = export(write_input(tmp_path, FEW), target, splits=splits, partitions=2, chunk_size=3)
    report = crash_everywhere(job, tmp_path, result=result(target))
    assert report.state == "PARTIALLY_COMPLETED"
    assert {"writer.chunk", "writer.segments", "work.commit"} <= set(report.points)
    assert report.deaths > 80


@pytest.fixture
def shared_databases(servers: Servers, tmp_path: Path) -> Iterator[SharedDatabases]:
    shared = SharedDatabases(servers, tmp_path)
    yield shared
    shared.close()


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", ["postgres", "mariadb"])
def test_a_death_at_any_statement_changes_nothing_on_a_server(
    shared_databases: SharedDatabases, tmp_path: Path, backend: str
) -> None:
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    job = export(write_input(tmp_path, FEW), target, chunk_size=3)
    with ExitStack() as last:

        def emptied() -> str:
            last.close()
            return last.enter_context(shared_databases.url(backend, tmp_path, segments.metadata))

        assert crash_everywhere(job, emptied, result=result(target)).deaths > 40


class DiesOnTheDisk:
    """Kills before, or after, the n-th act on the disk."""

    def __init__(self, number: int, *, after: bool) -> None:
        self.left, self.after, self.is_dead = number, after, False

    def around(self, act: Callable[..., Any]) -> Callable[..., Any]:
        def acting(*given: Any, **named: Any) -> Any:
            if self.is_dead:
                raise Killed("dead")
            self.left -= 1
            if self.left == 0 and not self.after:
                self.is_dead = True
                if act.__name__ == "write_file":  # in the middle of it
                    act(given[0], [next(iter(given[1]))[:5]])
                raise Killed("before")
            found = act(*given, **named)
            if self.left == 0:
                self.is_dead = True
                raise Killed("after")
            return found

        return acting

    def install(self, patch: pytest.MonkeyPatch) -> None:
        for module in (segments, assembly):
            for name in ("write_file", "sync_folder"):
                patch.setattr(module, name, self.around(getattr(module, name)))
        for name in ("rename", "unlink", "mkdir"):
            patch.setattr(Path, name, self.around(getattr(Path, name)))
        patch.setattr(assembly.shutil, "rmtree", self.around(assembly.shutil.rmtree))


@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_act_on_the_disk_changes_nothing(tmp_path: Path, after: bool) -> None:
    source = write_input(tmp_path)
    for number in range(1, 100):
        folder = tmp_path / f"{number}"
        (folder / "out").mkdir(parents=True)
        target = folder / "out" / "rows.csv"
        url = f"sqlite:///{folder / 'work.db'}"
        job = export(source, target)
        death = DiesOnTheDisk(number, after=after)
        with pytest.MonkeyPatch.context() as patch:
            death.install(patch)
            if death.left > 0:
                with suppress(Killed):
                    run_in_process(job, url)
        ended = run_in_process(job, url)
        assert (ended.state, take(target)) == ("PARTIALLY_COMPLETED", expected()), number
        if not death.is_dead:
            break
    assert number > 20


@pytest.mark.parametrize("point", ["work.commit", "work.commit.after"])
def test_a_file_that_was_fetched_is_not_published_again(tmp_path: Path, point: str) -> None:
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    url = f"sqlite:///{tmp_path / 'work.db'}"
    job = export(write_input(tmp_path), target)
    chunks = 4
    with pytest.raises(Killed):
        run_in_process(job, url, point=KilledAt(point, passing=chunks + 1))
    fetched = take(target)
    assert fetched == expected()
    ended = run_in_process(job, url)
    assert not target.exists()
    if point == "work.commit":  # nobody knows that it was published: a person must look
        assert ended.state == "FAILED"
        assert "the file was made before, and moved" in str(ended.failure)
        target.write_bytes(fetched.encode())
        ended = run_in_process(job, url)
    assert ended.state == "PARTIALLY_COMPLETED"


def test_a_file_that_was_fetched_at_once_is_not_published_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    url = f"sqlite:///{tmp_path / 'work.db'}"
    job = export(write_input(tmp_path), target)

    def die(*given: Any, **named: Any) -> None:
        raise Killed("right after the file has its name")

    with monkeypatch.context() as patch:
        patch.setattr(assembly.shutil, "rmtree", die)
        with pytest.raises(Killed):
            run_in_process(job, url)
    assert content(target) == expected()
    target.unlink()
    assert run_in_process(job, url).state == "FAILED"
    assert not target.exists()


def test_what_is_committed_is_on_the_disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    happened: list[tuple[str, str]] = []
    fsync = os.fsync

    def told(descriptor: int) -> None:
        fsync(descriptor)
        happened.append(("disk", Path(f"/proc/self/fd/{descriptor}").resolve().name))

    def point(name: str) -> None:
        happened.append(("statement", name))

    monkeypatch.setattr(os, "fsync", told)
    job = export(write_input(tmp_path), target, chunk_size=100)
    run_in_process(job, f"sqlite:///{tmp_path / 'work.db'}", point=point)
    first, second = (n for n, what in enumerate(happened) if what == ("statement", "work.commit"))
    segment, folder, parent = (name for kind, name in happened[:first] if kind == "disk")
    assert (len(segment), folder[:10], parent) == (32, ".rows.csv.", "out")
    draft, inner, outer = (name for kind, name in happened[first:second] if kind == "disk")
    assert (draft[:6], inner, outer) == ("draft-", folder, "out")


def test_a_late_process_harms_nobody(tmp_path: Path) -> None:
    """It has written its segment when it is taken for dead; the successor does all, and it wakes."""
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    url = f"sqlite:///{tmp_path / 'work.db'}"
    source = write_input(tmp_path)
    with pytest.raises(Killed):
        run_in_process(export(source, target), url, point=KilledAt("chunk.finish", passing=2))
    left = list(target.parent.glob(".rows.csv.*/*"))
    assert len(left) == 2  # one committed, one of the dead
    ended = run_in_process(export(source, target), url)
    assert (ended.state, take(target)) == ("PARTIALLY_COMPLETED", expected())


def test_an_awakened_assembler_publishes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stops before it renames; another one publishes meanwhile, and the file is fetched."""
    target = tmp_path / "out" / "rows.csv"
    target.parent.mkdir()
    url = f"sqlite:///{tmp_path / 'work.db'}"
    job = export(write_input(tmp_path), target)
    rename = Path.rename
    fetched: list[str] = []

    def late(self: Path, to: Path) -> Path:
        if to == target and not fetched:
            rename(self, to)
            fetched.append(content(target))
            target.unlink()
        return rename(self, to)

    monkeypatch.setattr(Path, "rename", late)
    ended = run_in_process(job, url)
    assert fetched == [expected()]
    assert ended.state == "FAILED"
    assert not target.exists()
