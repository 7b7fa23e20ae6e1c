"""Reads the lines of the run's files in strict order, restartable at every byte offset."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sqlalchemy import select, tuple_

from retoma import Measure, Page, PartitionPlan, StepContext
from retoma.reconciliation.checkpoint import from_key, to_key
from retoma.reconciliation.reading import read_records
from retoma.reconciliation.statement import (
    BadRecord,
    EmptyRecord,
    Note,
    Record,
    StatementError,
    StatementStart,
)
from retoma.reconciliation.statement_files import (
    InputFile,
    RefusedFile,
    files_of,
    open_pinned,
)
from retoma.reconciliation.statement_tables import recon_file


@dataclass(frozen=True, slots=True)
class Sighting:
    """A record where it was seen: the item of the ingesting step."""

    side: str
    file_name: str
    record: Record


def stored_files(source: Any, context: StepContext) -> dict[tuple[str, str], Any]:
    """The rows of the run's files by side and hash."""
    keys = [(one.side, one.sha256) for one in files_of(context.parameters)]
    table = recon_file
    statement = select(
        table.c.id, table.c.side, table.c.sha256, table.c.proof, table.c.proof_reason
    ).where(tuple_(table.c.side, table.c.sha256).in_(keys))
    return {(row.side, row.sha256): row for row in source.fetch("recon.files", statement)}


@dataclass(slots=True)
class StatementReader:
    """The records of each file, one partition a file, in the order of the bytes.

    A file is pinned by its hash. A process hashes it before it reads its first chunk of it, and
    again whenever size, time or inode of the file have changed since: so the first chunk and every
    takeover are checked, and the chunks in between cost nothing. At each chunk memory holds the
    chunk's records only.
    """

    order: str = field(default="strict", init=False)
    _verified: dict[InputFile, tuple[int, ...]] = field(default_factory=dict, init=False)

    def plan(self, source: Any, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """One slice a file; raises ``RefusedFile`` if a file's own proof has failed."""
        stored = stored_files(source, context)
        plans = []
        for one in files_of(context.parameters):
            row = stored[one.side, one.sha256]
            if row.proof == "FAILED":
                raise RefusedFile(
                    f"{one.name}: the file does not prove: {row.proof_reason}."
                    " None of its lines was taken in"
                )
            start = open_pinned(one).start
            plans.append(
                PartitionPlan(
                    name=f"{one.side} {one.name}"[:300],
                    low=to_key(start, None),
                    high={"end": one.bytes},
                    context={"side": one.side, "sha256": one.sha256, "file_id": row.id},
                )
            )
        return plans

    def measure(self, source: Any, context: StepContext, low: Any, high: Any) -> Measure | None:
        """Not known without reading; the hash pins the input."""
        return None

    def next_end(self, source: Any, context: StepContext, cursor: Any, high: Any, size: int) -> Any:
        """Never asked: in strict order the reading itself finds the end."""
        return high

    def read(self, source: Any, context: StepContext, start: Any, end: Any, size: int) -> Page:
        """The next ``size`` records after ``start``; raises ``RefusedFile``."""
        one = _file_of(context)
        self._verify(one)
        try:
            return _read(one, start, size)
        except StatementError as error:
            place = "" if error.offset is None else f", byte {error.offset}"
            raise RefusedFile(f"{one.name}{place}: {error.message} {error.hint}") from None

    def key_of(self, item: Sighting) -> str:
        """Side, file and byte offset."""
        return f"{item.side} {item.file_name} @{item.record.offset}"

    def payload_of(self, item: Sighting) -> Mapping[str, Any]:
        """Where the record stands, and its fields if it was read; nothing of an unread one."""
        record = item.record
        place = {
            "side": item.side,
            "file": item.file_name,
            "line": record.line_no,
            "offset": record.offset,
        }
        if isinstance(record, BadRecord):
            return {**place, "code": record.code, "field": record.field}
        if isinstance(record, EmptyRecord):
            return place
        return {
            **place,
            "account": record.account,
            "booking_date": record.booking_date,
            "amount_minor": record.amount_minor,
            "currency": record.currency,
            "fitid": record.fitid,
            "document_no": record.document_no,
            "counterparty_document": record.counterparty_document,
            "description": record.description,
        }

    def _verify(self, one: InputFile) -> None:
        try:
            now = Path(one.path).stat()
        except OSError as error:
            raise RefusedFile(f"{one.path}: {error.strerror}") from None
        signature = (now.st_size, now.st_mtime_ns, now.st_ino)
        if self._verified.get(one) != signature:
            open_pinned(one)
            self._verified[one] = signature


def _file_of(context: StepContext) -> InputFile:
    """The partition's file, where the run's parameters say that it lies: it may have moved."""
    wanted = (context.partition["side"], context.partition["sha256"])
    for one in files_of(context.parameters):
        if (one.side, one.sha256) == wanted:
            return one
    raise RefusedFile(f"the run's parameters name no file for {wanted[0]} {wanted[1][:12]}…")


def _read(one: InputFile, start: Mapping[str, Any], size: int) -> Page:
    position, statement_at = from_key(one.path, start)

    def hear(note: Note) -> None:
        nonlocal statement_at
        if isinstance(note, StatementStart):
            statement_at = note.offset

    items: list[Sighting] = []
    end = dict(start)
    for record, after in read_records(one.path, position, hear):
        if len(items) == size:
            return Page(items=items, end=end, measure=Measure(size), is_last=False)
        items.append(Sighting(one.side, one.name, record))
        if len(items) == size:
            end = to_key(after, statement_at)
    # At the end of the file the place is all that is left to tell; nothing is read from there.
    return Page(items=items, end={"end": one.bytes}, measure=Measure(len(items)), is_last=True)
