"""Files are checked before anything is stored, proven before a line is, and pinned by their hash."""

from __future__ import annotations

from pathlib import Path

import pytest

from retoma.errors import RetomaError
from retoma.reconciliation.statement_files import check_inputs, parameters_of
from retoma.reconciliation.statement_tables import recon_entry
from tests.reconciliation.desk import DAY, Desk, line, row, statement, transactions


@pytest.fixture
def desk(sqlite_url: str) -> Desk:
    return Desk(sqlite_url)


def test_a_file_changed_under_the_run_is_refused_and_can_be_restored(
    desk: Desk, tmp_path: Path
) -> None:
    path = Path(statement(tmp_path, *[line(n, f"{n}.00") for n in range(6)]))
    content = path.read_bytes()
    parameters = parameters_of(
        check_inputs([str(path)], [transactions(tmp_path, row(1, "1.00"))]), DAY
    )
    night = desk.night()
    night.launch(parameters)
    while not night.session.fetch("t", recon_entry.select()):
        night.advance()
        night.work_one()
    path.write_bytes(content.replace(b"5.00", b"6.00"))
    assert night.to_end() == "FAILED"
    assert "s.ofx: the file was changed after the run began" in str(night.run().failure)
    path.write_bytes(content)
    assert night.whole(parameters) == "COMPLETED"
    result = desk.result(night)
    night.close()
    assert result["files"][0]["lines"]["new"] == 6
    assert result["audit"].is_clean, result["audit"]


def test_a_run_goes_on_where_its_file_was_moved(desk: Desk, tmp_path: Path) -> None:
    path = Path(statement(tmp_path, *[line(n, f"{n}.00") for n in range(6)]))
    rows = transactions(tmp_path, row(1, "1.00"))
    night = desk.night()
    night.launch(parameters_of(check_inputs([str(path)], [rows]), DAY))
    while not night.session.fetch("t", recon_entry.select()):
        night.advance()
        night.work_one()
    moved = path.rename(tmp_path / "elsewhere.ofx")
    assert night.to_end() == "FAILED"
    again = parameters_of(check_inputs([str(moved)], [rows]), DAY)
    assert night.whole(again) == "COMPLETED"
    assert desk.result(night)["audit"].is_clean
    night.close()


def test_the_same_content_twice_counts_once(tmp_path: Path) -> None:
    paths = [statement(tmp_path, line(1, "1.00"), name=name) for name in ("a.ofx", "b.ofx")]
    files = check_inputs(paths, [])
    assert [one.name for one in files] == ["a.ofx"]


def test_the_identity_is_the_content_not_name_or_order(tmp_path: Path) -> None:
    first = statement(tmp_path, line(1, "1.00"), name="a.ofx")
    second = statement(tmp_path, line(2, "1.00"), name="b.ofx")
    inputs = [parameters_of(check_inputs(one, []), DAY)["inputs"] for one in
              ([first, second], [second, first], [first])]  # fmt: skip
    assert inputs[0] == inputs[1] != inputs[2]
    Path(first).rename(tmp_path / "c.ofx")
    moved = check_inputs([str(tmp_path / "c.ofx"), second], [])
    assert parameters_of(moved, DAY)["inputs"] == inputs[0]
    sides = parameters_of(check_inputs([], [second]), DAY)["inputs"]
    assert sides != parameters_of(check_inputs([second], []), DAY)["inputs"]


def test_a_refusal_names_the_file_and_the_place(tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    path.write_bytes(b"data;valor\n\0")
    with pytest.raises(RetomaError) as caught:
        check_inputs([str(path)], [])
    assert caught.value.message.startswith(f"{path}, byte 11: ")
