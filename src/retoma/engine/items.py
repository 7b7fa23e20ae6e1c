"""A job's function over the items of a chunk: outside any transaction, one outcome an item."""

from __future__ import annotations

import traceback
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from retoma.errors import FailureKind, InvalidItem, ItemNotReady
from retoma.model.items import NotReady, Page, SetAside, StepContext
from retoma.model.job import ItemStep
from retoma.model.records import ItemFault
from retoma.model.status import ItemErrorState


@dataclass(slots=True)
class Processed:
    """Rows to write with the items they came from, and the items left out so far."""

    rows: list[Any] = field(default_factory=list)
    origins: list[Any] = field(default_factory=list)
    faults: list[ItemFault] = field(default_factory=list)
    filtered: int = 0


def process_page(definition: ItemStep, context: StepContext, page: Page) -> Processed:
    """Call the job's function for each item; an error that it does not name fails the attempt."""
    result = Processed()
    function = definition.process
    add_row, add_origin = result.rows.append, result.origins.append
    for item in page.items:
        try:
            outcome = function(item, context)
        except InvalidItem as error:
            outcome = SetAside(error.reason, error.message, error.field)
        except ItemNotReady as error:
            outcome = NotReady(error.reason, error.message, error.field)
        except SystemExit as error:
            raise RuntimeError(
                f"the job's function called sys.exit({error.code!r})"
                f" (item {definition.reader.key_of(item)})"
            ) from error
        except Exception as error:
            error.add_note(f"item {definition.reader.key_of(item)}{_place(error)}")
            raise
        kind = type(outcome)
        if kind is SetAside or kind is NotReady:
            result.faults.append(fault_of(definition, item, outcome))
        elif outcome is None:
            result.filtered += 1
        else:
            add_row(outcome)
            add_origin(item)
    return result


def _place(error: BaseException) -> str:
    """Where in the job's own code an error came from."""
    frames = traceback.extract_tb(error.__traceback__)
    return f", {Path(frames[-1].filename).name} line {frames[-1].lineno}" if frames else ""


def fault_of(definition: ItemStep, item: Any, outcome: SetAside | NotReady) -> ItemFault:
    """What the item error row will hold of an item that is left out."""
    is_deferred = isinstance(outcome, NotReady)
    return ItemFault(
        item_key=definition.reader.key_of(item),
        state=ItemErrorState.NOT_READY if is_deferred else ItemErrorState.SET_ASIDE,
        kind=FailureKind.NOT_READY if is_deferred else FailureKind.INVALID_ITEM,
        reason=outcome.reason,
        message=outcome.message,
        field=outcome.field,
        payload=definition.reader.payload_of(item),
        due_at=outcome.due_at if isinstance(outcome, NotReady) else None,
    )
