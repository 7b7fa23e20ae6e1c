"""A file is pinned: changed, cut short, exchanged or gone, it is refused, and nothing is lost."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from retoma import JsonLinesReader
from retoma.errors import NeedsPerson, SourceChanged, UsageError
from tests.readers.reading import context_of, plans_of, write

LINES = "".join(f'{{"n": {n}}}\n' for n in range(10))


def reader(*paths: Path | str, **more: Any) -> JsonLinesReader:
    return JsonLinesReader(files=lambda context: paths, **more)


def append(path: Path) -> None:
    path.write_text(LINES + "x")


def cut_short(path: Path) -> None:
    os.truncate(path, 50)


def exchange(path: Path) -> None:
    other = write(path.parent, LINES.replace("5", "6"), "other")
    other.replace(path)


def change_in_place_and_hide_it(path: Path) -> None:
    before = path.stat()
    with path.open("r+") as file:
        file.write("{ ")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def remove(path: Path) -> None:
    path.unlink()


def make_a_folder_of_it(path: Path) -> None:
    path.unlink()
    path.mkdir()


CHANGES = [append, cut_short, exchange, change_in_place_and_hide_it, remove, make_a_folder_of_it]


@pytest.mark.parametrize("is_same_process", [True, False])
@pytest.mark.parametrize("change", CHANGES)
def test_another_content_is_refused_until_it_is_restored(
    tmp_path: Path, change: Callable[[Path], None], is_same_process: bool
) -> None:
    path = write(tmp_path, LINES)
    first = reader(path)
    (plan,) = plans_of(first)
    context = context_of(plan)
    page = first.read(None, context, plan.low, None, 3)
    change(path)
    second = first if is_same_process else reader(path)
    with pytest.raises(SourceChanged, match=r"in\.txt: .*nothing is lost"):
        second.read(None, context, page.end, None, 3)
    if path.is_dir():
        path.rmdir()
    write(tmp_path, LINES)
    rest = second.read(None, context, page.end, None, 100)
    assert [item["n"] for item in rest.items] == list(range(3, 10))


class Meddling(JsonLinesReader):
    """Somebody changes the file while a chunk is read."""

    def _records(self, lines: Any, head: Any) -> Any:
        yield from super()._records(lines, head)
        path = self.files(context_of())[0]  # type: ignore[index]
        append(path)


def test_a_change_while_a_chunk_is_read_is_seen(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    one = Meddling(files=lambda context: [path])
    (plan,) = plans_of(one)
    with pytest.raises(SourceChanged):
        one.read(None, context_of(plan), plan.low, None, 100)


def test_a_file_of_the_same_content_may_take_its_place(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    one = reader(path)
    (plan,) = plans_of(one)
    path.unlink()
    write(tmp_path, LINES)
    assert len(one.read(None, context_of(plan), plan.low, None, 100).items) == 10


def test_what_was_hashed_is_not_hashed_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import hashlib

    path = write(tmp_path, LINES)
    one = reader(path)
    (plan,) = plans_of(one)
    monkeypatch.delattr(hashlib, "file_digest")
    assert len(one.read(None, context_of(plan), plan.low, None, 2).items) == 2


def test_files_that_can_not_be_planned_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    os.mkfifo(tmp_path / "pipe")
    for wrong in ("missing", ".", "pipe", "in.txt/below"):
        with pytest.raises(NeedsPerson):
            plans_of(reader(path, tmp_path / wrong))
    with pytest.raises(NeedsPerson, match="no file to read"):
        plans_of(reader())
    with pytest.raises(UsageError, match="more than once"):
        plans_of(reader(path, str(path)))


def test_a_cut_is_found_even_while_the_file_is_away(tmp_path: Path) -> None:
    path = write(tmp_path, LINES)
    one = reader(path, splits=True)
    (plan,) = plans_of(one)
    context = context_of(plan)
    path.unlink()
    end = one.next_end(None, context, plan.low, plan.high, 3)
    assert end == 3  # little, so that a chunk that waits for the file's return is no whole file
    with pytest.raises(SourceChanged):
        one.read(None, context, plan.low, end, 3)
    write(tmp_path, LINES)
    assert len(one.read(None, context, plan.low, end, 3).items) == 1
