"""The job of the simulated night: a small table of items, and code that may misbehave."""

from __future__ import annotations

import sqlite3
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table, insert, select
from sqlalchemy.exc import DBAPIError

from retoma.errors import TransientFailure
from retoma.model.items import (
    Key,
    Measure,
    NotReady,
    Page,
    PartitionPlan,
    Reader,
    SetAside,
    Source,
    StepContext,
    Transaction,
    Writer,
    Written,
)
from retoma.model.job import ItemStep, Job
from retoma.readers.table import TableReader
from retoma.testing.simulation.setting import Setting
from retoma.testing.simulation.world import Died, World
from retoma.writers.table import TableWriter

metadata = MetaData()
SOURCE = Table(
    "sim_source",
    metadata,
    Column("id", Integer, primary_key=True, autoincrement=False),
    Column("verdict", String(20), nullable=False),
    Column("version", BigInteger, nullable=False),
)
# Without a key the fence and the witness alone must see to it that nothing is done twice.
EFFECT = Table(
    "sim_effect",
    metadata,
    Column("step", String(10), nullable=False),
    Column("item", Integer, nullable=False),
    Column("digest", String(20), nullable=False),
)
KEYED = Table(
    "sim_keyed",
    metadata,
    Column("step", String(10), primary_key=True),
    Column("item", Integer, primary_key=True, autoincrement=False),
    Column("digest", String(20), nullable=False),
)


def passing_error() -> Exception:
    """What a server says when a lock could not be had in time; the connection lives on."""
    error = sqlite3.OperationalError("lock wait timeout exceeded; try again")
    error.sqlite_errorname = "SQLITE_BUSY"
    return DBAPIError.instance("INSERT", None, error, sqlite3.Error)


_VERDICTS = ("do", "do", "do", "do", "skip", "aside", "defer")


@dataclass(slots=True)
class Fate:
    """What the code of the job meets in the current world."""

    world: World | None = None
    computed: Counter[tuple[str, int]] = field(default_factory=Counter)
    swallow: Any = None
    """Rolls the open transaction back behind the driver's back."""

    hiccup: bool = False
    """The next write meets a passing error of the database."""

    def begin(self, world: World) -> None:
        """Another world begins."""
        self.world, self.swallow, self.hiccup = world, None, False
        self.computed.clear()


FATE = Fate()


def verdicts_of(setting: Setting) -> list[str]:
    """What is to become of each item, from 1 on."""
    return [_VERDICTS[(setting.seed * 31 + n * 17) % len(_VERDICTS)] for n in range(setting.items)]


def rows(setting: Setting) -> list[tuple[int, str]]:
    """The items: number and verdict."""
    return list(enumerate(verdicts_of(setting), start=1))


def process(item: Any, context: StepContext) -> Any:
    """An item's outcome; now and then the code is slow, raises, or ends its process."""
    FATE.computed[context.step, item.id] += 1
    world = FATE.world
    if world is not None and world.setting.rates_of_code:
        _misbehave(world)
    if item.verdict == "skip":
        return None
    if item.verdict == "aside":
        return SetAside("ASKED", "the item asks for it")
    if item.verdict == "defer":
        return NotReady("LATER", "not yet")
    return (context.step, item.id, f"d{item.id}")


def _misbehave(world: World) -> None:
    fault = world.fate(world.setting.rates_of_code)
    if fault is None:
        return
    kind, size = fault
    world.count(f"fault.{kind}")
    world.tell(f"code: {kind}")
    if kind == "slow":
        world.wait(size * 40.0)
    elif kind == "raises":
        raise TransientFailure("the code has a bad day") if size < 0.8 else ValueError("a bug")
    elif kind == "crashes":
        assert world.current is not None
        world.kill(world.current, code=-11)
        raise Died
    elif kind == "hiccup":
        FATE.hiccup = True
    else:
        FATE.swallow = size


@dataclass(frozen=True, slots=True)
class SwallowingWriter:
    """Writes as its inner writer does; where fate says so, an error of the database was swallowed."""

    inner: Writer

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        if FATE.swallow is not None:
            size, FATE.swallow = FATE.swallow, None
            connection: Any = tx.connection.connection.driver_connection  # type: ignore[attr-defined]
            connection.roll_back_silently(is_noticed=size < 0.4)
        if FATE.hiccup:
            FATE.hiccup = False
            raise passing_error()
        return self.inner.write(tx, context, rows, carefully=carefully)


@dataclass(frozen=True, slots=True)
class PlainWriter:
    """Inserts and looks at nothing."""

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        values = [dict(zip(("step", "item", "digest"), row, strict=True)) for row in rows]
        tx.change("effect.insert", insert(EFFECT), values)
        return Written(done=len(rows))


def _query(_context: StepContext) -> Any:
    return select(SOURCE.c.id, SOURCE.c.verdict, SOURCE.c.version)


@dataclass(frozen=True, slots=True)
class StrictReader:
    """The same rows in strict order: the end of a chunk is known when it has been read."""

    inner: TableReader
    order: str = field(default="strict", init=False)

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        plans = self.inner.plan(source, context, partitions)
        return [PartitionPlan(p.name, p.low, p.high, {"high": p.high}) for p in plans]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        return self.inner.measure(source, context, low, high)

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        raise AssertionError("a strict partition is never cut")

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        high = context.partition["high"]
        statement = (
            _query(context)
            .where(SOURCE.c.id > start, SOURCE.c.id <= high)
            .order_by(SOURCE.c.id)
            .limit(size)
        )
        items = source.fetch("reader.read", statement)
        last = items[-1].id if items else high
        versions = sum(item.version for item in items)
        return Page(items, last, Measure(len(items), versions), is_last=last >= high or not items)

    def key_of(self, item: Any) -> str:
        return str(item.id)

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        return {"id": item.id}


_TABLE_READER = TableReader(query=_query, key=SOURCE.c.id, version=SOURCE.c.version)
_READERS: dict[bool, Reader] = {False: _TABLE_READER, True: StrictReader(_TABLE_READER)}
_WRITERS = {
    False: SwallowingWriter(PlainWriter()),
    True: SwallowingWriter(
        TableWriter(
            table=KEYED,
            columns=("step", "item", "digest"),
            keys=(("step", "item"),),
            digest="digest",
        )
    ),
}


def job_of(setting: Setting) -> Job:
    """The job of a setting."""
    steps = tuple(
        ItemStep(
            name=name,
            reader=_READERS[setting.is_strict and name == "first"],
            process=process,
            writer=_WRITERS[setting.has_key],
            chunk_size=setting.chunk_size,
            partitions=setting.partitions,
            attempt_deadline_seconds=setting.deadline_seconds,
        )
        for name in ("first", "second")[: 1 + setting.two_steps]
    )
    return Job(name="sim", steps=steps)


def expected(setting: Setting) -> dict[str, int]:
    """How many items of a step end how."""
    found = Counter(verdicts_of(setting))
    return {
        "done": found["do"],
        "filtered": found["skip"],
        "set_aside": found["aside"],
        "deferred": found["defer"],
    }
