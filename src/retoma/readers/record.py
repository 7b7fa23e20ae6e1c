"""One record of a file, as a job's function is given it: readable, or bad with its reason."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

from retoma.errors import InvalidItem


class Record(dict[str, Any]):
    """A record of a file: its fields by name, in the order of the file.

    ``file`` is the file's name, ``offset`` the byte at which the record begins, ``line`` its first
    line counted from 1 (None where a reader with ``splits`` has begun in the middle of the file).
    """

    __slots__ = ("file", "line", "offset")
    file: str
    line: int | None
    offset: int


class BadRecord(Mapping[str, Any]):
    """A record that can't be read. Whoever looks at its fields is stopped by ``InvalidItem``.

    So a job's function needs no code for it: its first look at a field sets the record aside with
    the reason. ``file``, ``offset``, ``line``, ``reason`` and ``message`` may be looked at. Nothing
    of the record's content is kept.
    """

    __slots__ = ("file", "line", "message", "offset", "reason")

    def __init__(self, file: str, offset: int, line: int | None, reason: str, message: str) -> None:
        self.file = file
        self.offset = offset
        self.line = line
        self.reason = reason
        self.message = message

    def __str__(self) -> str:
        return f"{place(self.file, self.line, self.offset)}: {self.message}"

    __repr__ = __str__

    def _refuse(self) -> NoReturn:
        raise InvalidItem(self.reason, str(self))

    def __getitem__(self, name: str) -> Any:
        self._refuse()

    def __iter__(self) -> Iterator[str]:
        self._refuse()

    def __len__(self) -> int:  # noqa: PLE0303 - nobody is told a length
        self._refuse()

    def __eq__(self, other: object) -> bool:
        return self is other

    def __hash__(self) -> int:
        return id(self)


def place(file: str, line: int | None, offset: int) -> str:
    """Where something stands in a file, in words."""
    return f"{file}, byte {offset}" if line is None else f"{file}, line {line}, byte {offset}"
