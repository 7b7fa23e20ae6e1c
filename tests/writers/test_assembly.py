"""What is put together is what was committed; everything else is refused, and nothing published."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from retoma import ItemStep, TaskStep
from retoma.operations.commands import prepare
from retoma.testing import Killed, KilledAt, run_in_process
from retoma.testing.one_slot import OneSlot
from tests.writers.export import HEAD, expected, export, write_input, writer


@pytest.fixture
def target(tmp_path: Path) -> Path:
    (tmp_path / "out").mkdir()
    return tmp_path / "out" / "rows.csv"


def url_in(folder: Path) -> str:
    return f"sqlite:///{folder / 'work.db'}"


def segments_of(target: Path) -> list[Path]:
    return sorted(target.parent.glob(f".{target.name}.*.parts/*"))


def shorten(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def lengthen(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


def change(path: Path) -> None:
    path.write_bytes(path.read_bytes().replace(b"row", b"own"))


DAMAGES: dict[Callable[[Path], None], str] = {
    Path.unlink: "is not there",
    shorten: "is shorter",
    lengthen: "is longer",
    change: "is not what was written",
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_segment_is_not_published(
    tmp_path: Path, target: Path, damage: Callable[[Path], None]
) -> None:
    job = export(write_input(tmp_path), target)
    with pytest.raises(Killed):
        run_in_process(job, url_in(tmp_path), point=KilledAt("writer.segments"))
    first = segments_of(target)[0]
    whole = first.read_bytes()
    damage(first)
    ended = run_in_process(job, url_in(tmp_path))
    assert ended.state == "FAILED"
    assert DAMAGES[damage] in str(ended.failure)
    assert not target.exists()
    first.write_bytes(whole)
    assert run_in_process(job, url_in(tmp_path)).state == "PARTIALLY_COMPLETED"
    assert target.read_bytes().decode() == expected()


@pytest.mark.parametrize("other", ["", HEAD, "x" * len(expected()), expected() + "x"])
def test_another_file_of_that_name_is_not_touched(tmp_path: Path, target: Path, other: str) -> None:
    job = export(write_input(tmp_path), target)
    target.write_bytes(other.encode())
    ended = run_in_process(job, url_in(tmp_path))
    assert ended.state == "FAILED"
    assert "is there already, with other content" in str(ended.failure)
    assert target.read_bytes().decode() == other
    target.unlink()
    assert run_in_process(job, url_in(tmp_path)).state == "PARTIALLY_COMPLETED"
    assert target.read_bytes().decode() == expected()


def test_without_rows_the_file_has_its_head(tmp_path: Path, target: Path) -> None:
    job = export(write_input(tmp_path, [0, 0]), target)
    assert run_in_process(job, url_in(tmp_path)).state == "PARTIALLY_COMPLETED"
    assert target.read_bytes().decode() == HEAD
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_is_not_there_and_a_path_that_is_not_whole_are_refused(
    tmp_path: Path,
) -> None:
    source = write_input(tmp_path)
    ended = run_in_process(export(source, tmp_path / "no" / "x.csv"), url_in(tmp_path))
    assert "its folder is not there" in str(ended.failure)
    (tmp_path / "b").mkdir()
    ended = run_in_process(export(source, Path("x.csv")), url_in(tmp_path / "b"))
    assert "name it by its whole path" in str(ended.failure)


def test_two_steps_do_not_write_one_file(tmp_path: Path, target: Path) -> None:
    job = export(write_input(tmp_path), target)
    first, last = job.steps
    assert isinstance(first, ItemStep)
    again = replace(first, name="again", writer=writer(target))
    ended = run_in_process(replace(job, steps=(first, again, last)), url_in(tmp_path))
    assert "the steps again and write write to the same file" in str(ended.failure)
    assert not target.exists()


def test_a_full_disk_is_no_loss(
    tmp_path: Path, target: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    job = export(write_input(tmp_path), target)

    def full(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        ended = run_in_process(job, url_in(tmp_path))
    assert ended.state == "FAILED"
    assert "No space left on device" in str(ended.failure)
    assert segments_of(target) == []
    assert run_in_process(job, url_in(tmp_path)).state == "PARTIALLY_COMPLETED"
    assert target.read_bytes().decode() == expected()


def test_the_order_is_that_of_the_input_though_chunks_were_split(
    tmp_path: Path, target: Path
) -> None:
    """A chunk whose workers die again and again is halved: its halves are younger than the rest."""
    numbers = list(range(1, 13))
    job = export(write_input(tmp_path, numbers), target, chunk_size=4, splits=True, partitions=1)
    here = OneSlot(url_in(tmp_path), job)
    prepare(here.store, job)
    here.launch({})
    here.advance()
    assert here.find() is not None  # the first chunk, and its worker dies
    while here.work_one() is not None:  # the others are done meanwhile
        pass
    for _ in range(2):
        here.take_over_all()
        here.session.change("test.time", "UPDATE batch_chunk SET retry_at = NULL")
        assert here.find() is not None
    here.take_over_all()
    states = here.session.fetch("test", "SELECT state FROM batch_chunk ORDER BY id")
    assert states[0][0] == "SPLIT"
    assert here.to_end() == "PARTIALLY_COMPLETED"
    here.close()
    assert target.read_bytes().decode() == expected(numbers)


def test_the_assembling_step_may_be_asked_in_another_process(tmp_path: Path, target: Path) -> None:
    source = write_input(tmp_path)
    job = export(source, target)
    with pytest.raises(Killed):
        run_in_process(job, url_in(tmp_path), point=KilledAt("writer.segments"))
    steps = (job.steps[0], TaskStep(name="assemble", work=writer(target).assemble))
    ended = run_in_process(replace(export(source, target), steps=steps), url_in(tmp_path))
    assert ended.state == "PARTIALLY_COMPLETED"
    assert target.read_bytes().decode() == expected()
