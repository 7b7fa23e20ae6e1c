"""The first step: each file is read once for its own totals, before any of its lines is stored."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

from sqlalchemy import select, tuple_

from retoma import Measure, Page, PartitionPlan, StepContext, Transaction, Written
from retoma.reconciliation.inspect import read_report
from retoma.reconciliation.statement import FileReport, StatementError
from retoma.reconciliation.statement_files import (
    InputFile,
    RefusedFile,
    changed,
    files_of,
    open_pinned,
    refused,
)
from retoma.reconciliation.statement_tables import recon_file

_COLUMNS = (
    "side", "sha256", "name", "bytes", "format", "movements", "balances", "bad_records", "accounts",
    "warnings", "proof", "proof_reason", "state", "first_seen_instance",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class FileReader:
    """The run's files as items, each a partition of its own, so that slots prove them side by side."""

    order: str = field(default="any", init=False)

    def plan(self, source: Any, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """One slice a file."""
        return [
            PartitionPlan(name=f"{one.side} {one.name}"[:300], low=number, high=number + 1)
            for number, one in enumerate(files_of(context.parameters))
        ]

    def measure(self, source: Any, context: StepContext, low: Any, high: Any) -> Measure | None:
        """How many files lie in the range."""
        return Measure(int(high) - int(low))

    def next_end(self, source: Any, context: StepContext, cursor: Any, high: Any, size: int) -> Any:
        """The next file, if there is one."""
        return cursor + 1 if cursor < high else None

    def read(self, source: Any, context: StepContext, start: Any, end: Any, size: int) -> Page:
        """The files of the range."""
        files = files_of(context.parameters)[start:end]
        return Page(items=files, end=end, measure=Measure(len(files)))

    def key_of(self, item: InputFile) -> str:
        """Side and name."""
        return f"{item.side} {item.name}"

    def payload_of(self, item: InputFile) -> Mapping[str, Any]:
        """Name and hash."""
        return {"side": item.side, "file": item.name, "sha256": item.sha256}


def prove(one: InputFile, context: StepContext) -> tuple[Any, ...]:
    """Read the whole file, outside any transaction; raises ``RefusedFile`` if it is another one."""
    try:
        report = read_report(one.path)
    except StatementError as error:
        open_pinned(one)  # says it in full if the file is gone or changed
        raise RefusedFile(refused(one.path, error).message) from None
    if report.header.sha256 != one.sha256:
        raise changed(one)
    return _row(one, report, context)


def _row(one: InputFile, report: FileReport, context: StepContext) -> tuple[Any, ...]:
    return (
        one.side,
        one.sha256,
        one.name[:255],
        one.bytes,
        report.header.format,
        report.movements,
        report.balances,
        report.bad_records,
        json.dumps([asdict(account) for account in report.accounts], ensure_ascii=False),
        json.dumps({warning.code: warning.count for warning in report.warnings}),
        report.proof,
        report.reason,
        "REFUSED" if report.proof == "FAILED" else "ACCEPTED",
        context.instance_id,
    )


@dataclass(frozen=True, slots=True)
class FileWriter:
    """Keeps what a file says of itself, once a side and content."""

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        """Insert the files that are not known yet."""
        table = recon_file
        keys = [(row[0], row[1]) for row in rows]
        statement = select(table.c.side, table.c.sha256).where(
            tuple_(table.c.side, table.c.sha256).in_(keys)
        )
        known = {tuple(row) for row in tx.fetch("recon.known_files", statement)}
        fresh = [row for row, key in zip(rows, keys, strict=True) if key not in known]
        tx.insert(table, _COLUMNS, fresh)
        return Written(done=len(fresh), already=len(rows) - len(fresh))
