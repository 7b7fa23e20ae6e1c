"""Puts the segments of a file together, repeatably: it may die after each line and be done again."""

from __future__ import annotations

import hashlib
import os
import secrets
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

from retoma.errors import NeedsPerson, UsageError
from retoma.model.items import StepContext, Transaction, Written
from retoma.writers.segments import (
    Segment,
    committed,
    disk,
    folder_of,
    sync_folder,
    write_file,
)

_BLOCK = 1 << 20
_WHOLE = "whole"


def assemble(tx: Transaction, context: StepContext, path: Path, head: bytes) -> Written:
    """The file, once and whole: ``head``, and each committed segment in the order of the input.

    | dies | what the successor finds | what it does |
    |---|---|---|
    | before ``whole`` has its name | all segments, a torn file of another name | builds it again |
    | before the segments are removed | ``whole`` | goes on |
    | before the file has its name | ``whole``, no segments | goes on |
    | before the commit | the file | compares it with the rows, and is done |

    The one rename that publishes takes ``whole`` away. So nobody publishes twice: not even a process
    that was frozen, and comes back when the file has long been fetched.
    """
    segments = committed(tx, context, path)
    steps = sorted({one.step_name for one in segments})
    if len(steps) > 1:
        raise UsageError(f"{path}: the steps {' and '.join(steps)} write to the same file")
    folder = folder_of(tx, context, path)
    with disk(path):
        if path.exists():
            _require_same(path, head, segments)
        else:
            _publish(folder, path, head, segments)
    shutil.rmtree(folder, ignore_errors=True)
    return Written(done=sum(one.row_count for one in segments))


def _publish(folder: Path, path: Path, head: bytes, segments: Sequence[Segment]) -> None:
    whole = folder / _WHOLE
    folder.mkdir(exist_ok=True)
    if not whole.exists():
        draft = folder / f"draft-{secrets.token_hex(16)}"
        write_file(draft, _blocks(folder, path, head, segments))
        draft.rename(whole)
        sync_folder(folder)
    for other in folder.iterdir():
        if other != whole:
            other.unlink(missing_ok=True)
    # Where another process assembles as well, one of the two finds nothing to rename, and tries again.
    whole.rename(path)
    sync_folder(path.parent)


def _blocks(folder: Path, path: Path, head: bytes, segments: Sequence[Segment]) -> Iterator[bytes]:
    """The content, each segment proved against its row."""
    yield head
    for one in segments:
        try:
            file = (folder / one.token).open("rb")
        except FileNotFoundError:
            raise _lost(path, one, "is not there") from None
        with file:
            yield from _proved(file, one, path)
            if file.read(1):
                raise _lost(path, one, "is longer than it was")


def _proved(file: BinaryIO, one: Segment, path: Path) -> Iterator[bytes]:
    """The next bytes of a file, which must be this segment's."""
    digest = hashlib.sha256()
    left = one.size_bytes
    while left:
        block = file.read(min(_BLOCK, left))
        if not block:
            raise _lost(path, one, "is shorter than it was")
        digest.update(block)
        left -= len(block)
        yield block
    if digest.hexdigest() != one.sha256:
        raise _lost(path, one, "is not what was written")


def _require_same(path: Path, head: bytes, segments: Sequence[Segment]) -> None:
    """Raise ``NeedsPerson`` unless the file that exists is the one that would be made."""
    expected = len(head) + sum(one.size_bytes for one in segments)
    with path.open("rb") as file:
        is_same = os.fstat(file.fileno()).st_size == expected and file.read(len(head)) == head
        if is_same:
            try:
                for one in segments:
                    for _ in _proved(file, one, path):
                        pass
            except NeedsPerson:
                is_same = False
    if not is_same:
        raise NeedsPerson(
            f"{path}: a file of that name is there already, with other content. It was not touched,"
            " and nothing is lost: move it away and repeat the same command"
        )


def _lost(path: Path, one: Segment, what: str) -> NeedsPerson:
    return NeedsPerson(
        f"{path}: the segment {one.token} with {one.row_count} committed rows {what}. Nothing was"
        " published by this attempt. Either the folder of its segments was changed, or it lies on"
        " another machine, or the file was made before, and moved before that was on the record:"
        " put back what was moved, and repeat the same command"
    )
