"""What all readers of files share: which files, pinned how, cut where, and the names of records."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from io import BufferedReader
from itertools import islice
from pathlib import Path
from typing import Any

from retoma.errors import NeedsPerson, TransientFailure, UsageError
from retoma.model.items import Key, Measure, Page, PartitionPlan, Source, StepContext
from retoma.model.keyspace import split_evenly
from retoma.readers.lines import Lines
from retoma.readers.pinned import Known, digest_of, open_file, open_pinned, require_unchanged
from retoma.readers.record import BadRecord, Record

_BOM = b"\xef\xbb\xbf"
_UTF16 = (b"\xff\xfe", b"\xfe\xff")

Files = Callable[[StepContext], Iterable[str | os.PathLike[str]]]


@dataclass(frozen=True, kw_only=True)
class FileReader:
    """The records of the files that ``files(context)`` names when the step is planned.

    Each file is pinned by its SHA-256, one partition a file, read in strict order; with ``splits``
    by several slots at once, cut at line ends. No record may be longer than ``longest_record``
    bytes.
    """

    files: Files
    longest_record: int = 1 << 20
    splits: bool = False
    _known: Known = field(default_factory=dict, init=False, repr=False, compare=False)

    @property
    def order(self) -> str:
        """``any`` with ``splits``, else ``strict``."""
        return "any" if self.splits else "strict"

    def _head(self, lines: Lines) -> Mapping[str, Any]:
        """What the file's beginning says, kept with the partition; the lines then stand behind it."""
        return {}

    def _records(self, lines: Lines, head: Mapping[str, Any]) -> Iterator[Record | BadRecord]:
        """The records from where the lines stand; after each, ``lines.end`` is the place behind it."""
        raise AssertionError("each reader of a format says it")

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """One slice a file, with ``splits`` several; raises ``NeedsPerson`` for files not to be read."""
        paths = [str(Path(one).absolute()) for one in self.files(context)]
        if not paths:
            raise NeedsPerson(
                f"step {context.step}: there is no file to read. Nothing was done; repeat the same"
                " command when the files are there"
            )
        twice = [path for path, count in Counter(paths).items() if count > 1]
        if twice:
            raise UsageError(f"step {context.step}: the file {twice[0]} is named more than once")
        bases = Counter(Path(path).name for path in paths)
        plans: list[PartitionPlan] = []
        for path in paths:
            name = Path(path).name
            name = name if bases[name] == 1 else path
            plans += self._plan_file(path, name, max(1, partitions // len(paths)))
        return plans

    def _plan_file(self, path: str, name: str, parts: int) -> list[PartitionPlan]:
        with open_file(path) as file:
            sha256 = digest_of(file, path, self._known)
            size = os.fstat(file.fileno()).st_size
            lines = self._lines(file, name, _beginning(file, name), 0, size)
            head = dict(self._head(lines))
            require_unchanged(file, path, self._known)
        context = {"path": path, "name": name, "sha256": sha256, "bytes": size, "head": head}
        context["start"] = lines.end
        if self.splits:
            return [
                PartitionPlan(name=f"{name[-270:]} @{low}", low=low, high=high, context=context)
                for low, high in split_evenly(lines.end, size, parts)
            ]
        low = {"offset": lines.end, "line": lines.line}
        high = {"offset": size}
        return [PartitionPlan(name=name[-300:], low=low, high=high, context=context)]

    def _lines(
        self, file: BufferedReader, name: str, at: int, line: int | None, stop: int
    ) -> Lines:
        return Lines(file, name, at, line, stop, self.longest_record)

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        """Not known without reading; the hash pins the input."""
        return None

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        """Behind the next ``size`` lines; any byte will do, as a record belongs where it begins."""
        if cursor >= high:
            return None
        path, name = context.partition["path"], context.partition["name"]
        try:
            with open_file(path) as file:
                lines = self._lines(file, name, cursor, None, high)
                self._to_border(lines, context.partition)
                for _ in range(size):
                    if not lines.begin() or not lines.next():
                        break
        except Exception:  # noqa: BLE001 - the attempt at the chunk meets it, and puts it on the record
            return min(cursor + size, high)
        return min(lines.end, high) if lines.end > cursor else high

    def _to_border(self, lines: Lines, place: Mapping[str, Any]) -> None:
        if lines.end > place["start"]:
            lines.to_border()

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        """The records that begin in the chunk's range, or the next ``size`` ones.

        Raises ``SourceChanged`` if the file is not what was planned, ``PermanentFailure`` for a
        record beyond the limit.
        """
        place = context.partition
        is_range = isinstance(start, int)
        at, line = (start, None) if is_range else (start["offset"], start["line"])
        stop: int = end if is_range else place["bytes"]  # type: ignore[assignment]
        with open_pinned(place["path"], place["sha256"], self._known) as file:
            lines = self._lines(file, place["name"], at, line, stop)
            if is_range:
                self._to_border(lines, place)
            records = self._records(lines, place["head"])
            try:
                items = list(records if is_range else islice(records, size))
            except OSError as error:
                raise TransientFailure(f"{place['path']}: {error.strerror}") from error
            require_unchanged(file, place["path"], self._known)
        if is_range:
            return Page(items=items, end=end, measure=Measure(len(items)))
        reached = {"offset": lines.end, "line": lines.line}
        is_last = lines.end >= stop
        return Page(items=items, end=reached, measure=Measure(len(items)), is_last=is_last)

    def key_of(self, item: Any) -> str:
        """File and byte offset."""
        return f"{item.file} @{item.offset}"

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        """Where the record stands, and its fields if it could be read; nothing of a bad one."""
        where = {"file": item.file, "line": item.line, "offset": item.offset}
        return where if isinstance(item, BadRecord) else {**where, **item}


def _beginning(file: BufferedReader, name: str) -> int:
    """Where the text begins: behind a byte order mark."""
    file.seek(0)
    head = file.read(len(_BOM))
    if head.startswith(_UTF16):
        raise NeedsPerson(
            f"{name}: the file is UTF-16, which is not read. Convert it first: iconv -f UTF-16 -t UTF-8"
        )
    return len(_BOM) if head == _BOM else 0
