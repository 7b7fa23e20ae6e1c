"""A small job over two tables, in which each source row says what should become of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    select,
)

from retoma.errors import InvalidItem, ItemNotReady
from retoma.model.items import NotReady, SetAside, StepContext, Transaction, Writer, Written
from retoma.model.job import ItemStep, Job
from retoma.model.parameters import Parameter
from retoma.readers.table import TableReader
from retoma.writers.table import TableWriter

metadata = MetaData()
source = Table(
    "source",
    metadata,
    Column("id", BigInteger, primary_key=True, autoincrement=False),
    Column("verdict", String(20), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),
)
effect = Table(
    "effect",
    metadata,
    Column("id", BigInteger().with_variant(Integer, "sqlite"), primary_key=True),
    Column("effect_key", String(50), nullable=False),
    Column("digest", String(50), nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("note", String(50), nullable=False),
    CheckConstraint("amount < 1000000", name="ck_effect_amount"),
    UniqueConstraint("effect_key", name="ux_effect_key"),
)
WRITER = TableWriter(
    table=effect,
    columns=("effect_key", "digest", "amount", "note"),
    keys=(("effect_key",),),
    digest="digest",
)
READER = TableReader(
    query=lambda context: select(source),
    key=source.c.id,
    version=source.c.version,
)


def process(item: Any, context: StepContext) -> Any:
    """What the row's verdict says."""
    if item.verdict in _LEFT_OUT:
        return _LEFT_OUT[item.verdict](item)
    key, digest, amount, note = f"key {item.id}", f"digest {item.amount}", item.amount, "note"
    rows = {
        "null": (key, digest, amount, None),
        "check": (key, digest, 1_000_000, note),
        "surrogate": (key, digest, amount, "a\ud800"),
        "same key": ("key 1", digest, amount, note),
        "same": ("key 1", "digest 10", 10, note),
    }
    return rows.get(item.verdict, (key, digest, amount, note))


def _raise(error: Exception) -> Any:
    raise error


_LEFT_OUT: dict[str, Callable[[Any], Any]] = {
    "filter": lambda item: None,
    "aside": lambda item: SetAside("ASKED", f"item {item.id} of CPF 529.982.247-25", "verdict"),
    "defer": lambda item: NotReady("LATER", "not yet"),
    "raise": lambda item: _raise(InvalidItem("RAISED", "no good", "amount")),
    "raise defer": lambda item: _raise(ItemNotReady("RAISED_LATER", "not yet")),
    "boom": lambda item: _raise(ValueError(f"boom at {item.id}, CPF 529.982.247-25")),
}


@dataclass
class CountingWriter:
    """Counts how often it is asked to write."""

    inner: Writer = WRITER
    calls: list[tuple[int, bool]] = field(default_factory=list)

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        self.calls.append((len(rows), carefully))
        return self.inner.write(tx, context, rows, carefully=carefully)


def make_job(
    *, writer: Writer = WRITER, reader: Any = READER, process: Any = process, chunk_size: int = 100,
    partitions: int = 1,
) -> Job:  # fmt: skip
    """The job with other parts."""
    step = ItemStep(
        name="copy",
        reader=reader,
        process=process,
        writer=writer,
        chunk_size=chunk_size,
        partitions=partitions,
    )
    return Job(name="small", steps=(step,), parameters=(Parameter(name="day", kind=date),))


DAY = {"day": date(2026, 11, 30)}
NEXT_DAY = {"day": date(2026, 12, 1)}
