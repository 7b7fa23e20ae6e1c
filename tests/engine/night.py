"""One node driven by hand: launch, plan, claim, work, close, each when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from sqlalchemy import insert, select

from retoma.engine.history import Entry
from retoma.faults import Point, no_point
from retoma.model.job import Job
from retoma.model.records import RunRow
from retoma.model.status import RunState
from retoma.store import tables
from retoma.testing import FakeClock
from retoma.testing.history import check
from retoma.testing.one_slot import OneSlot
from tests.engine.small_job import DAY, effect, source

OUTCOMES = tables.COUNTS


class QuickClock(FakeClock):
    """Waits hardly at all, and tells who wants to know that somebody waits."""

    def __init__(self) -> None:
        super().__init__(longest_wait=0.02)
        self.on_pause: Callable[[], None] = lambda: None

    def sleep(self, seconds: float) -> None:
        self.on_pause()
        super().sleep(seconds)


class Night(OneSlot):
    """The slot with the small job's tables, and the day as its parameter."""

    def __init__(self, url: str, job: Job, *, point: Point = no_point, slot: int = 0) -> None:
        self.quick_clock = QuickClock()
        self.told: list[Entry] = []
        super().__init__(
            url, job, point=point, clock=self.quick_clock, slot=slot, log=self.told.append
        )

    def launch(self, parameters: Mapping[str, Any] = DAY) -> RunRow:
        return super().launch(parameters)

    def whole(self, parameters: Mapping[str, Any] = DAY) -> RunState:
        return super().whole(parameters)

    def prove_history(self, *others: Night) -> None:
        """What all nights on this database told of their attempts agrees with the tables."""
        told = [entry for night in (*others, self) for entry in night.told]
        assert check(told, self.store, self.run_id) == []

    def seed(self, verdicts: Sequence[str], first: int = 1) -> None:
        """Source rows with these verdicts; the amount of row n is 10·n."""
        rows = [
            {"id": n, "verdict": verdict, "amount": 10 * n}
            for n, verdict in enumerate(verdicts, start=first)
        ]
        with self.store.engine.begin() as connection:
            connection.execute(insert(source), rows)

    def change(self, statement: str) -> None:
        """Somebody else changes something and commits."""
        with self.store.engine.begin() as connection:
            connection.exec_driver_sql(statement)

    def effects(self) -> list[tuple[Any, ...]]:
        """All effects in the order of their keys."""
        columns = (effect.c.effect_key, effect.c.digest, effect.c.amount)
        return sorted(tuple(row) for row in self.session.fetch("t", select(*columns)))

    def faults(self) -> list[tuple[str, str, str]]:
        """Key, state and reason of each item error, sorted."""
        table = tables.item_error
        statement = select(table.c.item_key, table.c.state, table.c.reason)
        return sorted(tuple(row) for row in self.session.fetch("t", statement))

    def rows(self, table: Any) -> list[Any]:
        """All rows of a table in the order of their ids."""
        return self.session.fetch("t", select(table).order_by(table.c.id))

    def counts(self) -> dict[str, int]:
        """The counters of all chunks together; each chunk's equation is checked on the way."""
        total = dict.fromkeys(OUTCOMES, 0)
        for chunk in self.rows(tables.chunk):
            assert chunk.first_reads == sum(getattr(chunk, name) for name in OUTCOMES[1:])
            for name in OUTCOMES:
                total[name] += getattr(chunk, name)
        return total

    def chunk_states(self) -> list[str]:
        """The states of all chunks in the order of their ids."""
        return [chunk.state for chunk in self.rows(tables.chunk)]

    def attempts(self) -> list[tuple[int, str]]:
        """Fence and outcome of every attempt in the order of their ids."""
        return [(row.fence, row.outcome) for row in self.rows(tables.attempt)]
