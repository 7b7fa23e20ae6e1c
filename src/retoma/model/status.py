"""The states of each noun and the one table of legal transitions."""

from __future__ import annotations

from enum import StrEnum


class InstanceState(StrEnum):
    """A job with its identifying parameters."""

    OPEN = "OPEN"
    COMPLETED = "COMPLETED"
    ABANDONED = "ABANDONED"


class RunState(StrEnum):
    """One execution of an instance."""

    CREATED = "CREATED"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIALLY_COMPLETED = "PARTIALLY_COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"


class StepState(StrEnum):
    """One row an instance and step name."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    PARTIALLY_COMPLETED = "PARTIALLY_COMPLETED"
    FAILED = "FAILED"
    STOPPED = "STOPPED"
    SKIPPED = "SKIPPED"


class PartitionState(StrEnum):
    """A stored slice of a step; CLAIMED means that cutting has begun, nobody owns a partition."""

    PENDING = "PENDING"
    CLAIMED = "CLAIMED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"


class ChunkState(StrEnum):
    """The unit of claim, lease, fence, transaction and checkpoint."""

    PENDING = "PENDING"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    SPLIT = "SPLIT"
    SKIPPED = "SKIPPED"


class AttemptOutcome(StrEnum):
    """How one claim of a chunk ended; the row is written once."""

    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    LOST = "LOST"
    GIVEN_BACK = "GIVEN_BACK"


class ItemErrorState(StrEnum):
    """What became of an item that was left out."""

    SET_ASIDE = "SET_ASIDE"
    NOT_READY = "NOT_READY"
    DEAD = "DEAD"
    IN_REVIEW = "IN_REVIEW"
    RESOLVED = "RESOLVED"
    IGNORED = "IGNORED"


class NodeState(StrEnum):
    """One supervisor and its slots."""

    ACTIVE = "ACTIVE"
    UNREACHABLE = "UNREACHABLE"
    REMOVED = "REMOVED"
    DRAINING = "DRAINING"
    LEFT = "LEFT"


TRANSITIONS: dict[type[StrEnum], dict[StrEnum, frozenset[StrEnum]]] = {
    InstanceState: {
        InstanceState.OPEN: frozenset({InstanceState.COMPLETED, InstanceState.ABANDONED}),
        InstanceState.COMPLETED: frozenset({InstanceState.OPEN}),  # by an audited retry only
        InstanceState.ABANDONED: frozenset(),
    },
    RunState: {
        RunState.CREATED: frozenset({RunState.RUNNING, RunState.FAILED, RunState.STOPPED}),
        RunState.RUNNING: frozenset(
            {
                RunState.COMPLETED,
                RunState.PARTIALLY_COMPLETED,
                RunState.FAILED,
                RunState.STOPPED,
            }
        ),
        RunState.COMPLETED: frozenset(),
        RunState.PARTIALLY_COMPLETED: frozenset(),
        RunState.FAILED: frozenset(),
        RunState.STOPPED: frozenset(),
    },
    StepState: {
        StepState.PENDING: frozenset({StepState.RUNNING, StepState.SKIPPED}),
        StepState.RUNNING: frozenset(
            {
                StepState.COMPLETED,
                StepState.PARTIALLY_COMPLETED,
                StepState.FAILED,
                StepState.STOPPED,
            }
        ),
        StepState.FAILED: frozenset({StepState.RUNNING}),  # by a new run of the instance
        StepState.STOPPED: frozenset({StepState.RUNNING}),
        StepState.COMPLETED: frozenset(),
        StepState.PARTIALLY_COMPLETED: frozenset(),
        StepState.SKIPPED: frozenset(),
    },
    PartitionState: {
        PartitionState.PENDING: frozenset({PartitionState.CLAIMED, PartitionState.COMPLETED}),
        PartitionState.CLAIMED: frozenset({PartitionState.COMPLETED, PartitionState.FAILED}),
        PartitionState.FAILED: frozenset({PartitionState.CLAIMED}),
        PartitionState.COMPLETED: frozenset(),
    },
    ChunkState: {
        ChunkState.PENDING: frozenset({ChunkState.RUNNING, ChunkState.SKIPPED, ChunkState.SPLIT}),
        ChunkState.RUNNING: frozenset(
            {ChunkState.COMPLETED, ChunkState.PENDING, ChunkState.FAILED, ChunkState.SPLIT}
        ),
        ChunkState.FAILED: frozenset({ChunkState.PENDING, ChunkState.SKIPPED}),
        ChunkState.COMPLETED: frozenset(),
        ChunkState.SPLIT: frozenset(),
        ChunkState.SKIPPED: frozenset(),
    },
    ItemErrorState: {
        ItemErrorState.SET_ASIDE: frozenset(
            {
                ItemErrorState.DEAD,
                ItemErrorState.IN_REVIEW,
                ItemErrorState.RESOLVED,
                ItemErrorState.IGNORED,
            }
        ),
        ItemErrorState.NOT_READY: frozenset(
            {
                ItemErrorState.DEAD,
                ItemErrorState.IN_REVIEW,
                ItemErrorState.RESOLVED,
                ItemErrorState.IGNORED,
            }
        ),
        ItemErrorState.DEAD: frozenset(
            {ItemErrorState.IN_REVIEW, ItemErrorState.RESOLVED, ItemErrorState.IGNORED}
        ),
        ItemErrorState.IN_REVIEW: frozenset(
            {ItemErrorState.DEAD, ItemErrorState.RESOLVED, ItemErrorState.IGNORED}
        ),
        ItemErrorState.RESOLVED: frozenset(),
        ItemErrorState.IGNORED: frozenset(),
    },
    NodeState: {
        NodeState.ACTIVE: frozenset(
            {NodeState.UNREACHABLE, NodeState.DRAINING, NodeState.LEFT, NodeState.REMOVED}
        ),
        NodeState.UNREACHABLE: frozenset({NodeState.ACTIVE, NodeState.LEFT, NodeState.REMOVED}),
        NodeState.DRAINING: frozenset({NodeState.UNREACHABLE, NodeState.LEFT, NodeState.REMOVED}),
        NodeState.REMOVED: frozenset(),  # heard again, it registers as a new incarnation
        NodeState.LEFT: frozenset(),
    },
}


def is_legal(before: StrEnum, after: StrEnum) -> bool:
    """Whether the one table of transitions allows to go from ``before`` to ``after``."""
    return after in TRANSITIONS[type(before)].get(before, frozenset())
