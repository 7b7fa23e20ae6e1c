"""The statement job: files prove themselves, are taken in, matched, posted; the rest are breaks.

What names an instance is the business date and the content of its files. The day comes from the
run's parameters, so that a run that crosses midnight changes nothing.
"""

from __future__ import annotations

from datetime import date
from hashlib import blake2b
from typing import Any, Final

from sqlalchemy import Select, func, select

from retoma import (
    ItemStep,
    Job,
    Parameter,
    SetAside,
    StepContext,
    TableReader,
    TableWriter,
    TaskStep,
)
from retoma.reconciliation.break_rows import close_breaks
from retoma.reconciliation.posting_rules import ENTRY_COLUMNS
from retoma.reconciliation.statement import BadRecord, EmptyRecord, StatementLine
from retoma.reconciliation.statement_audit import audit_statement
from retoma.reconciliation.statement_match import match
from retoma.reconciliation.statement_proof import FileReader, FileWriter, prove
from retoma.reconciliation.statement_reader import Sighting, StatementReader
from retoma.reconciliation.statement_tables import (
    ENTRY_TYPE,
    create_statement_tables,
    recon_entry,
    recon_match,
)
from retoma.reconciliation.statement_writer import StatementWriter
from retoma.reconciliation.tables import ledger_entry

JOB_NAME: Final = "statement"
_LONGEST: Final = {"e2e_id": 100, "fitid": 250, "document_no": 250, "account": 250}
_FILES_DEADLINE_SECONDS: Final = 4 * 3600.0


def to_line(item: Sighting, _: StepContext) -> StatementLine | SetAside | None:
    """The line of a record; one that could not be read is set aside, an empty one left out."""
    record = item.record
    place = f"{item.file_name}, line {record.line_no}, byte {record.offset}"
    if isinstance(record, BadRecord):
        return SetAside(record.code, f"{place}: {record.field}: {record.message}", record.field)
    if isinstance(record, EmptyRecord):
        return None
    for name, longest in _LONGEST.items():
        if len(getattr(record, name)) > longest:
            reason = f"{place}: {name}: longer than {longest} characters"
            return SetAside("FIELD_TOO_LONG", reason, name)
    return record


def matches_of(context: StepContext) -> Select[Any]:
    """What this instance has matched, with the transaction that each match posts."""
    entry, found = recon_entry.c, recon_match.c
    return (
        select(
            found.id,
            found.match_id,
            found.transaction_entry_id,
            found.amount_minor,
            found.currency,
            entry.natural_key,
            entry.occurrence,
            func.coalesce(entry.match_account, entry.account).label("account"),
        )
        .join_from(recon_match, recon_entry, entry.id == found.transaction_entry_id)
        .where(found.instance_id == context.instance_id)
    )


def to_ledger(item: Any, context: StepContext) -> tuple[Any, ...]:
    """The ledger entry of a match.

    Its key depends on the business date and on the transaction (natural key and occurrence) alone:
    the same in every run, and on every database.
    """
    day = context.parameters["reference_date"]
    assert isinstance(day, date)
    key = f"CONCILIACAO:{day:%Y%m%d}:S:{item.natural_key}:{item.occurrence}"
    effect = f"{item.amount_minor}|{item.currency}|{ENTRY_TYPE}"
    digest = blake2b(effect.encode(), digest_size=16).hexdigest()
    return (
        JOB_NAME,
        key,
        item.transaction_entry_id,
        day.isoformat(),
        item.amount_minor,
        item.currency,
        ENTRY_TYPE,
        digest,
    )


JOB = Job(
    name=JOB_NAME,
    parameters=(
        Parameter(name="reference_date", kind=date),
        Parameter(name="inputs"),
        Parameter(name="files", identifying=False),
    ),
    steps=(
        ItemStep(
            name="prove",
            reader=FileReader(),
            process=prove,
            writer=FileWriter(),
            chunk_size=1,
            attempt_deadline_seconds=_FILES_DEADLINE_SECONDS,
        ),
        ItemStep(
            name="ingest",
            reader=StatementReader(),
            process=to_line,
            writer=StatementWriter(),
            chunk_size=5_000,
            personal=("account", "document_no", "counterparty_document"),
        ),
        TaskStep(name="match", work=match),
        ItemStep(
            name="post",
            reader=TableReader(query=matches_of, key=recon_match.c.id, payload=("match_id",)),
            process=to_ledger,
            writer=TableWriter(
                table=ledger_entry,
                columns=ENTRY_COLUMNS,
                keys=(("idempotency_key",), ("transaction_id", "job")),
                digest="digest",
            ),
        ),
        TaskStep(name="breaks", work=close_breaks),
    ),
    audit=audit_statement,
    prepare=create_statement_tables,
)
