"""The job that the matrix runs: small, with every outcome, and a trace outside the database.

Each call of the item function appends ``STEP ITEM PID`` to the file named in ``RETOMA_CHAOS_TRACE``.
So what was done twice is known from the work itself, not from the tables that are under test.
"""

from __future__ import annotations

import functools
import hashlib
import os
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa

from retoma.clock import SYSTEM_CLOCK
from retoma.model.items import (
    Key,
    Measure,
    NotReady,
    Page,
    PartitionPlan,
    SetAside,
    Source,
    StepContext,
)
from retoma.model.job import Finding, ItemStep, Job
from retoma.model.parameters import Parameter
from retoma.readers.table import TableReader
from retoma.writers.table import TableWriter

NAME = "chaos"
CHUNK = 10
# The first of the two partitions ends in a gap, so that one is found to be exhausted.
ITEMS = (*range(1, 31), *range(41, 71))
ORDERED = tuple(item for item in ITEMS if item <= 2 * CHUNK)
REFUSED = 45  # its amount breaks a constraint of the effects' table
_SLOW = (1, 41)  # the first item of each partition

metadata = sa.MetaData()
SOURCE = sa.Table(
    "chaos_source",
    metadata,
    sa.Column("id", sa.Integer, primary_key=True, autoincrement=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("version", sa.Integer, nullable=False),
)
EFFECT = sa.Table(
    "chaos_effect",
    metadata,
    sa.Column("effect_key", sa.String(80), nullable=False),
    sa.Column("item_id", sa.Integer, nullable=False),
    sa.Column("amount", sa.BigInteger, nullable=False),
    sa.Column("digest", sa.String(64), nullable=False),
    sa.UniqueConstraint("effect_key", name="ux_chaos_effect_key"),
    sa.CheckConstraint("amount >= 0", name="ck_chaos_effect_amount"),
)
COLUMNS = ("effect_key", "item_id", "amount", "digest")
Row = tuple[str, int, int, str]


def amount_of(item: int) -> int:
    """Some amount in minor units; the same item has always the same."""
    return -1 if item == REFUSED else item * 7919 % 100_003


def outcome_of(item: int) -> str:
    """What becomes of an item, by its number alone."""
    if item == REFUSED:
        return "set_aside"
    return {7: "set_aside", 9: "filtered", 13: "deferred"}.get(item % 20, "done")


def effect_of(step: str, cell: str, item: int) -> Row:
    """The one row that the item leaves."""
    amount = amount_of(item)
    digest = hashlib.sha256(f"{item}:{amount}".encode()).hexdigest()
    return (f"{cell}:{step}:{item}", item, amount, digest)


def fill(engine: sa.Engine) -> None:
    """The job's own tables, made anew, with its input."""
    metadata.drop_all(engine)
    metadata.create_all(engine)
    rows = [{"id": n, "amount": amount_of(n), "version": n % 5} for n in ITEMS]
    with engine.begin() as connection:
        connection.execute(sa.insert(SOURCE), rows)


@functools.cache
def _trace() -> int:
    path = os.environ["RETOMA_CHAOS_TRACE"]
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


def work(item: Any, context: StepContext) -> Any:
    """Leave a trace, take the time that the cell wants, then decide."""
    os.write(_trace(), f"{context.step} {item.id} {os.getpid()}\n".encode())
    slow = float(os.environ.get("RETOMA_CHAOS_SLOW", "0"))
    SYSTEM_CLOCK.sleep(slow if item.id in _SLOW else 0.002)
    if item.id == REFUSED:
        return effect_of(context.step, str(context.parameters["cell"]), item.id)
    outcome = outcome_of(item.id)
    if outcome == "set_aside":
        return SetAside("BAD", f"item {item.id} is bad", "amount")
    if outcome == "deferred":
        return NotReady("LATER", f"item {item.id} is not ready")
    if outcome == "filtered":
        return None
    return effect_of(context.step, str(context.parameters["cell"]), item.id)


def _query(context: StepContext) -> sa.Select[Any]:
    if os.environ.get("RETOMA_CHAOS_BROKEN_PLAN"):
        raise ValueError("the cell wants a plan that fails")
    query = sa.select(SOURCE)
    return query if context.step == "spread" else query.where(SOURCE.c.id <= ORDERED[-1])


_ROWS = TableReader(query=_query, key=SOURCE.c.id, version=SOURCE.c.version)
_WRITER = TableWriter(table=EFFECT, columns=COLUMNS, keys=(("effect_key",),), digest="digest")


@dataclass(frozen=True, slots=True)
class InOrder:
    """The same rows in strict order: one partition, one chunk after the other."""

    order: str = field(default="strict", init=False)

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        return [
            PartitionPlan(plan.name, plan.low, plan.high, {"high": plan.high})
            for plan in _ROWS.plan(source, context, 1)
        ]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        return _ROWS.measure(source, context, low, high)

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        return _ROWS.next_end(source, context, cursor, high, size)

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        high = context.partition["high"]
        end = self.next_end(source, context, start, high, size) or high
        page = _ROWS.read(source, context, start, end, size)
        return Page(page.items, end, page.measure, is_last=end == high)

    def key_of(self, item: Any) -> str:
        return _ROWS.key_of(item)

    def payload_of(self, item: Any) -> Any:
        return _ROWS.payload_of(item)


def expected_effects(cell: str) -> dict[str, Row]:
    """Key → row of a run that nobody disturbed."""
    rows = [
        effect_of(step, cell, item)
        for step, items in (("spread", ITEMS), ("ordered", ORDERED))
        for item in items
        if outcome_of(item) == "done"
    ]
    return {row[0]: row for row in rows}


def expected_counts() -> dict[str, int]:
    """The counts of all chunks together in a run that nobody disturbed."""
    items = (*ITEMS, *ORDERED)
    found = {"first_reads": len(items), "done": 0, "already_done": 0}
    found |= {"filtered": 0, "set_aside": 0, "deferred": 0}
    for item in items:
        found[outcome_of(item)] += 1
    return found


def audit(connection: Any, context: StepContext) -> Finding:
    """Compares the cell's effects with the source, row by row, in plain Python."""
    wanted = expected_effects(str(context.parameters["cell"]))
    columns = [EFFECT.c[name] for name in COLUMNS]
    found = [tuple(row) for row in connection.execute(sa.select(*columns)).all()]
    keys = {row[0] for row in found}
    difference = sum(row[2] for row in found) - sum(row[2] for row in wanted.values())
    return Finding(
        expected=len(wanted),
        found=len(found),
        missing=len(wanted.keys() - keys),
        duplicate=len(found) - len(keys),
        unexpected=sum(1 for row in found if wanted.get(row[0]) != row),
        sum_difference=f"{difference / 100:.2f}",
    )


JOB = Job(
    name=NAME,
    parameters=(Parameter(name="cell"),),
    steps=(
        ItemStep(
            name="spread", reader=_ROWS, process=work, writer=_WRITER,
            chunk_size=CHUNK, partitions=2,
        ),
        ItemStep(
            name="ordered", reader=InOrder(), process=work, writer=_WRITER, chunk_size=CHUNK,
        ),
    ),
    audit=audit,
    prepare=metadata.create_all,
)  # fmt: skip
