"""Item errors: written in the chunk's own transaction, masked before they are stored."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from retoma.model.masking import mask_payload, mask_text, storable
from retoma.model.records import Claim, ItemFault, OpenStep
from retoma.store import tables
from retoma.store.session import Session

_COLUMNS = (
    "instance_id",
    "run_id",
    "job_name",
    "step_name",
    "chunk_id",
    "item_key",
    "state",
    "kind",
    "reason",
    "field",
    "message",
    "payload",
    "due_at",
    "created_at",
)


def write(
    session: Session,
    step: OpenStep,
    claimed: Claim,
    faults: Sequence[ItemFault],
    personal: Collection[str],
) -> None:
    """Insert the chunk's item errors in bulk."""
    if not faults:
        return
    now = session.fetch("work.now", "SELECT {now}")[0][0]
    rows = [
        (
            step.instance_id,
            claimed.run_id,
            step.job_name,
            step.step_name,
            claimed.chunk_id,
            storable(fault.item_key, 240),  # an identifier: masked, it would find nothing again
            fault.state,
            fault.kind,
            storable(fault.reason, 50),
            None if fault.field is None else storable(fault.field, 80),
            storable(mask_text(fault.message)),
            mask_payload(fault.payload, personal),
            _instant(fault.due_at),
            now,
        )
        for fault in faults
    ]
    session.insert(tables.item_error, _COLUMNS, rows)


def _instant(value: Any) -> Any:
    return None if value is None else str(value)
