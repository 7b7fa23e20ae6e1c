"""A job whose process dies at one item."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

from retoma import ItemStep, Job, StepContext
from retoma.testing import Killed
from tests.writers.export import to_row


@dataclass(frozen=True)
class DiesAtItem:
    """In place of the job's function."""

    number: int

    def __call__(self, item: Any, context: StepContext) -> Any:
        row = to_row(item, context)
        if row and row[0] == self.number:
            raise Killed("at the item")
        return row

    def within(self, job: Job) -> Job:
        """The job with it."""
        first, *rest = job.steps
        assert isinstance(first, ItemStep)
        return replace(job, steps=(replace(first, process=self), *rest))
