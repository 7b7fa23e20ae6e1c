"""Inserts a chunk's rows into a table with an idempotency key: each effect once, over all runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Table, and_, select, tuple_

from retoma.model.items import StepContext, Transaction, Written

_KEYS_A_QUERY = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class TableWriter:
    """Plain bulk insert; where a key exists already, a comparison of digests instead.

    ``columns`` name the values of a row in their order. ``keys`` are the table's unique indexes, the
    idempotency key first. ``digest`` is the column that tells whether the existing effect is the
    same: same digest → already done; another one → the row is reported as a conflict.
    """

    table: Table
    columns: tuple[str, ...]
    keys: tuple[tuple[str, ...], ...]
    digest: str

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        """Insert the rows that are not there yet; raises ``TypeError`` for a row of another shape."""
        self._require_shape(rows)
        if not carefully:
            tx.insert(self.table, self.columns, rows)
            return Written(done=len(rows))
        known = [self._existing(tx, key, rows) for key in self.keys]
        places = [[self.columns.index(name) for name in key] for key in self.keys]
        digest_place = self.columns.index(self.digest)
        fresh: list[Any] = []
        conflicts: list[int] = []
        already = 0
        for position, row in enumerate(rows):
            digest = row[digest_place]
            values = [tuple(row[place] for place in key) for key in places]
            found = [
                seen[value] for seen, value in zip(known, values, strict=True) if value in seen
            ]
            if not found:
                fresh.append(row)
                for seen, value in zip(known, values, strict=True):
                    seen[value] = digest
            elif all(other == digest for other in found):
                already += 1
            else:
                conflicts.append(position)
        tx.insert(self.table, self.columns, fresh)
        return Written(done=len(fresh), already=already, conflicts=tuple(conflicts))

    def _require_shape(self, rows: Sequence[Any]) -> None:
        width = len(self.columns)
        for row in rows:
            if not isinstance(row, tuple | list) or len(row) != width:
                what = f"{len(row)} values" if isinstance(row, tuple | list) else type(row).__name__
                raise TypeError(
                    f"the job's function returned {what} for a row of {self.table.name}, which takes"
                    f" a tuple of {width}: {', '.join(self.columns)}"
                )

    def _existing(
        self, tx: Transaction, key: tuple[str, ...], rows: Sequence[Any]
    ) -> dict[tuple[Any, ...], Any]:
        """The digests of the keys that the table has already, in a few queries a chunk."""
        places = [self.columns.index(name) for name in key]
        wanted = list(dict.fromkeys(tuple(row[place] for place in places) for row in rows))
        columns = [self.table.c[name] for name in key]
        found: dict[tuple[Any, ...], Any] = {}
        for base in range(0, len(wanted), _KEYS_A_QUERY):
            part = wanted[base : base + _KEYS_A_QUERY]
            same = [n for n in range(len(key)) if len({value[n] for value in part}) == 1]
            rest = [n for n in range(len(key)) if n not in same]
            where = [columns[n] == part[0][n] for n in same]
            if len(rest) == 1:
                where.append(columns[rest[0]].in_([value[rest[0]] for value in part]))
            elif rest:
                where.append(
                    tuple_(*(columns[n] for n in rest)).in_(
                        [tuple(v[n] for n in rest) for v in part]
                    )
                )
            statement = select(*columns, self.table.c[self.digest]).where(and_(*where))
            for row in tx.fetch("writer.existing", statement):
                found[tuple(row[:-1])] = row[-1]
        return found
