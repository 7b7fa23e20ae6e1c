"""Reads files as a step does, chunk by chunk, each by another process."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retoma.engine.items import Processed, process_page
from retoma.model.items import Page, PartitionPlan, StepContext
from retoma.model.job import ItemStep
from retoma.readers.record import BadRecord

Make = Callable[[], Any]


def context_of(plan: PartitionPlan | None = None) -> StepContext:
    partition = json.loads(json.dumps(dict(plan.context))) if plan else {}
    return StepContext("job", "step", 1, 1, {}, partition)


def plans_of(reader: Any, partitions: int = 1) -> list[PartitionPlan]:
    return reader.plan(None, context_of(), partitions)


def stored(key: Any) -> Any:
    return json.loads(json.dumps(key))


def pages(make: Make, size: int, partitions: int = 1) -> list[Page]:
    """All chunks; a new reader for each, as if another process took up each time."""
    found = []
    for plan in plans_of(make(), partitions):
        context, at, is_last = context_of(plan), stored(plan.low), False
        while not is_last:
            reader = make()
            if reader.order == "strict":
                page = reader.read(None, context, at, None, size)
                is_last = page.is_last
            else:
                end = reader.next_end(None, context, at, plan.high, size)
                if end is None:
                    break
                page = reader.read(None, context, at, end, size)
            at = stored(page.end)
            assert page.measure.count == len(page.items)
            found.append(page)
    return found


def items(make: Make, size: int = 1_000, partitions: int = 1) -> list[Any]:
    return [item for page in pages(make, size, partitions) for item in page.items]


def told(item: Any) -> Any:
    """What is compared: place and fields, or place and reason."""
    if isinstance(item, BadRecord):
        return item.offset, item.reason
    return item.offset, dict(item)


def fields(make: Make, **more: Any) -> list[Any]:
    """The fields of good records and the reasons of bad ones."""
    return [told(item)[1] for item in items(make, **more)]


def write(folder: Path, content: str | bytes, name: str = "in.txt") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def processed(reader: Any, page: Page, process: Any) -> Processed:
    """What the engine makes of a page."""
    step = ItemStep(name="step", reader=reader, process=process, writer=None)  # type: ignore[arg-type]
    return process_page(step, context_of(), page)
