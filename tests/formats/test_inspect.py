"""The report on a file, its proof and its command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from retoma.reconciliation.inspect import inspect_file, read_report
from retoma.reconciliation.inspect_command import inspect_command
from tests.formats.samples import ALL, PROVEN, RUNNING, TRANSACTIONS, TWO_ACCOUNTS, write


def proof(path: Path) -> str:
    return read_report(path).proof


def changed(folder: Path, source: Path, *pairs: tuple[str, str]) -> Path:
    text = source.read_text("utf-8")
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    return write(folder, text)


def test_opening_movements_and_ledger_balance_prove_an_ofx() -> None:
    report = read_report(PROVEN)
    assert report.proof == "PROVEN"
    (account,) = report.accounts
    assert (account.opening_minor, account.closing_minor) == (10000, 7550)
    assert account.computed_closing_minor == 7550
    assert report.sums == {"BRL": -2450}


def test_a_wrong_amount_fails_the_proof(tmp_path: Path) -> None:
    path = changed(tmp_path, PROVEN, ("-30,00", "-30,01"))
    assert proof(path) == "FAILED"
    assert inspect_file(path)["exit_code"] == 4


@pytest.mark.parametrize(
    "pair",
    [
        ("Saldo Anterior", "Saldo do Dia"),
        ("-30,00", "$30,00"),
        ("</OFX>", ""),
        ("BALAMT>75,50", "BALAMT>"),
    ],
)
def test_without_all_that_it_takes_nothing_is_proven(tmp_path: Path, pair: tuple[str, str]) -> None:
    assert proof(changed(tmp_path, PROVEN, pair)) == "NOT_PROVABLE"


def test_a_ledger_balance_of_another_day_can_prove_but_not_refute(tmp_path: Path) -> None:
    other_day = ("DTASOF>20260531", "DTASOF>00000000")
    assert proof(changed(tmp_path, PROVEN, other_day)) == "PROVEN"
    assert proof(changed(tmp_path, PROVEN, other_day, ("-30,00", "-31,00"))) == "NOT_PROVABLE"


def test_a_running_balance_is_proven_line_by_line(tmp_path: Path) -> None:
    report = read_report(RUNNING)
    assert report.proof == "PROVEN"
    assert report.accounts[0].opening_minor == 100000
    assert report.accounts[0].closing_minor == 219900
    for pair in (("25,90", "25,91"), ("2.224,10", "2.224,11"), ("24,10;;", ";24,10;")):
        broken = read_report(changed(tmp_path, RUNNING, pair))
        assert broken.proof == "FAILED"
        assert "line" in broken.reason


def test_newest_first_is_proven_too(tmp_path: Path) -> None:
    head = "data;historico;valor;saldo;moeda\n"
    rows = ["03/01/2026;c;-5,00;105,00;BRL\n", "02/01/2026;b;10,00;110,00;BRL\n",
            "01/01/2026;a;100,00;100,00;BRL\n"]  # fmt: skip
    assert proof(write(tmp_path, head + "".join(rows))) == "PROVEN"
    assert proof(write(tmp_path, head + "".join(reversed(rows)))) == "PROVEN"
    rows[1] = rows[1].replace("10,00;", "11,00;", 1)
    assert proof(write(tmp_path, head + "".join(rows))) == "FAILED"


def test_turned_signs_are_not_proven_by_reading_backwards(tmp_path: Path) -> None:
    text = "data;historico;valor;moeda\n{};100,00;BRL\n01/01/2026;x;{};BRL\n{};110,00;BRL\n"
    opening, closing = "01/01/2026;SALDO ANTERIOR", "01/01/2026;SALDO FINAL"
    assert proof(write(tmp_path, text.format(opening, "10,00", closing))) == "PROVEN"
    assert proof(write(tmp_path, text.format(opening, "-10,00", closing))) == "FAILED"


def test_lines_outside_the_balances_leave_the_proof_open(tmp_path: Path) -> None:
    text = (
        "data;historico;valor;saldo;moeda\n01/01/2026;a;1,00;1,00;BRL\n"
        "02/01/2026;b;1,00;2,00;BRL\n03/01/2026;c;1,00;;BRL\n"
    )
    assert proof(write(tmp_path, text)) == "NOT_PROVABLE"


def test_accounts_are_proven_apart(tmp_path: Path) -> None:
    head = "data;conta;valor;saldo;moeda\n"
    rows = (
        "01/01/2026;1;1,00;1,00;BRL\n01/01/2026;2;5,00;5,00;BRL\n"
        "02/01/2026;1;1,00;2,00;BRL\n02/01/2026;2;5,00;{};BRL\n"
    )
    assert proof(write(tmp_path, head + rows.format("10,00"))) == "PROVEN"
    assert proof(write(tmp_path, head + rows.format("10,01"))) == "FAILED"


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_the_report_is_json_and_shows_no_account(path: Path) -> None:
    text = json.dumps(inspect_file(path), ensure_ascii=False)
    for number in (
        "70001-1",
        "70002-2",
        "4000-9",
        "80001",
        "90001",
        "52998224725",
        "12ABC34501DE35",
    ):
        assert number not in text


def test_the_report_counts_what_the_file_holds() -> None:
    report = inspect_file(TRANSACTIONS)
    assert report["lines"] == {
        "count": 8,
        "read": 4,
        "set_aside": 4,
        "empty": 0,
        "by_kind": {"MOVEMENT": 4, "BALANCE": 0},
    }
    assert report["sums"] == {"BRL": "-1234.55", "JPY": "1500", "KWD": "7.000"}
    assert report["exit_code"] == 5


def invoke(*args: str) -> tuple[int, str, str]:
    result = CliRunner().invoke(inspect_command, list(args))
    return result.exit_code, result.stdout, result.stderr


def test_the_command_prints_and_tells_by_its_exit_code(tmp_path: Path) -> None:
    clean = changed(tmp_path, PROVEN, ("Saldo Anterior", "ALUGUEL"), ("FITID>0", "FITID>9"))
    code, out, err = invoke(str(clean))
    assert (code, err) == (0, "")
    assert "BRL 75.50" in out
    code, out, _ = invoke(str(TWO_ACCOUNTS))
    assert code == 5
    assert "warning BAD_DATE x2" in out
    code, out, _ = invoke("--json", str(TWO_ACCOUNTS))
    assert json.loads(out)["sums"]["USD"] == "-1234.50"


@pytest.mark.parametrize(
    ("content", "code"),
    [(None, 2), (b"", 4), (b"\x00\x01", 4), (b"%PDF", 4), (b"data;valor\n" + b"1" * 2**21, 4)],
)
def test_a_refusal_is_one_clear_line_on_stderr(
    tmp_path: Path, content: bytes | None, code: int
) -> None:
    path = tmp_path / "file" if content is None else write(tmp_path, content)
    got, out, err = invoke(str(path))
    assert (got, out) == (code, "")
    assert err.count("\n") == 1
    assert str(path) in err
    assert "Traceback" not in err


def test_a_directory_is_a_usage_error(tmp_path: Path) -> None:
    code, _, err = invoke(str(tmp_path))
    assert code == 2
    assert "directory" in err
