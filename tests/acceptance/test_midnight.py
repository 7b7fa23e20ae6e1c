"""A run that starts before midnight and resumes after it changes nothing: dates come from the run."""

from __future__ import annotations

from contextlib import closing
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

import pytest
import sqlalchemy as sa

import retoma
from retoma.clock import SystemClock
from retoma.operations.commands import stop_run
from retoma.reconciliation.posting import JOB
from retoma.reconciliation.synthetic import make_night
from retoma.reconciliation.tables import create_tables, financial_transaction, ledger_entry
from retoma.store import migrate
from retoma.testing import FakeClock
from retoma.testing.one_slot import OneSlot

NIGHT = date(2026, 11, 30)


class ShiftedClock(SystemClock):
    """The host's clock moved to another instant, as SQLite's clock is the host's."""

    def __init__(self, start: datetime) -> None:
        self._ahead = start - super().utc()

    def utc(self) -> datetime:
        return super().utc() + self._ahead


@pytest.mark.parametrize("zone", ["UTC", "America/Sao_Paulo"])
def test_a_run_across_midnight_creates_no_second_key(
    tmp_path: Path, zone: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TZ", zone)
    hour = 24 if zone == "UTC" else 27  # midnight there, as UTC
    midnight = datetime(2026, 11, 30, tzinfo=UTC) + timedelta(hours=hour)
    url = f"sqlite:///{tmp_path / 'work.db'}"
    before = retoma.Store(url)
    migrate.ensure(before)
    create_tables(before.engine)
    make_night(before.engine, 30_000, 7, NIGHT)

    parameters = {"reference_date": NIGHT.isoformat()}
    clock = FakeClock(midnight - timedelta(seconds=2))
    with closing(OneSlot(url, JOB, clock=clock)) as evening:
        run_id = evening.launch(parameters).run_id
        evening.advance()
        assert evening.work_one() is not None
        stop_run(before, run_id, reason="the first chunk is done")
        assert evening.to_end() == "STOPPED"
        assert 0 < evening.ended().counts.done < 20_000
    after = retoma.Store(url, clock=ShiftedClock(midnight + timedelta(minutes=5)))
    second = retoma.run(after, JOB, parameters)
    assert second.exit_code in (0, 5)
    proof = retoma.verify(after, JOB, second.run_id)
    assert proof["is_clean"], proof
    with after.engine.connect() as connection:
        keys = connection.execute(sa.select(ledger_entry.c.idempotency_key)).scalars().all()
        days = connection.execute(
            sa.select(sa.func.substr(ledger_entry.c.idempotency_key, 1, 20)).distinct()
        ).scalars()
        assert set(days) == {"CONCILIACAO:20261130"}
        assert len(keys) == len(set(keys)) == proof["found"]


def test_an_item_deferred_on_one_day_and_posted_the_next_is_posted_once(tmp_path: Path) -> None:
    store = retoma.Store(f"sqlite:///{tmp_path / 'work.db'}")
    create_tables(store.engine)
    make_night(store.engine, 2_000, 3, NIGHT)
    first = retoma.run(store, JOB, {"reference_date": NIGHT.isoformat()})
    deferred = retoma.status(store, first.run_id)["deferred"]
    assert deferred > 0
    with store.engine.begin() as connection:
        pending = financial_transaction.c.status == "PENDING"
        settled = {"status": "SETTLED", "version": financial_transaction.c.version + 1}
        connection.execute(sa.update(financial_transaction).where(pending).values(**settled))
    for days in (1, 2):
        day = (NIGHT + timedelta(days=days)).isoformat()
        run = retoma.run(store, JOB, {"reference_date": day})
        counts = retoma.status(store, run.run_id)
        assert counts["done"] + counts["set_aside"] == (deferred if days == 1 else 0)
    with store.engine.connect() as connection:
        twice = (
            sa.select(ledger_entry.c.transaction_id)
            .group_by(ledger_entry.c.transaction_id)
            .having(sa.func.count() > 1)
        )
        assert connection.execute(twice).all() == []
