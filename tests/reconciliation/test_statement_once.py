"""What arrives again adds nothing: the same file, another encoding, an overlapping statement."""

from __future__ import annotations

from pathlib import Path

import pytest

from retoma.reconciliation.statement_tables import recon_break, recon_entry, recon_line
from tests.reconciliation.desk import (
    Desk,
    e2e,
    line,
    lines_new,
    row,
    statement,
    transactions,
    types,
)


@pytest.fixture
def desk(sqlite_url: str) -> Desk:
    return Desk(sqlite_url)


@pytest.fixture
def any_desk(database_url: str) -> Desk:
    return Desk(database_url)


LINES = [
    line(1, "10.00", memo="DEPÓSITO"),
    line(2, "-20.00", memo=f"PIX {e2e(2)}"),
    line(3, "30.00", day=2),
    line(4, "-40.00", day=3),
]
ROWS = [
    row(1, "10.00"),
    row(2, "-20.00", day=2, e2e=e2e(2)),
    row(3, "30.00", day=2),
    row(9, "9.00"),
]


def test_matched_is_posted_and_the_rest_is_a_break(desk: Desk, tmp_path: Path) -> None:
    result = desk.run([statement(tmp_path, *LINES)], [transactions(tmp_path, *ROWS)])
    assert result["state"] == "COMPLETED"
    assert {one["rule"]: (one["count"], one["sum"]) for one in result["matched"]["by_rule"]} == {
        "END_TO_END_ID": (1, "-20.00"),
        "CONTENT": (2, "40.00"),
    }
    assert types(result) == {"MISSING_LEFT": 1, "MISSING_RIGHT": 1}
    assert result["tables"]["ledger_entry"] == 3
    assert result["audit"].is_clean, result["audit"]
    assert (result["audit"].expected, result["audit"].found) == (3, 3)


def test_the_same_command_again_changes_nothing(desk: Desk, tmp_path: Path) -> None:
    files = [statement(tmp_path, *LINES)], [transactions(tmp_path, *ROWS)]
    assert desk.run(*files) == desk.run(*files)


def test_copies_and_overlaps_add_only_what_is_new(any_desk: Desk, tmp_path: Path) -> None:
    rows = [transactions(tmp_path, *ROWS)]
    source = statement(tmp_path, *LINES[:3], name="a.ofx")
    first = any_desk.run([source], rows)
    copy = tmp_path / "copy.ofx"
    copy.write_bytes(Path(source).read_text("utf-8").encode("cp1252"))
    second = any_desk.run([str(copy)], rows)
    assert second["instance"] != first["instance"]
    assert second["tables"] == first["tables"]
    assert lines_new(second) == [0, 0]
    assert (second["matched"]["count"], second["matched_before"]) == (0, 6)
    assert types(second) == types(first) == {"MISSING_LEFT": 1}
    overlap = any_desk.run([statement(tmp_path, *LINES[1:], name="b.ofx")], rows)
    assert lines_new(overlap) == [1, 0]
    assert overlap["tables"]["recon_entry"] == 8
    assert overlap["tables"]["ledger_entry"] == 3
    for result in (first, second, overlap):
        assert result["audit"].is_clean, result["audit"]


def test_both_halves_in_one_command_are_each_line_once(desk: Desk, tmp_path: Path) -> None:
    halves = [
        statement(tmp_path, *LINES[:3], name="a.ofx"),
        statement(tmp_path, *LINES[1:], name="b.ofx"),
    ]
    result = desk.run(halves, [transactions(tmp_path, *ROWS)])
    assert result["tables"]["recon_entry"] == 8
    assert result["matched"]["count"] == 3


@pytest.mark.parametrize("fitid", ["0", "BANK-1"])
def test_k_identical_lines_stay_k(desk: Desk, tmp_path: Path, fitid: str) -> None:
    same = line(1, "5.00", fitid=fitid)
    rows = [transactions(tmp_path, *[row(n, "5.00") for n in range(4)])]
    first = desk.run([statement(tmp_path, *[same] * 5, name="a.ofx")], rows)
    entry = recon_entry.c
    wanted = [1, 2, 3, 4, 5]
    assert first["matched"]["count"] == 4
    again = desk.run([statement(tmp_path, *[same] * 5, "\n", name="b.ofx")], rows)
    assert lines_new(again) == [0, 0]
    found = desk.rows(recon_entry, entry.side, entry.occurrence)
    assert [number for side, number in found if side == "STATEMENT"] == wanted
    assert types(again) == ({"MISSING_RIGHT": 1} if fitid == "0" else {"DUPLICATE_SOURCE": 1})
    assert len(desk.rows(recon_line)) == 5 + 5 + 4


def test_another_end_to_end_id_under_a_known_key_is_a_conflict(desk: Desk, tmp_path: Path) -> None:
    rows = [transactions(tmp_path, row(1, "7.00"))]
    desk.run([statement(tmp_path, line(1, "5.00", memo=f"PIX {e2e(1)}"), name="a.ofx")], rows)
    other = statement(tmp_path, line(1, "5.00", memo=f"PIX {e2e(2)}"), name="b.ofx")
    result = desk.run([other], rows)
    assert result["state"] == "PARTIALLY_COMPLETED"
    assert result["files"][0]["lines"]["conflicts"] == 1
    assert result["audit"].is_clean, result["audit"]


def test_a_break_is_one_row_until_its_partner_comes(desk: Desk, tmp_path: Path) -> None:
    paths = [statement(tmp_path, *LINES)]
    desk.run(paths, [transactions(tmp_path, *ROWS)])
    column = recon_break.c
    shown = (column.type, column.first_seen_instance, column.last_seen_instance, column.state)
    later = desk.run(paths, [transactions(tmp_path, *ROWS[:3], name="u.csv")])
    assert desk.rows(recon_break, *shown) == [
        ("MISSING_LEFT", 1, 2, "OPEN"),
        ("MISSING_RIGHT", 1, 2, "OPEN"),
    ]
    assert later["tables"]["recon_break"] == 2
    last = desk.run(
        [statement(tmp_path, line(8, "1.00", day=9), name="n.ofx")],
        [transactions(tmp_path, row(4, "-40.00", day=3), name="n.csv")],
        "2026-09-01",
    )
    assert last["matched"]["count"] == 1
    assert ("MISSING_RIGHT", 1, 2, "RESOLVED") in desk.rows(recon_break, *shown)
    assert types(last) == {"MISSING_RIGHT": 1, "MISSING_LEFT": 1}
    assert last["audit"].is_clean, last["audit"]
