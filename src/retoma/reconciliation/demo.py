"""The demo: a night is posted, its workers are killed in the middle, and the proof is made.

Nothing is staged: the workers are those of ``retoma worker``, the kills are SIGKILL, and the proof
reads source, ledger and the side files of the killed processes.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import date, timedelta
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Engine, func, select

import retoma
from retoma import EmbeddedPostgres, RetomaError, Store, UsageError
from retoma.reconciliation.demo_display import Display
from retoma.reconciliation.demo_night import Outcome, post_under_kills
from retoma.reconciliation.demo_trace import chunk_ranges, chunks_with, rework_of
from retoma.reconciliation.posting import JOB
from retoma.reconciliation.synthetic import NightTotals, make_night
from retoma.reconciliation.tables import create_tables, financial_transaction

_FIRST_NIGHT: Final = date(2026, 11, 30)
_MOST_WORKERS = 64
_CHUNKS_A_NIGHT = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What is asked of a demo.

    ``database``: a URL, ``embedded`` for a throw-away PostgreSQL, or None for an SQLite file that
    is removed afterwards. ``seed`` decides the night and the moments of the kills.
    """

    transactions: int = 100_000
    workers: int = 2
    database: str | None = None
    seed: int = 1

    def __post_init__(self) -> None:
        if self.transactions < 1:
            raise UsageError("the demo needs at least 1 transaction")
        if not 1 <= self.workers <= _MOST_WORKERS:
            raise UsageError(f"the demo needs between 1 and {_MOST_WORKERS} workers")

    @property
    def chunk_size(self) -> int:
        """Small nights get small chunks, so that there are some to lose."""
        return min(10_000, max(20, self.transactions // _CHUNKS_A_NIGHT))


def run_demo(plan: Plan, display: Display) -> dict[str, Any]:
    """Make a night, post it under kills, and prove it; ``is_clean`` says whether the proof holds.

    Whatever happens, the workers and the database server that it started are ended. Its files are
    kept only if something went wrong; then ``files``, or the error, names their directory. In a
    database that has nights already, the day after the last one is taken.
    """
    directory = _new_directory()
    is_kept = False
    try:
        with _database(plan, directory) as url:
            result = _demonstrate(plan, display, url, directory)
        is_kept = not result["is_clean"]
        if is_kept:
            result["files"] = str(directory)
        return result
    except RetomaError as error:
        is_kept = any(directory.glob("*.log"))
        if is_kept:
            error.next_step = error.next_step or f"the workers' logs are in {directory}"
        raise
    finally:
        if not is_kept:
            shutil.rmtree(directory, ignore_errors=True)


def _demonstrate(plan: Plan, display: Display, url: str, directory: Path) -> dict[str, Any]:
    store = Store(url)
    try:
        store.check_connection()
        create_tables(store.engine)
        night_date = _free_date(store.engine)
        display.say(f"making a night of {plan.transactions:,} transactions for {night_date}")
        night = make_night(store.engine, plan.transactions, plan.seed, night_date)
        run_id = retoma.submit(store, JOB, {"reference_date": night_date})
        outcome = post_under_kills(
            store,
            run_id,
            directory,
            workers=plan.workers,
            chunk_size=plan.chunk_size,
            seed=plan.seed,
            display=display,
        )
        display.say("proving it from source, ledger and side files")
        return _proof(store, run_id, night, outcome, directory)
    finally:
        store.dispose()


def _proof(
    store: Store, run_id: int, night: NightTotals, outcome: Outcome, directory: Path
) -> dict[str, Any]:
    now, found = retoma.status(store, run_id), retoma.verify(store, JOB, run_id)
    rework = rework_of(directory / "traces")
    ranges = chunk_ranges(store.engine, run_id, "COMPLETED")
    counts = {
        "transactions": night.transactions,
        "entries": int(found["found"]),
        "item_errors": int(now["set_aside"]),
        "deferred": int(now["deferred"]),
        "already_done": int(now["already_done"]),
    }
    adds_up = 2 * counts["transactions"] == sum(counts.values())
    is_as_made = (counts["entries"], counts["item_errors"], counts["deferred"]) == (
        night.entries,
        night.item_errors,
        night.deferred,
    )
    is_done = now["state"] in ("COMPLETED", "PARTIALLY_COMPLETED")
    return {
        "state": now["state"],
        "run": run_id,
        "reference_date": night.reference_date.isoformat(),
        **counts,
        "expected_entries": night.entries,
        "missing": found["missing"],
        "duplicate": found["duplicate"],
        "unexpected": found["unexpected"],
        "sum_difference": found["sum_difference"],
        "kills": outcome.kills,
        "chunks_total": len(ranges),
        "chunks_repeated": chunks_with(rework.repeated_ids, ranges),
        "items_recomputed": rework.items_recomputed,
        "seconds": round(outcome.seconds, 3),
        "items_per_second": round(night.transactions / outcome.seconds, 1),
        "notes": [*found["broken"], *found["notes"]],
        "is_clean": bool(is_done and found["is_clean"] and adds_up and is_as_made),
    }


def _free_date(engine: Engine) -> date:
    with engine.connect() as connection:
        last = connection.execute(select(func.max(financial_transaction.c.business_date))).scalar()
    return _FIRST_NIGHT if last is None else last + timedelta(days=1)


def _new_directory() -> Path:
    try:
        return Path(tempfile.mkdtemp(prefix="retoma-demo-"))
    except OSError as error:
        raise UsageError(
            f"no temporary directory can be made: {error}",
            safe="Nothing was started.",
            next_step="name a directory that can be written in TMPDIR",
        ) from None


@contextmanager
def _database(plan: Plan, directory: Path) -> Iterator[str]:
    if plan.database != "embedded":
        yield plan.database or f"sqlite:///{directory / 'demo.db'}"
        return
    server = EmbeddedPostgres()
    try:
        url = server.start()
    except RuntimeError as error:
        raise UsageError(str(error), safe="Nothing was started.") from None
    try:
        yield url
    finally:
        server.stop()
