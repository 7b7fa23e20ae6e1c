"""The history checker finds what must not be, each by its name, and nothing where all is well."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from retoma.engine.history import Entry, Kind, append, log_from, no_log, read
from retoma.testing.history import Broken, Violation, violations
from retoma.testing.recorded import AttemptRow, ChunkRow, Recorded

RUN, STEP, SIZE = 1, 5, 10
OTHER_RUN = 99


def entry(kind: str, fence: int = 1, process: str = "a", items: int = SIZE, **more: int) -> Entry:
    """Something told of chunk 1, or of another; chunk n is the range from n·10 on."""
    chunk = more.pop("chunk", 1)
    start = chunk * SIZE
    values = {"run_id": RUN, "start": start, "end": start + SIZE, **more}
    return Entry(
        kind=Kind(kind), chunk_id=chunk, fence=fence, process=process, items=items, **values
    )


def chunk(number: int = 1, state: str = "COMPLETED", items: int = SIZE, **more: int) -> ChunkRow:
    start = number * SIZE
    ends = (str(start), str(start + SIZE))
    return ChunkRow(number, STEP, state, SIZE, *ends, items, more.get("outcomes", items))


def tables(
    *attempts: tuple[int, int, str],
    chunks: Sequence[ChunkRow] = (chunk(),),
    step_items: int | None = None,
) -> Recorded:
    """Rows of (chunk, fence, outcome), in the order in which they were written."""
    counted = sum(each.items for each in chunks) if step_items is None else step_items
    rows = tuple(AttemptRow(*row) for row in attempts)
    return Recorded(frozenset({RUN}), tuple(chunks), rows, {STEP: counted})


DONE = (1, 1, "COMPLETED")
LOST = (1, 1, "LOST")
WAITING = chunk(state="PENDING", items=0)
CLEAN: dict[str, tuple[list[Entry], Recorded]] = {
    "one attempt": ([entry("invoke"), entry("ok")], tables(DONE)),
    "nothing was done": ([], tables(chunks=())),
    "killed, taken over": (
        [entry("invoke"), entry("invoke", 2, "b"), entry("ok", 2, "b")],
        tables(LOST, (1, 2, "COMPLETED")),
    ),
    "killed after the commit": ([entry("invoke")], tables(DONE)),
    "frozen before it could tell, refused when it woke": (
        [
            entry("invoke", 2, "b"),
            entry("ok", 2, "b"),
            entry("invoke", 1, "a", items=0),
            entry("fail", 1, "a", items=0),
        ],
        tables(LOST, (1, 2, "COMPLETED")),
    ),
    "frozen in its work, refused at the finish": (
        [
            entry("invoke"),
            entry("invoke", 2, "b"),
            entry("ok", 2, "b"),
            entry("fail"),
        ],
        tables(LOST, (1, 2, "COMPLETED")),
    ),
    "in doubt, and it had committed": (
        [entry("invoke"), entry("unknown"), entry("ok")],
        tables(DONE),
    ),
    "in doubt, and it had not": (
        [entry("invoke"), entry("unknown"), entry("fail"), entry("invoke"), entry("ok")],
        tables(DONE),
    ),
    "in doubt for ever, it had committed, so the next try is refused": (
        [entry("invoke"), entry("unknown"), entry("invoke"), entry("fail")],
        tables(DONE),
    ),
    "in doubt for ever, and it had not": (
        [entry("invoke"), entry("unknown"), entry("invoke", 2, "b"), entry("ok", 2, "b")],
        tables(LOST, (1, 2, "COMPLETED")),
    ),
    "given back on request, then done": (
        [entry("invoke"), entry("invoke", 2), entry("ok", 2)],
        tables((1, 1, "GIVEN_BACK"), (1, 2, "COMPLETED")),
    ),
    "failed for good": (
        [entry("invoke"), entry("fail")],
        tables((1, 1, "FAILED"), chunks=(chunk(state="FAILED", items=0),)),
    ),
    "claimed, and dead before it could tell": ([], tables(LOST, chunks=(WAITING,))),
    "another instance in the same file": (
        [entry("invoke", chunk=8, run_id=OTHER_RUN), entry("invoke"), entry("ok")],
        tables(DONE),
    ),
    "lost three times, split, the halves done": (
        [
            *(entry("invoke", fence, process) for fence, process in enumerate("abc", start=1)),
            *(entry(kind, chunk=n) for n in (2, 3) for kind in ("invoke", "ok")),
        ],
        tables(
            *((1, fence, "LOST") for fence in (1, 2, 3)),
            (2, 1, "COMPLETED"),
            (3, 1, "COMPLETED"),
            chunks=(chunk(state="SPLIT", items=0), chunk(2), chunk(3)),
        ),
    ),
}


@pytest.mark.parametrize("name", CLEAN)
def test_nothing_is_found_where_all_is_well(name: str) -> None:
    assert violations(*CLEAN[name]) == []


NAMED: dict[Broken, tuple[list[Entry], Recorded]] = {
    Broken.END_WITHOUT_INVOKE: (
        [entry("fail", process="b"), entry("invoke"), entry("ok")],
        tables(DONE),
    ),
    Broken.FENCE_SHARED: (
        [entry("invoke"), entry("invoke", process="b"), entry("ok")],
        tables(DONE),
    ),
    Broken.FENCE_FELL: (
        [entry("invoke", 2), entry("fail", 2), entry("invoke", 1), entry("fail", 1)],
        tables((1, 1, "FAILED"), (1, 2, "FAILED"), chunks=(WAITING,)),
    ),
    Broken.TWO_OKS: (
        [entry("invoke"), entry("ok"), entry("invoke"), entry("ok")],
        tables(DONE),
    ),
    Broken.OK_AFTER_HIGHER_FENCE: (
        [entry("invoke"), entry("invoke", 2, "b"), entry("ok")],
        tables(DONE, (1, 2, "FAILED")),
    ),
    Broken.INVOKED_AFTER_COMMIT: (
        [entry("invoke"), entry("ok"), entry("invoke", 2, "b"), entry("fail", 2, "b")],
        tables(DONE, (1, 2, "FAILED")),
    ),
    Broken.OK_NOT_COMPLETED: (
        [entry("invoke"), entry("ok", items=0)],
        tables(LOST, chunks=(WAITING,)),
    ),
    Broken.COMPLETED_NOT_INVOKED: ([], tables(DONE)),
    Broken.FAIL_COMPLETED: ([entry("invoke"), entry("fail", items=0)], tables(DONE)),
    Broken.COUNTS_DIFFER: ([entry("invoke"), entry("ok", items=9)], tables(DONE)),
    Broken.RANGE_DIFFERS: ([entry("invoke"), entry("ok", end=21)], tables(DONE)),
    Broken.SUMS_DIFFER: ([entry("invoke"), entry("ok")], tables(DONE, step_items=11)),
    Broken.REWORK: (
        [entry("invoke"), entry("fail", items=11)],
        tables((1, 1, "FAILED"), chunks=(WAITING,)),
    ),
    Broken.NEVER_ENDED: ([entry("invoke", items=0)], tables(chunks=(WAITING,))),
}


def test_every_violation_has_its_history_here() -> None:
    assert set(NAMED) == set(Broken)


@pytest.mark.parametrize("broken", NAMED, ids=lambda broken: broken.name)
def test_each_violation_is_found_and_nothing_else(broken: Broken) -> None:
    found = violations(*NAMED[broken])
    assert [each.broken for each in found] == [broken]
    assert str(found[0]).startswith(f"{broken.name}: ")


MORE: dict[str, tuple[Broken, list[Entry], Recorded]] = {
    "the rows of attempts fall": (
        Broken.FENCE_FELL,
        [],
        tables((1, 2, "LOST"), LOST, chunks=(WAITING,)),
    ),
    "worked on again after a commit that nobody told": (
        Broken.INVOKED_AFTER_COMMIT,
        [entry("invoke"), entry("invoke", 2, "b"), entry("fail", 2, "b")],
        tables(DONE, (1, 2, "FAILED")),
    ),
    "an item without an outcome": (
        Broken.COUNTS_DIFFER,
        [entry("invoke"), entry("ok")],
        tables(DONE, chunks=(chunk(outcomes=9),)),
    ),
    "a chunk counts what no attempt committed": (
        Broken.SUMS_DIFFER,
        [entry("invoke"), entry("fail")],
        tables((1, 1, "FAILED"), chunks=(chunk(state="FAILED"),)),
    ),
    "computed a second time without a reason": (
        Broken.REWORK,
        [entry("invoke"), entry("fail"), entry("invoke", 2), entry("fail", 2)],
        tables((1, 2, "FAILED"), chunks=(WAITING,)),
    ),
}


@pytest.mark.parametrize("name", MORE)
def test_the_same_violation_shows_in_other_ways(name: str) -> None:
    broken, told, rows = MORE[name]
    assert broken in [each.broken for each in violations(told, rows)]


def test_a_violation_reads_as_a_sentence() -> None:
    found = violations(*NAMED[Broken.OK_AFTER_HIGHER_FENCE])
    assert str(found[0]) == (
        "OK_AFTER_HIGHER_FENCE: chunk 1: an attempt committed after its chunk was given to another"
        " (fence 1 committed, 2 was given out)"
    )
    assert str(Violation(Broken.SUMS_DIFFER, None, "step 5")).endswith("the step's (step 5)")


def test_several_writers_append_to_one_file(tmp_path: Path) -> None:
    path = tmp_path / "history"
    told = [entry("invoke"), entry("ok"), entry("invoke", 2, "b", end=None)]
    environment = {"RETOMA_HISTORY": str(path), "RETOMA_ALLOW_FAULTS": "1"}
    append(path, told[0])
    for each in told[1:]:
        log_from(environment)(each)
    assert read(path) == told
    assert path.stat().st_mode & 0o077 == 0


@pytest.mark.parametrize("missing", ["RETOMA_HISTORY", "RETOMA_ALLOW_FAULTS"])
def test_nothing_is_told_unless_faults_are_allowed_and_a_file_is_named(missing: str) -> None:
    environment = {"RETOMA_HISTORY": "somewhere", "RETOMA_ALLOW_FAULTS": "1"}
    assert log_from(environment | {missing: ""}) is no_log
