"""Each type of break from real files, and an audit that notices what is wrong."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from sqlalchemy import delete, update

from retoma.reconciliation.statement_tables import recon_break, recon_entry, recon_line, recon_match
from retoma.reconciliation.tables import ledger_entry
from tests.reconciliation.desk import Desk, e2e, line, row, statement, transactions, types

ID = "REF-000001"
CASES = {
    "MISSING_RIGHT": ([line(1, "1.00")], []),
    "MISSING_LEFT": ([], [row(1, "1.00")]),
    "AMOUNT_OVER": ([line(1, "2.00", memo=e2e(1))], [row(1, "1.00", e2e=e2e(1))]),
    "AMOUNT_UNDER": ([line(1, "-1.00", fitid=ID)], [row(1, "-1.50", ident=ID, day=2)]),
    "CURRENCY": ([line(1, "1.00", memo=e2e(1))], [row(1, "1.00", currency="USD", e2e=e2e(1))]),
    "DIRECTION": ([line(1, "1.00", fitid="7")], [row(1, "-1.00", ident="7")]),
    "DUPLICATE_SOURCE": (
        [line(1, "1.00", memo=e2e(1))], [row(1, "1.00", e2e=e2e(1)), row(2, "1.00", e2e=e2e(1))],
    ),
}  # fmt: skip


@pytest.fixture
def desk(sqlite_url: str) -> Desk:
    return Desk(sqlite_url)


@pytest.mark.parametrize("kind", CASES)
def test_each_type_of_break(desk: Desk, tmp_path: Path, kind: str) -> None:
    lines, rows = CASES[kind]
    result = desk.run([statement(tmp_path, *lines)], [transactions(tmp_path, *rows)])
    assert result["state"] == "COMPLETED", result["failure"]
    assert types(result) == {kind: 1}
    assert result["audit"].is_clean, result["audit"]
    (shown,) = result["breaks"]["by_type"]
    assert shown["meaning"]
    assert shown["amount_at_risk"] == {"AMOUNT_UNDER": "0.50", "DIRECTION": "2.00"}.get(
        kind, "1.00"
    )


def test_a_linked_entry_does_not_fall_through(desk: Desk, tmp_path: Path) -> None:
    lines = [line(1, "2.00", memo=e2e(1))]
    rows = [row(1, "1.00", e2e=e2e(1)), row(2, "2.00")]
    result = desk.run([statement(tmp_path, *lines)], [transactions(tmp_path, *rows)])
    assert types(result) == {"AMOUNT_OVER": 1, "MISSING_LEFT": 1}
    assert result["matched"]["count"] == 0


def test_a_short_bank_id_is_a_counter(desk: Desk, tmp_path: Path) -> None:
    lines = [line(1, "1.00", fitid="1"), line(2, "2.00", fitid="2")]
    rows = [row(1, "2.00", ident="1"), row(2, "1.00", ident="2")]
    result = desk.run([statement(tmp_path, *lines)], [transactions(tmp_path, *rows)])
    assert result["matched"]["count"] == 2
    assert not types(result)


def test_unnamed_account_and_currency_are_the_only_ones(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("data;valor\n01/08/2026;1,00\n", "utf-8")
    result = desk.run([statement(tmp_path, line(1, "1.00"))], [str(path)])
    assert result["matched"]["by_rule"][0]["currency"] == "BRL"
    assert desk.rows(ledger_entry, ledger_entry.c.currency) == [("BRL",)]


def test_balance_lines_are_ignored(desk: Desk, tmp_path: Path) -> None:
    lines = [line(1, "9.00", fitid="0", memo="SALDO ANTERIOR"), line(2, "1.00")]
    result = desk.run([statement(tmp_path, *lines)], [transactions(tmp_path, row(2, "1.00"))])
    assert not types(result)
    assert ("BALANCE", "IGNORED") in desk.rows(recon_entry, recon_entry.c.kind, recon_entry.c.state)
    assert result["audit"].is_clean, result["audit"]


TAMPERING = {
    "a ledger entry is gone": (delete(ledger_entry), "missing"),
    "a ledger amount is another": (update(ledger_entry).values(amount_minor=1), "unexpected"),
    "a match is gone": (delete(recon_match), "missing"),
    "a break is gone": (delete(recon_break), "missing"),
    "a line is gone": (delete(recon_line).where(recon_line.c.byte_offset > 200), "missing"),
    "a break of what matched": (
        update(recon_break).values(entry_id=1, other_entry_id=2), "duplicate",
    ),
    "an amount was changed": (
        update(recon_entry).where(recon_entry.c.id == 1).values(amount_minor=5), "unexpected",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", TAMPERING)
def test_the_audit_notices(desk: Desk, tmp_path: Path, name: str) -> None:
    lines: Sequence[str] = [line(n, f"{n}.00") for n in (1, 2, 3)]
    desk.run(
        [statement(tmp_path, *lines)],
        [transactions(tmp_path, *[row(n, f"{n}.00") for n in (1, 2)])],
    )
    change, kind = TAMPERING[name]
    night = desk.night()
    with night.store.engine.begin() as connection:
        assert connection.execute(change).rowcount
    night.close()
    result = desk.run(
        [str(tmp_path / "s.ofx")], [str(tmp_path / "t.csv")]
    )  # the stored run, audited again
    assert getattr(result["audit"], kind) > 0, result["audit"]
