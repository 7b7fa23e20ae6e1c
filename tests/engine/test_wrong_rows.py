"""A mistake of the job is not made into a completed run with everything set aside."""

from __future__ import annotations

from typing import Any

import pytest

from retoma.model.status import RunState
from tests.engine.conftest import Nights
from tests.engine.small_job import make_job


@pytest.mark.parametrize(
    ("row", "words"),
    [
        (("key", "digest", 1), "3 values"),
        (("key", "digest", 1, "note", "more"), "5 values"),
        ("abcd", "str"),
        ({"effect_key": "key"}, "dict"),
    ],
)
def test_a_row_of_another_shape_fails_the_run_and_names_the_columns(
    night: Nights, row: Any, words: str
) -> None:
    here = night(make_job(process=lambda item, context: row))
    here.seed(["post"] * 3)
    assert here.whole() is RunState.FAILED
    failure = str(here.run().failure)
    assert words in failure
    assert "effect_key, digest, amount, note" in failure
    assert here.effects() == []
    assert here.faults() == []


def test_rows_that_are_refused_one_after_the_other_fail_the_run(night: Nights) -> None:
    here = night()
    here.seed(["check"] * 30)
    assert here.whole() is RunState.FAILED
    assert "refused the first 20 rows" in str(here.run().failure)
    assert here.faults() == []


def test_a_failure_names_its_item_and_the_line_of_the_job(night: Nights) -> None:
    here = night()
    here.seed(["post", "post", "boom"])
    assert here.whole() is RunState.FAILED
    assert "item 3, small_job.py line" in str(here.run().failure)


def test_a_job_that_calls_exit_fails_the_run_in_words(night: Nights) -> None:
    def leave(item: Any, context: Any) -> Any:
        raise SystemExit(3)

    here = night(make_job(process=leave))
    here.seed(["post"])
    assert here.whole() is RunState.FAILED
    assert "called sys.exit(3) (item 1)" in str(here.run().failure)
