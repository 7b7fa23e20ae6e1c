"""The one table of transitions: every state is in it, and what is final stays final."""

from __future__ import annotations

from enum import StrEnum

import pytest

from retoma.model import status
from retoma.model.status import (
    TRANSITIONS,
    ChunkState,
    InstanceState,
    ItemErrorState,
    NodeState,
    PartitionState,
    RunState,
    StepState,
    is_legal,
)

FINAL: dict[type[StrEnum], str] = {
    InstanceState: "ABANDONED",
    RunState: "COMPLETED PARTIALLY_COMPLETED FAILED STOPPED",
    StepState: "COMPLETED PARTIALLY_COMPLETED SKIPPED",
    PartitionState: "COMPLETED",
    ChunkState: "COMPLETED SPLIT SKIPPED",
    ItemErrorState: "RESOLVED IGNORED",
    NodeState: "REMOVED LEFT",
}
ENUMS = [
    value
    for value in vars(status).values()
    # An attempt's outcome is written once: it has no transitions.
    if isinstance(value, type) and issubclass(value, StrEnum)
    and value not in (StrEnum, status.AttemptOutcome)
]  # fmt: skip


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_every_state_has_its_row_and_leads_to_states_of_its_own_kind(kind: type[StrEnum]) -> None:
    table = TRANSITIONS[kind]
    assert set(table) == set(kind)
    for before, exits in table.items():
        assert all(isinstance(after, kind) for after in exits)
        assert before not in exits


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_exactly_the_final_states_have_no_exit(kind: type[StrEnum]) -> None:
    final = {str(state) for state, exits in TRANSITIONS[kind].items() if not exits}
    assert final == set(FINAL[kind].split())


@pytest.mark.parametrize("kind", ENUMS, ids=lambda kind: kind.__name__)
def test_every_state_can_be_reached_from_the_first(kind: type[StrEnum]) -> None:
    firsts = [state for state in kind if not any(state in e for e in TRANSITIONS[kind].values())]
    reached = {next(iter(kind)), *firsts}
    for _ in kind:
        reached |= {after for state in reached for after in TRANSITIONS[kind][state]}
    assert reached == set(kind)
    assert len(firsts) <= 2  # an item error begins as set aside or as not ready


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        (ChunkState.RUNNING, ChunkState.COMPLETED, True),
        (ChunkState.PENDING, ChunkState.COMPLETED, False),
        (ChunkState.COMPLETED, ChunkState.RUNNING, False),
        (RunState.FAILED, RunState.RUNNING, False),
        (StepState.FAILED, StepState.RUNNING, True),
        (InstanceState.COMPLETED, InstanceState.OPEN, True),
        (InstanceState.ABANDONED, InstanceState.OPEN, False),
        (NodeState.UNREACHABLE, NodeState.ACTIVE, True),
        (NodeState.LEFT, NodeState.ACTIVE, False),
    ],
)
def test_a_transition_is_legal_only_if_the_table_has_it(
    before: StrEnum, after: StrEnum, expected: bool
) -> None:
    assert is_legal(before, after) is expected
