"""A task step as the engine sees it: one chunk whose only item is the task itself."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from retoma.model.items import (
    Key,
    Measure,
    Page,
    PartitionPlan,
    Source,
    StepContext,
    Transaction,
    Written,
)
from retoma.model.job import ItemStep, Step, TaskStep


@dataclass(frozen=True, slots=True)
class _Once:
    """One partition, one chunk, one item."""

    order: str = field(default="any", init=False)

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        return [PartitionPlan(name="task", low=0, high=1)]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure:
        return Measure(count=1)

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        return high if cursor != high else None

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        return Page(items=["task"], end=end, measure=Measure(count=1))

    def key_of(self, item: Any) -> str:
        return "task"

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        return {}


@dataclass(frozen=True, slots=True)
class _Work:
    """The task's callable in the place of a writer; the task counts as one thing done."""

    task: TaskStep

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        self.task.work(tx, context)
        return Written(done=len(rows))


def as_item_step(step: Step) -> ItemStep:
    """The step itself, or the task in the shape of an item step."""
    if isinstance(step, ItemStep):
        return step
    return ItemStep(
        name=step.name,
        reader=_Once(),
        process=lambda item, _context: item,
        writer=_Work(step),
        chunk_size=1,
        partitions=1,
        attempt_deadline_seconds=step.attempt_deadline_seconds,
    )
