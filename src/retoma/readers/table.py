"""Reads a table or query by key: a chunk is a range of the key, never a page number.

The key must be an integer that is unique in the query and never changes; gaps are fine.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import ColumnElement, Select, func, select

from retoma.model.items import Key, Measure, Page, PartitionPlan, Source, StepContext
from retoma.model.keyspace import split_evenly


@dataclass(frozen=True, slots=True, kw_only=True)
class TableReader:
    """The rows of ``query(context)`` in the order of ``key``.

    ``query`` returns an SQLAlchemy ``select`` that contains the key column; the engine adds the
    range. ``version`` is a column that grows with each change of a row: with it a late or changed
    row is noticed at the end of the step; without it only the number of rows is compared.
    Items are rows: ``item.amount``. ``payload`` names the columns kept in item errors (None: all).
    """

    query: Callable[[StepContext], Select[Any]]
    key: ColumnElement[Any]
    version: ColumnElement[Any] | None = None
    payload: Sequence[str] | None = None
    order: str = field(default="any", init=False)

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """Ranges of equal width between the lowest and the highest key."""
        query = self.query(context)
        ends = query.with_only_columns(func.min(self.key), func.max(self.key)).order_by(None)
        low, high = source.fetch("reader.ends", ends)[0]
        if low is None:
            return []
        return [
            PartitionPlan(name=f"{start + 1}..{end}", low=start, high=end)
            for start, end in split_evenly(int(low) - 1, int(high), partitions)
        ]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        """Count and version sum of a range as it is now."""
        version = self.version
        total = func.coalesce(func.sum(version), 0) if version is not None else func.sum(0)
        statement = (
            self.query(context)
            .with_only_columns(func.count(), total)
            .where(self.key > low, self.key <= high)
            .order_by(None)
        )
        count, versions = source.fetch("reader.measure", statement)[0]
        return Measure(count=int(count), version_sum=int(versions or 0))

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        """The key of the ``size``-th row above the cursor; ``high`` if fewer are left."""
        keys = (
            self.query(context)
            .with_only_columns(self.key.label("k"))
            .where(self.key > cursor, self.key <= high)
            .order_by(self.key)
            .limit(size)
            .subquery()
        )
        last, count = source.fetch("reader.end", select(func.max(keys.c.k), func.count()))[0]
        if not count:
            return None
        return int(last) if count == size else high

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        """All rows of the chunk's range, in one snapshot."""
        statement = self.query(context).where(self.key > start, self.key <= end).order_by(self.key)
        items = source.fetch("reader.read", statement)
        versions = 0
        if self.version is not None and items:
            position = items[0]._fields.index(self.version.key)
            versions = sum(item[position] for item in items)
        return Page(items=items, end=end, measure=Measure(len(items), versions))

    def key_of(self, item: Any) -> str:
        """The row's key as text."""
        return str(getattr(item, str(self.key.key)))

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        """The row's columns, or those named in ``payload``."""
        mapping: Mapping[str, Any] = item._mapping
        if self.payload is None:
            return dict(mapping)
        return {name: mapping[name] for name in self.payload}
