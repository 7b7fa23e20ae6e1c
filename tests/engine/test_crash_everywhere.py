"""A process may die at any statement: taken over and run to its end, the result is the same."""

from __future__ import annotations

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from retoma.model.status import RunState
from retoma.store import tables
from tests.engine.night import Night
from tests.engine.small_job import make_job, metadata
from tests.store.shared import SharedDatabases

VERDICTS = ["post", "same", "aside", "null", "defer"]


class Death(BaseException):
    """The process is gone; no handler of errors may catch it."""


class DiesAt:
    """A scheduling point that ends everything before the n-th statement.

    Dying right after a statement is dying before the next: nothing outside the process happens
    in between.
    """

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, name: str) -> None:
        self.left -= not name.endswith(".after")
        if self.left == 0:
            raise Death(name)


def result_of(night: Night) -> Any:
    """What must not depend on deaths: effects, item errors, counters, states."""
    run = night.run()
    witnesses = [a for a in night.rows(tables.attempt) if a.outcome == "COMPLETED"]
    assert len(witnesses) == len({a.chunk_id for a in witnesses}) == len(night.chunk_states())
    assert set(night.chunk_states()) == {"COMPLETED"}
    assert len(night.rows(tables.run)) == 1
    return night.effects(), night.faults(), night.counts(), run.state, run.instance_state


def live_and_die(url: str, number: int) -> Any:
    """A night that dies at the n-th statement, and its successor's result; None if it lived on."""
    job = make_job(chunk_size=3)
    night = Night(url, job, point=DiesAt(number))
    is_alive = False
    try:
        night.whole()
        is_alive = True
    except Death:
        pass
    finally:
        night.close()
    if is_alive:
        return None
    successor = Night(url, job, slot=1)
    try:
        successor.launch()
        successor.take_over_all()
        state = successor.to_end() if successor.run().is_live else successor.run().state
        assert state == RunState.PARTIALLY_COMPLETED
        return result_of(successor)
    finally:
        successor.close()


def seeded(url: str) -> None:
    night = Night(url, make_job())
    night.seed(VERDICTS)
    night.close()


def empty(url: str) -> None:
    night = Night(url, make_job())
    night.change("DELETE FROM effect")
    for table in tables.metadata.tables:
        if table != "batch_store":
            night.change(f"DELETE FROM {table}")
    night.close()


def undisturbed(url: str) -> Any:
    night = Night(url, make_job(chunk_size=3))
    try:
        assert night.whole() is RunState.PARTIALLY_COMPLETED
        return result_of(night)
    finally:
        night.close()


def urls(shared: SharedDatabases, backend: str, folder: Path) -> Iterator[str]:
    """Again and again a database with nothing in it but the source."""
    with shared.url(backend, folder, metadata) as prepared:
        seeded(prepared)
        for number in itertools.count():
            if backend == "sqlite":
                copy = folder / f"{number}.db"
                shutil.copy(folder / "retoma.db", copy)
                yield f"sqlite:///{copy}"
            else:
                empty(prepared)
                yield prepared


def check_every_death(shared: SharedDatabases, backend: str, folder: Path) -> int:
    """Die before every statement, one after the other; the number of deaths."""
    fresh = urls(shared, backend, folder)
    expected = undisturbed(next(fresh))
    for number in range(1, 2_000):
        found = live_and_die(next(fresh), number)
        if found is None:
            return number - 1
        assert found == expected, f"dead at statement {number}"
    raise AssertionError("the run never ends")


def test_a_death_at_any_statement_changes_nothing(
    shared_databases: SharedDatabases, tmp_path: Path
) -> None:
    deaths = check_every_death(shared_databases, "sqlite", tmp_path)
    assert deaths > 80


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", ["postgres", "mariadb"])
def test_a_death_at_any_statement_changes_nothing_on_a_server(
    shared_databases: SharedDatabases, tmp_path: Path, backend: str
) -> None:
    deaths = check_every_death(shared_databases, backend, tmp_path)
    assert deaths > 40
