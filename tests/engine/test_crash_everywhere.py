"""A process may die at any statement: taken over and run to its end, the result is the same."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import Connection, insert, text

from retoma.model.status import RunState
from retoma.testing import CrashReport, crash_everywhere
from tests.engine.small_job import DAY, make_job, metadata, source
from tests.store.shared import SharedDatabases

VERDICTS = ["post", "same", "aside", "null", "defer"]
JOB = replace(make_job(chunk_size=3), prepare=metadata.create_all)
COUNTS = (
    "sum(first_reads), sum(done), sum(already_done), sum(filtered), sum(set_aside), sum(deferred)"
)
WHAT_MUST_NOT_DEPEND_ON_DEATHS = (
    "SELECT effect_key, digest, amount FROM effect ORDER BY 1",
    "SELECT item_key, state, reason FROM batch_item_error ORDER BY 1",
    f"SELECT {COUNTS} FROM batch_chunk",
    "SELECT state, count(*) FROM batch_chunk GROUP BY state",
    "SELECT count(*), count(DISTINCT chunk_id) FROM batch_attempt WHERE outcome = 'COMPLETED'",
    "SELECT state FROM batch_run",
    "SELECT state FROM batch_instance",
)


def seed(connection: Connection) -> None:
    rows = [{"id": n, "verdict": v, "amount": 10 * n} for n, v in enumerate(VERDICTS, start=1)]
    connection.execute(insert(source), rows)


def result(connection: Connection) -> Any:
    found = (connection.execute(text(ask)).all() for ask in WHAT_MUST_NOT_DEPEND_ON_DEATHS)
    return [[tuple(row) for row in rows] for rows in found]


def crash(database: Path | Callable[[], str]) -> CrashReport:
    report = crash_everywhere(JOB, database, DAY, result=result, seed=seed)
    assert report.state is RunState.PARTIALLY_COMPLETED
    assert {"work.begin", "chunk.witness", "chunk.finish", "work.commit"} <= set(report.points)
    return report


def test_a_death_at_any_statement_changes_nothing(tmp_path: Path) -> None:
    assert crash(tmp_path).deaths > 80


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("backend", ["postgres", "mariadb"])
def test_a_death_at_any_statement_changes_nothing_on_a_server(
    shared_databases: SharedDatabases, tmp_path: Path, backend: str
) -> None:
    with ExitStack() as last:

        def emptied() -> str:
            last.close()
            return last.enter_context(shared_databases.url(backend, tmp_path, metadata))

        assert crash(emptied).deaths > 40
