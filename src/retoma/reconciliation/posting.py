"""The posting job: each settled transaction of a day becomes one ledger entry, once.

Everything that decides is here and in ``posting_rules``; the day comes from the run's parameter
``reference_date``, so that a run that crosses midnight changes nothing.
"""

from __future__ import annotations

from datetime import date
from typing import Any

from sqlalchemy import Select, String, and_, cast, column, exists, func, or_, select, table

from retoma import ItemStep, Job, Parameter, StepContext, TableReader, TableWriter
from retoma.reconciliation.audit import audit_posting
from retoma.reconciliation.posting_rules import ENTRY_COLUMNS, JOB_NAME, to_entry
from retoma.reconciliation.tables import create_tables, financial_transaction, ledger_entry

_item_error = table("batch_item_error", column("job_name"), column("state"), column("item_key"))


def day_of(context: StepContext) -> date:
    """The run's business date."""
    day = context.parameters["reference_date"]
    if not isinstance(day, date):
        raise TypeError(f"reference_date must be a date, not {type(day).__name__}")
    return day


def input_of(context: StepContext) -> Select[Any]:
    """The day's transactions, and those of earlier days that were deferred and not posted since.

    ``first_id`` is the lowest id that has the same ``external_id``: duplicates of the source are
    decided here, so that the result does not depend on which worker is faster. An entry that this
    very day makes does not take its transaction out of the input: the input is pinned.
    """
    source, day = financial_transaction, day_of(context)
    twin = source.alias("twin")
    first_id = (
        select(func.min(twin.c.id))
        .where(twin.c.external_id == source.c.external_id, twin.c.business_date <= day)
        .scalar_subquery()
    )
    deferred = select(_item_error.c.item_key).where(
        _item_error.c.job_name == JOB_NAME, _item_error.c.state == "NOT_READY"
    )
    posted_before = exists().where(
        ledger_entry.c.transaction_id == source.c.id,
        ledger_entry.c.job == JOB_NAME,
        ledger_entry.c.reference_date < day,
    )
    carried_over = and_(
        source.c.business_date < day, cast(source.c.id, String).in_(deferred), ~posted_before
    )
    return select(
        source.c.id,
        source.c.external_id,
        source.c.amount,
        source.c.currency,
        source.c.document,
        source.c.status,
        source.c.entry_type,
        source.c.payload,
        first_id.label("first_id"),
        source.c.version,
        source.c.business_date,
    ).where(or_(source.c.business_date == day, carried_over))


JOB = Job(
    name=JOB_NAME,
    parameters=(Parameter(name="reference_date", kind=date),),
    steps=(
        ItemStep(
            name="post",
            reader=TableReader(
                query=input_of,
                key=financial_transaction.c.id,
                version=financial_transaction.c.version,
            ),
            process=to_entry,
            writer=TableWriter(
                table=ledger_entry,
                columns=ENTRY_COLUMNS,
                keys=(("idempotency_key",), ("transaction_id", "job")),
                digest="digest",
            ),
            personal=("document",),
        ),
    ),
    audit=audit_posting,
    prepare=create_tables,
)
