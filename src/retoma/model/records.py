"""One frozen record a control row, as the code passes it on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from retoma.model.items import Key, Value


@dataclass(frozen=True, slots=True)
class Claim:
    """The right to one chunk: who holds it proves it by fence and token, until the lease ends."""

    chunk_id: int
    step_id: int
    partition_id: int
    run_id: int
    fence: int
    token: str
    start: Key
    end: Key | None
    size: int
    tries: int
    losses: int
    session_name: str


@dataclass(frozen=True, slots=True)
class Owner:
    """A slot of a node, as it stands on the chunk row."""

    node_id: int
    slot: int
    pid: int


@dataclass(frozen=True, slots=True)
class Counts:
    """What became of a chunk's first reads; the equation holds when ``unexplained`` is 0."""

    first_reads: int = 0
    done: int = 0
    already_done: int = 0
    filtered: int = 0
    set_aside: int = 0
    deferred: int = 0

    @property
    def unexplained(self) -> int:
        """Items read for which no outcome was counted."""
        outcomes = self.done + self.already_done + self.filtered + self.set_aside + self.deferred
        return self.first_reads - outcomes


@dataclass(frozen=True, slots=True)
class ItemFault:
    """An item that a chunk leaves out: what the item error row will hold, not yet masked."""

    item_key: str
    state: str
    kind: str
    reason: str
    message: str
    field: str | None
    payload: Mapping[str, Any]
    due_at: Any = None


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A step that may give work: what a slot needs to know to claim from it."""

    step_id: int
    step_name: str
    run_id: int
    instance_id: int
    job_name: str
    parameters: str
    has_waiting: bool = True
    """Whether chunks of it wait to be claimed: an idle slot only reads."""


@dataclass(frozen=True, slots=True)
class UncutPartition:
    """A partition whose rest has not been cut into chunks yet."""

    partition_id: int
    run_order: str
    cut_to: Key
    high: Key
    context: Mapping[str, Any]
    is_untouched: bool


@dataclass(frozen=True, slots=True)
class RunRow:
    """A run with its instance."""

    run_id: int
    instance_id: int
    job_name: str
    state: str
    is_live: bool
    parameters: str
    stop_requested: bool
    coordinator: int | None
    coordination_token: str | None
    is_coordinated: bool
    coordination_until: str
    failure_kind: str | None
    failure: str | None
    instance_state: str
    fingerprint: str


@dataclass(frozen=True, slots=True)
class StepRow:
    """A step of an instance."""

    step_id: int
    name: str
    position: int
    state: str
    accepting: bool
    version: int
    is_planned: bool
    pinned_count: int | None
    pinned_version_sum: int | None
    failure: str | None


@dataclass(frozen=True, slots=True)
class StepProgress:
    """One aggregate over a step's chunks and partitions."""

    uncut: int
    blocked: int
    pending: int
    running: int
    completed: int
    failed: int
    counts: Counts
    version_sum: int

    def missing_from(self, step: StepRow) -> str | None:
        """In words: fewer items are read than were planned; None if nothing of the plan is missing.

        Nothing of the pinned input may stay unread without a reason. A row that arrives in time to be
        read is worked off like the others, so more is no fault.
        """
        if step.pinned_count is None or self.counts.first_reads >= step.pinned_count:
            return None
        return (
            f"step {step.name}: {step.pinned_count} items were planned,"
            f" {self.counts.first_reads} are read"
        )


@dataclass(frozen=True, slots=True)
class NodeIdentity:
    """What a supervisor says of itself when it registers."""

    name: str
    incarnation: str
    slots: int
    code_version: str
    host: str
    boot_id: str
    pid_namespace: str
    pid: int
    pid_started: str


LaunchValues = Mapping[str, Value]
