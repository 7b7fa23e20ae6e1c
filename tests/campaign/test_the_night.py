"""The night itself: millions of transactions, all workers killed at 90 %, taken up again.

The volume is ``RETOMA_NIGHT`` transactions (default 500,000); a release is measured at 5,000,000.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import date
from pathlib import Path
from typing import Any

import psutil
import pytest
import sqlalchemy as sa

import retoma
from retoma.reconciliation.posting import JOB
from retoma.reconciliation.synthetic import make_night
from retoma.reconciliation.tables import create_tables

pytestmark = pytest.mark.campaign

VOLUME = int(os.environ.get("RETOMA_NIGHT", "500000"))
NIGHT = date(2026, 11, 30)
KILL_AT = 0.9


class Workers:
    """Two workers of one slot each, and the highest memory that any slot ever held."""

    def __init__(self, url: str, folder: Path) -> None:
        self._command = [sys.executable, "-m", "retoma", "worker", "--slots", "1"]
        self._environment = {**os.environ, "RETOMA_DATABASE": url}
        self._folder = folder
        self.running: list[subprocess.Popen[bytes]] = []
        self.peak_kib = 0

    def start(self) -> None:
        for _ in range(2):
            with (self._folder / f"worker-{len(self.running)}.log").open("ab") as log:
                process = subprocess.Popen(
                    self._command, env=self._environment, stderr=log, start_new_session=True
                )
            self.running.append(process)

    def look(self) -> None:
        for process in self.running:
            try:
                slots = psutil.Process(process.pid).children()
                for slot in slots:
                    text = Path(f"/proc/{slot.pid}/status").read_text(encoding="ascii")
                    peak = text.partition("VmHWM:")[2].split()[0]
                    self.peak_kib = max(self.peak_kib, int(peak))
            except (psutil.Error, OSError, IndexError):
                continue  # it has just ended

    def kill(self) -> None:
        for process in self.running:
            process.send_signal(signal.SIGKILL)
            process.wait()
        self.running.clear()


@contextmanager
def workers_on(url: str, folder: Path) -> Iterator[Workers]:
    workers = Workers(url, folder)
    try:
        yield workers
    finally:
        workers.kill()


def _finished(store: retoma.Store) -> dict[int, Any]:
    statement = sa.text("SELECT id, finished_at FROM batch_chunk WHERE state = 'COMPLETED'")
    with store.engine.connect() as connection:
        return {row[0]: row[1] for row in connection.execute(statement)}


def _post(store: retoma.Store, workers: Workers, *, kill_at: float | None) -> dict[str, Any]:
    run_id = retoma.submit(store, JOB, {"reference_date": NIGHT.isoformat()})
    before: dict[int, Any] = {}
    start = time.monotonic()
    workers.start()
    while True:
        found = retoma.status(store, run_id)
        workers.look()
        if found["state"] not in ("CREATED", "RUNNING"):
            break
        total = found["items_total"]
        if kill_at is not None and total and found["items_read"] >= kill_at * total:
            workers.kill()
            before = _finished(store)
            kill_at = None
            workers.start()
        time.sleep(0.2)
    seconds = time.monotonic() - start
    return {**found, "before": before, "seconds": round(seconds, 1), "run_id": run_id}


def test_a_night_killed_at_90_percent_is_taken_up_without_loss_or_duplicate(
    postgres_url: str, tmp_path: Path
) -> None:
    store = retoma.Store(postgres_url)
    create_tables(store.engine)
    make_night(store.engine, VOLUME, 11, NIGHT)
    with workers_on(postgres_url, tmp_path) as workers:
        result = _post(store, workers, kill_at=KILL_AT)
    proof = retoma.verify(store, JOB, result["run_id"])
    print(
        json.dumps(
            {
                "transactions": VOLUME,
                "seconds": result["seconds"],
                "items_per_second": round(VOLUME / result["seconds"]),
                "slot_peak_mib": round(workers.peak_kib / 1024, 1),
                "chunks": result["chunks"]["completed"],
                **{name: proof[name] for name in ("missing", "duplicate", "unexpected", "found")},
                "sum_difference": proof["sum_difference"],
            }
        )
    )
    assert proof["is_clean"], proof
    after = _finished(store)
    assert result["before"]
    assert {chunk: after[chunk] for chunk in result["before"]} == result["before"]
    read = result["done"] + result["set_aside"] + result["deferred"] + result["already_done"]
    assert read == VOLUME


def test_memory_of_a_slot_does_not_grow_with_the_night(postgres_url: str, tmp_path: Path) -> None:
    peaks = []
    for number, volume in enumerate((max(VOLUME // 10, 100_000), VOLUME)):
        with retoma_database(postgres_url, f"memory{number}") as url:
            store = retoma.Store(url)
            create_tables(store.engine)
            make_night(store.engine, volume, 11, NIGHT)
            with workers_on(url, tmp_path) as workers:
                _post(store, workers, kill_at=None)
            peaks.append(workers.peak_kib)
            store.dispose()
    print(json.dumps({"slot_peak_mib": [round(peak / 1024, 1) for peak in peaks]}))
    assert peaks[1] <= 1.1 * peaks[0]


@contextmanager
def retoma_database(url: str, name: str) -> Iterator[str]:
    admin = sa.create_engine(url, isolation_level="AUTOCOMMIT")
    with admin.connect() as connection:
        connection.execute(sa.text(f"CREATE DATABASE {name}"))
    try:
        yield sa.make_url(url).set(database=name).render_as_string(hide_password=False)
    finally:
        with admin.connect() as connection:
            connection.execute(sa.text(f"DROP DATABASE {name} WITH (FORCE)"))
        admin.dispose()
