"""The job of the simulated night: a small table of items, and code that may misbehave."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import BigInteger, Column, Integer, MetaData, String, Table
from sqlalchemy.exc import DBAPIError

from retoma.errors import TransientFailure
from retoma.model.items import (
    Key,
    Measure,
    NotReady,
    Page,
    PartitionPlan,
    SetAside,
    Source,
    StepContext,
    Transaction,
    Writer,
    Written,
)
from retoma.model.job import ItemStep, Job
from retoma.model.keyspace import split_evenly
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

    late_at: int | None = None
    """At which moment of the world the late item came; None: it is not there."""

    measures: list[tuple[str, int]] = field(default_factory=list)
    """Which step's source was measured at which moment of the world."""

    slow_write: float = 0.0
    """How long the next write takes, inside the transaction."""

    def begin(self, world: World) -> None:
        """Another world begins."""
        self.world, self.swallow, self.hiccup, self.late_at = world, None, False, None
        self.slow_write = 0.0
        self.computed.clear()
        self.measures.clear()

    def measured(self, step: str) -> None:
        """The source of a step has just been measured."""
        if self.world is not None:
            self.measures.append((step, self.world.moment))

    def is_late_in(self, step: str, last_done: int) -> bool:
        """Whether the late item belongs to a step whose last chunk was done at that moment.

        What came before the source was compared with what was read is part of the input; if it was
        not read, the step must not complete. What came later is none of this step's business.
        """
        if self.late_at is None:
            return False
        judged = [at for name, at in self.measures if name == step and at > last_done]
        return not judged or self.late_at < min(judged)


FATE = Fate()


def verdicts_of(setting: Setting) -> list[str]:
    """What is to become of each item, from 1 on."""
    return [_VERDICTS[(setting.seed * 31 + n * 17) % len(_VERDICTS)] for n in range(setting.items)]


def items_of(setting: Setting, *, with_late: bool) -> list[tuple[int, str]]:
    """The items: number and verdict; the one that comes late only if asked for."""
    found = enumerate(verdicts_of(setting), start=1)
    return [item for item in found if with_late or item[0] != setting.late_item]


def first_items(setting: Setting) -> list[tuple[int, str]]:
    """The items that are there when the night begins."""
    return items_of(setting, with_late=False)


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
    if kind == "slow" and size < 0.5:
        world.wait(size * 80.0)
    elif kind == "slow":
        FATE.slow_write = (size - 0.5) * 80.0
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
        connection: Any = tx.connection.connection.driver_connection  # type: ignore[attr-defined]
        if FATE.swallow is not None:
            size, FATE.swallow = FATE.swallow, None
            connection.roll_back_silently(is_noticed=size < 0.4)
        if FATE.slow_write and FATE.world is not None:
            seconds, FATE.slow_write = FATE.slow_write, 0.0
            FATE.world.wait(seconds)
        if FATE.hiccup:
            FATE.hiccup = False
            raise DBAPIError.instance("INSERT", None, connection.lock_timeout(), connection.Error)
        return self.inner.write(tx, context, rows, carefully=carefully)


@dataclass(frozen=True, slots=True)
class PlainWriter:
    """Inserts and looks at nothing."""

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        tx.insert(EFFECT, ("step", "item", "digest"), rows)
        return Written(done=len(rows))


_ROWS = "SELECT id, verdict, version FROM sim_source WHERE id > :low AND id <= :high ORDER BY id"
_ENDS = "SELECT min(id), max(id) FROM sim_source"
_MEASURE = (
    "SELECT count(*), COALESCE(sum(version), 0) FROM sim_source WHERE id > :low AND id <= :high"
)


@dataclass(frozen=True, slots=True)
class NightReader:
    """The items by number, as ``TableReader`` reads them, in texts that cost no time to build.

    In strict order the end of a chunk is known when it has been read.
    """

    order: str

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        low, high = source.fetch("reader.ends", _ENDS)[0]
        ranges = split_evenly(low - 1, high, partitions)
        return [PartitionPlan(f"{a + 1}..{z}", a, z, {"high": z}) for a, z in ranges]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        count, versions = source.fetch("reader.measure", _MEASURE, {"low": low, "high": high})[0]
        FATE.measured(context.step)
        return Measure(int(count), int(versions))

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        assert self.order == "any", "a strict partition is never cut"
        found = source.fetch(
            "reader.end", f"{_ROWS} LIMIT :size", {"low": cursor, "high": high, "size": size}
        )
        if not found:
            return None
        return found[-1].id if len(found) == size else high

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        high = context.partition["high"] if end is None else end
        limit = {"size": size} if end is None else {}
        text = f"{_ROWS} LIMIT :size" if limit else _ROWS
        items = source.fetch("reader.read", text, {"low": start, "high": high, **limit})
        last = items[-1].id if items else high
        measure = Measure(len(items), sum(item.version for item in items))
        return Page(
            items,
            last if end is None else end,
            measure,
            is_last=end is None and (last >= high or not items),
        )

    def key_of(self, item: Any) -> str:
        return str(item.id)

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        return {"id": item.id}


_READERS = {order: NightReader(order) for order in ("any", "strict")}
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
            reader=_READERS["strict" if setting.is_strict and name == "first" else "any"],
            process=process,
            writer=_WRITERS[setting.has_key],
            chunk_size=setting.chunk_size,
            partitions=setting.partitions,
            attempt_deadline_seconds=setting.deadline_seconds,
        )
        for name in ("first", "second")[: 1 + setting.two_steps]
    )
    return Job(name="sim", steps=steps)


def expected(setting: Setting, *, with_late: bool) -> dict[str, int]:
    """How many items of a step end how."""
    found = Counter(verdict for _, verdict in items_of(setting, with_late=with_late))
    return {
        "done": found["do"],
        "filtered": found["skip"],
        "set_aside": found["aside"],
        "deferred": found["defer"],
    }
