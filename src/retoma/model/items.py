"""What a job's function says about one item, and what a reader and a writer promise the engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, datetime
from typing import Any, Protocol

Key = Any
"""A point in the input, as JSON: an integer, a text, a list of them, or an object for a file."""

Value = str | int | bool | date | None


@dataclass(frozen=True, slots=True)
class SetAside:
    """This item can't be processed: it is stored as an item error with its reason; the rest goes on."""

    reason: str
    message: str
    field: str | None = None


@dataclass(frozen=True, slots=True)
class NotReady:
    """This item is not ready yet: it is deferred, with the instant from which it may be tried again."""

    reason: str
    message: str
    field: str | None = None
    due_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class StepContext:
    """What user code is given beside the item: the run's parameters, never a clock."""

    job: str
    step: str
    run_id: int
    instance_id: int
    parameters: Mapping[str, Value]
    partition: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class PartitionPlan:
    """A slice of the input: everything above ``low`` up to and including ``high``."""

    name: str
    low: Key
    high: Key
    context: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Measure:
    """How much lies in a range of the input: rows, and the sum of their versions (0 if unversioned)."""

    count: int
    version_sum: int = 0


@dataclass(frozen=True, slots=True)
class Page:
    """What was read of a chunk.

    ``end`` is the checkpoint that the chunk reaches; ``is_last`` says that nothing follows in the
    partition (only a reader of strict order needs to know). ``keys`` name the items in item errors.
    """

    items: Sequence[Any]
    end: Key
    measure: Measure
    is_last: bool = False


@dataclass(frozen=True, slots=True)
class Written:
    """What became of the rows given to a writer.

    ``already`` had their effect before, with the same digest. ``conflicts`` are the positions of
    rows whose key exists with another digest: they are set aside as KEY_CONFLICT.
    """

    done: int
    already: int = 0
    conflicts: tuple[int, ...] = ()


class Source(Protocol):
    """A connection outside any work transaction, for reading: each statement is one snapshot."""

    def fetch(
        self, name: str, statement: Any, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """All rows of one statement, as tuples."""


class Transaction(Protocol):
    """The chunk's own transaction: what is written here commits with the checkpoint, or not at all."""

    backend: str

    def fetch(
        self, name: str, statement: Any, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """All rows of one statement."""

    def change(self, name: str, statement: Any, parameters: Any = None) -> int:
        """Run one statement; the number of rows that it matched."""

    def insert(self, table: Any, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> None:
        """Insert rows in bulk by the database's fastest way within this transaction."""


class Reader(Protocol):
    """Reads a step's input in slices that can be taken up again."""

    @property
    def order(self) -> str:
        """``any``: a partition's chunks may run side by side; ``strict``: one after the other."""

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """The slices, asked once in an instance's life and stored."""

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        """What lies in a range now; None if it can't be told without reading it."""

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        """The end of the next chunk of ``size`` items above ``cursor``; None if nothing is left."""

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        """The items of a chunk; ``end`` is None for strict order, where ``size`` bounds it."""

    def key_of(self, item: Any) -> str:
        """The item's name in item errors; unique within the step."""

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        """The item's fields, for its item error; masked by the engine before they are stored."""


class Writer(Protocol):
    """Writes a chunk's rows within the chunk's transaction."""

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        """Write all rows or raise.

        ``carefully``: look for what already exists before inserting. Otherwise insert plainly; a
        violation of a declared key raises the driver's integrity error, and the engine comes back
        with ``carefully``.
        """
