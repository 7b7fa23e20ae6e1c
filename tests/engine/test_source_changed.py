"""The input is pinned: what changed behind the reader's back fails the run and is named."""

from __future__ import annotations

import pytest

from retoma.model.status import RunState
from tests.engine.conftest import Nights
from tests.engine.small_job import make_job


def half_done(night: Nights) -> object:
    here = night(make_job(chunk_size=3))
    here.seed(["post"] * 3)
    here.seed(["post"] * 3, first=11)
    here.launch()
    here.advance()
    assert here.work_one() is not None
    return here


@pytest.mark.parametrize(
    ("statement", "words"),
    [
        ("INSERT INTO source VALUES (2000, 'post', 1, 1)", None),
        ("INSERT INTO source VALUES (0, 'post', 1, 1)", None),
        ("UPDATE source SET version = version + 1 WHERE id = 12", None),
        (
            "INSERT INTO source VALUES (3000, 'post', 1, 1)",
            None,
        ),
        (
            "UPDATE source SET version = version + 1 WHERE id = 2",
            "6 items read (version sum 6), 6 there now (version sum 7)",
        ),
        ("DELETE FROM source WHERE id = 2", "6 items read (version sum 6), 5 there now"),
        (
            "UPDATE source SET id = 4 WHERE id = 99",
            None,
        ),
    ],
)
def test_a_change_of_what_was_read_fails_the_run(
    night: Nights, statement: str, words: str | None
) -> None:
    here = half_done(night)
    here.change(statement)
    ended = here.to_end()
    if words is None:
        assert ended is RunState.COMPLETED  # it lies beyond the pinned range, or was read as it is
        return
    assert ended is RunState.FAILED
    run = here.run()
    assert run.failure_kind == "SOURCE_CHANGED"
    assert words in str(run.failure)
    assert run.instance_state == "OPEN"
    assert len(here.effects()) == 6
