"""``retoma reconcile run`` as it is typed: results, lists, exit codes, one clear message."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest

from retoma.cli.main import main
from retoma.reconciliation.commands import spread
from retoma.reconciliation.statement_csv import cell
from retoma.reconciliation.statement_tables import recon_entry, recon_file
from tests.formats.samples import PROVEN
from tests.reconciliation.desk import DAY, Desk, line, row, statement, transactions

Told = tuple[int, str, str]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RETOMA_DATABASE", "sqlite:///work.db")
    statement(tmp_path, line(1, "1.00"), line(2, "-2.00"), name="a.ofx")
    statement(tmp_path, line(3, "3.00", memo="=1+1"), line(4, "x"), name="b.ofx")
    transactions(tmp_path, row(1, "1.00"), row(2, "-2.00"), row(9, "-9.00"))
    return tmp_path


def retoma(capfd: pytest.CaptureFixture[str], *arguments: str) -> Told:
    with pytest.raises(SystemExit) as ended:
        main(["reconcile", *arguments])
    told = capfd.readouterr()
    code = ended.value.code
    assert isinstance(code, int)
    assert "Traceback" not in told.err + told.out
    return code, told.out, told.err


RUN = ("run", "--statement", "a.ofx", "b.ofx", "--transactions", "t.csv", "--reference-date", DAY)


def test_a_run_its_lists_and_the_same_command_again(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = retoma(capfd, *RUN, "--output-dir", "lists")
    assert code == 5
    assert "matched 2 and posted" in out
    assert "MISSING_LEFT: among the transactions, not on the statement" in out
    assert "set aside 1: 1 MALFORMED_AMOUNT" in out
    lists = {
        path.name: list(csv.DictReader(path.read_text("utf-8").splitlines()))
        for path in (folder / "lists").iterdir()
    }
    assert set(lists) == {"matches.csv", "breaks.csv", "set_aside.csv"}
    assert sorted(one["amount"] for one in lists["matches.csv"]) == ["-2.00", "1.00"]
    assert sorted((one["amount"], one["description"]) for one in lists["breaks.csv"]) == [
        ("-9.00", "row 9"),
        ("3.00", "'=1+1"),
    ]
    (bad,) = lists["set_aside.csv"]
    assert bad["message"].startswith("b.ofx, line 4, byte ")
    assert bad["field"] == "TRNAMT"
    code, out, _ = retoma(capfd, *RUN, "--json")
    again = json.loads(out)
    assert (code, again["exit_code"], again["was_complete"]) == (5, 5, True)
    assert again["matched"]["count"] == 2
    assert again["set_aside"] == {"count": 1, "by_reason": {"MALFORMED_AMOUNT": 1}}


def test_breaks_alone_are_a_result_not_a_failure(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    parts = ("run", "--statement", "a.ofx", "--transactions", "t.csv", "--reference-date", DAY)
    code, out, _ = retoma(capfd, *parts, "--json")
    assert code == 0
    assert json.loads(out)["breaks"]["count"] == 1


def test_a_file_that_does_not_prove_gives_no_line(
    folder: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (folder / "p.ofx").write_text(PROVEN.read_text("utf-8").replace("-30,00", "-30,01"), "utf-8")
    parts = ("run", "--statement", "p.ofx", "--transactions", "t.csv", "--reference-date", DAY)
    code, out, _ = retoma(capfd, *parts)
    assert code == 4
    assert "failure: p.ofx: the file does not prove: opening balance and movements" in out
    database = Desk("sqlite:///work.db")
    file = recon_file.c
    assert database.rows(recon_file, file.side, file.proof, file.state) == [
        ("STATEMENT", "FAILED", "REFUSED"),
        ("TRANSACTIONS", "NOT_PROVABLE", "ACCEPTED"),
    ]
    assert not database.rows(recon_entry)
    assert retoma(capfd, *parts)[0] == 4


BAD = {
    "no such file": ({"--statement": "none.ofx"}, 2, "none.ofx: There is no such file."),
    "a directory": ({"--statement": "."}, 2, "directory"),
    "an empty file": ({"--transactions": "empty.csv"}, 4, "empty.csv: The file is empty."),
    "a binary file": ({"--statement": "binary.ofx"}, 4, "binary.ofx, byte 1: "),
    "UTF-16": ({"--transactions": "wide.csv"}, 4, "UTF-16"),
    "a date of another shape": ({"--reference-date": "31/08/2026"}, 2, "31/08/2026"),
    "no such day": ({"--reference-date": "2026-02-30"}, 2, "2026-02-30"),
    "a closed port": ({"--database": "postgresql://u:secret@127.0.0.1:1/d"}, 7, "did not answer"),
    "no URL": ({"--database": "nonsense"}, 2, "no database URL"),
    "an output that is a file": ({"--output-dir": "a.ofx"}, 2, "a.ofx"),
}  # fmt: skip


@pytest.mark.parametrize("name", BAD)
def test_bad_input_is_one_clear_message_and_stores_nothing(
    folder: Path, capfd: pytest.CaptureFixture[str], name: str
) -> None:
    (folder / "empty.csv").write_bytes(b"")
    (folder / "binary.ofx").write_bytes(b"\x7f\0ELF")
    (folder / "wide.csv").write_bytes("data;valor\n".encode("utf-16"))
    changes, expected, text = BAD[name]
    arguments = {"--statement": "a.ofx", "--transactions": "t.csv", "--reference-date": DAY}
    pairs = [part for pair in {**arguments, **changes}.items() for part in pair]
    code, out, err = retoma(capfd, "run", *pairs)
    assert (code, out) == (expected, "")
    assert text in err
    assert err.count("retoma: ") == 1
    assert "secret" not in err
    assert not (folder / "work.db").exists()
    _, out, _ = retoma(capfd, "run", *pairs, "--json")
    assert json.loads(out)["error"]["exit_code"] == expected


@pytest.mark.parametrize(
    "arguments",
    [
        ("run", "--statement", "--transactions", "t.csv", "--reference-date", DAY),
        ("run", "--statement", "a.ofx", "--reference-date", DAY),
        ("run", "a.ofx", "--transactions", "t.csv", "--reference-date", DAY),
    ],
)
def test_a_wrong_command_is_a_usage_error(
    folder: Path, capfd: pytest.CaptureFixture[str], arguments: tuple[str, ...]
) -> None:
    assert retoma(capfd, *arguments)[0] == 2


def test_several_files_after_one_flag() -> None:
    typed = "--statement a b --json --transactions t --statement=c d --slots 2 -- e"
    meant = (
        "--statement a --statement b --json --transactions t --statement=c --statement d"
        " --slots 2 -- e"
    )
    assert spread(typed.split()) == meant.split()


@pytest.mark.parametrize(
    ("column", "value", "expected"),
    [
        ("amount", "-1.00", "-1.00"),
        ("amount", "-1+2", "'-1+2"),
        ("description", "-1.00", "'-1.00"),
        ("description", "=A1", "'=A1"),
        ("description", "+A1", "'+A1"),
        ("description", "@A1", "'@A1"),
        ("description", "A=1", "A=1"),
        ("other_amount", None, ""),
    ],
)
def test_no_cell_is_a_formula(column: str, value: str | None, expected: str) -> None:
    assert cell(column, value) == expected
