"""Files that are pinned by their hash: another content is never read on, nor read by halves."""

from __future__ import annotations

import hashlib
import os
from io import BufferedReader, FileIO
from pathlib import Path

from retoma.errors import NeedsPerson, SourceChanged, TransientFailure

_BLOCK = 1 << 18

Known = dict[str, tuple[tuple[int, ...], str]]
"""The hash of a path's content as this process has seen it, and of which state of the file."""


def open_file(path: str) -> BufferedReader:
    """Open a regular file; raises ``NeedsPerson``, or ``TransientFailure`` if the disk is in trouble."""
    try:
        if not Path(path).is_file() and Path(path).exists():  # opening a pipe would wait
            raise NeedsPerson(f"{path}: this is no regular file")
        return BufferedReader(FileIO(path), _BLOCK)
    except FileNotFoundError:
        raise NeedsPerson(f"{path}: there is no such file") from None
    except (PermissionError, NotADirectoryError) as error:
        raise NeedsPerson(f"{path}: {error.strerror}") from None
    except OSError as error:
        raise TransientFailure(f"{path}: {error.strerror}") from error


def digest_of(file: BufferedReader, path: str, known: Known) -> str:
    """The SHA-256 of an open file's content; read only if this process has not seen this state.

    Raises ``SourceChanged`` if the file changes meanwhile.
    """
    before = _signature(file)
    seen = known.get(path)
    if seen is not None and seen[0] == before:
        return seen[1]
    file.seek(0)
    try:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    except OSError as error:
        raise TransientFailure(f"{path}: {error.strerror}") from error
    if _signature(file) != before:
        raise changed(path)
    known[path] = (before, digest)
    return digest


def open_pinned(path: str, sha256: str, known: Known) -> BufferedReader:
    """Open the file whose content was planned; raises ``SourceChanged`` if it is another one now.

    A process hashes a file before its first chunk of it, and again whenever size, times or inode
    have changed since; what it reads afterwards is vouched for by ``require_unchanged``.
    """
    try:
        file = open_file(path)
    except NeedsPerson as error:
        raise SourceChanged(
            f"{error.message}, though it was there when the step was planned. What was read of it"
            " is committed, and nothing is lost: put it back as it was, and repeat the same command"
        ) from None
    try:
        if digest_of(file, path, known) != sha256:
            raise changed(path, sha256)
    except BaseException:
        file.close()
        raise
    return file


def require_unchanged(file: BufferedReader, path: str, known: Known) -> None:
    """What was just read is what was hashed; raises ``SourceChanged``."""
    if _signature(file) != known[path][0]:
        raise changed(path)


def changed(path: str, sha256: str = "") -> SourceChanged:
    """The error for a file that is not what was planned."""
    expected = f" (sha256 {sha256[:12]}… expected)" if sha256 else ""
    return SourceChanged(
        f"{path}: the file was changed after the step was planned{expected}. What was read of it is"
        " committed, and nothing is lost: restore it as it was, and repeat the same command"
    )


def _signature(file: BufferedReader) -> tuple[int, ...]:
    now = os.fstat(file.fileno())
    # The change time as well: who sets the modification time back can't set it.
    return (now.st_dev, now.st_ino, now.st_size, now.st_mtime_ns, now.st_ctime_ns)
