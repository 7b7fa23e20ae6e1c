"""Files as banks and people really send them. They are not part of the project."""

from __future__ import annotations

import csv
import os
import re
from decimal import Decimal
from pathlib import Path

import pytest

from retoma.reconciliation.inspect import inspect_file, read_report
from retoma.reconciliation.money import format_amount
from retoma.reconciliation.reading import iterate
from retoma.reconciliation.statement import StatementError

FOLDER = os.environ.get("RETOMA_BANK_FILES", "")
pytestmark = pytest.mark.skipif(
    not FOLDER,
    reason="set RETOMA_BANK_FILES to a folder of statement files: ofx/*.ofx, other formats beside "
    "it, and records.csv (file,records such as ofx/a.ofx,STMTTRN=6)",
)
OFX = sorted(Path(FOLDER, "ofx").glob("*.ofx")) if FOLDER else []
OTHERS = (
    sorted(
        path for path in Path(FOLDER).glob("*/*") if path.parent.name != "ofx" and path.is_file()
    )
    if FOLDER
    else []
)
# One published record says $120 on a day of month 20. Another holds no field at all, but '*snipped*'.
UNREADABLE, EMPTY = 1, 1


def declared() -> dict[str, int]:
    with Path(FOLDER, "records.csv").open(encoding="utf-8", newline="") as file:
        rows = {row["file"]: row["records"] for row in csv.DictReader(file)}
    counted = {}
    for name, text in rows.items():
        match = re.search(r"STMTTRN=(\d+)", text)
        if match:
            counted[name] = int(match[1])
    return counted


def independent_sum(content: bytes) -> Decimal:
    """The sum over the text itself: the last separator is the decimal one in all these files."""
    total = Decimal(0)
    for raw in re.findall(rb"<TRNAMT>\s*([+-]?[0-9.,]+)", content):
        whole, mark, decimals = re.fullmatch(r"(.*?)(?:([.,])(\d+))?", raw.decode()).groups()
        total += Decimal(re.sub(r"[.,]", "", whole) + (f".{decimals}" if mark else ""))
    return total


@pytest.mark.parametrize("path", OFX, ids=lambda path: path.name)
def test_no_record_of_a_file_is_lost(path: Path) -> None:
    expected = declared()[f"ofx/{path.name}"]
    assert sum(1 for _ in iterate(path)) == expected


@pytest.mark.parametrize("path", OFX, ids=lambda path: path.name)
def test_the_sum_is_the_sum_of_the_text(path: Path) -> None:
    sums = read_report(path).sums
    total = sum(Decimal(format_amount(minor, code)) for code, minor in sums.items())
    assert total == independent_sum(path.read_bytes())


def test_all_records_that_have_an_amount_are_lines() -> None:
    reports = [read_report(path) for path in OFX]
    lines = sum(report.movements + report.balances for report in reports)
    assert sum(report.bad_records for report in reports) == UNREADABLE
    assert sum(report.empty_records for report in reports) == EMPTY
    assert lines + UNREADABLE + EMPTY == sum(declared().values()) == 42
    codes = [warning.code for report in reports for warning in report.warnings]
    assert codes.count("EMPTY_RECORD") == EMPTY


@pytest.mark.parametrize("path", OFX, ids=lambda path: path.name)
def test_a_real_file_can_be_resumed_anywhere(path: Path) -> None:
    whole = list(iterate(path))
    for done, (_, position) in enumerate(whole, start=1):
        assert list(iterate(path, position)) == whole[done:]


@pytest.mark.parametrize("path", OFX, ids=lambda path: path.name)
def test_a_cut_file_never_sums_up_to_something_else(path: Path, tmp_path: Path) -> None:
    content = path.read_bytes()
    whole = [record for record, _ in iterate(path)]
    start = content.index(b"<OFX>") + 5
    cut_file = tmp_path / "cut"
    for cut in range(start, len(content), max(1, len(content) // 200)):
        cut_file.write_bytes(content[:cut])
        found = [record for record, _ in iterate(cut_file)]
        complete = [one for one in found if getattr(one, "code", "") != "TRUNCATED_RECORD"]
        assert complete == whole[: len(complete)]


@pytest.mark.parametrize("path", OTHERS, ids=lambda path: path.name)
def test_another_format_is_refused_with_its_name(path: Path) -> None:
    with pytest.raises(StatementError) as caught:
        inspect_file(path)
    assert caught.value.message
