"""The CSV reader: bank statements and internal transactions."""

from __future__ import annotations

import io
from datetime import date
from pathlib import Path

import pytest

from retoma.reconciliation.formats.text import LineReader
from retoma.reconciliation.inspect import read_report
from retoma.reconciliation.statement import StatementError
from tests.formats.samples import RUNNING, TRANSACTIONS, bad, lines, records, write


def codes(path: Path) -> dict[str, int]:
    return {one.code: one.count for one in read_report(path).warnings}


def test_debit_and_credit_columns_give_one_signed_amount() -> None:
    seen = [(line.kind, line.amount_minor, line.balance_minor) for line in lines(RUNNING)]
    assert seen == [
        ("BALANCE", 100000, 100000),
        ("MOVEMENT", -2590, 97410),
        ("MOVEMENT", 125000, 222410),
        ("MOVEMENT", -2410, 220000),
        ("MOVEMENT", -100, 219900),
    ]
    assert {line.currency for line in lines(RUNNING)} == {"BRL"}  # the column names say R$


def test_lines_before_the_column_names_are_skipped_and_said() -> None:
    assert codes(RUNNING) == {"BALANCE_LINE": 1, "PREAMBLE_SKIPPED": 1}


def test_quotes_hold_separators_quotes_and_line_ends() -> None:
    assert [line.description for line in lines(RUNNING)] == [
        "SALDO ANTERIOR",
        'TARIFA "PACOTE" MENSAL',
        'DEPÓSITO; AGÊNCIA "CENTRO"',
        "PAGAMENTO EM DUAS LINHAS",
        "TARIFA",
    ]
    assert [line.line_no for line in lines(RUNNING)] == [4, 5, 6, 7, 9]


def test_internal_transactions_are_lines_of_the_same_shape() -> None:
    first, second, whole, last = lines(TRANSACTIONS)
    assert (first.fitid, first.amount_minor, first.account) == ("T-1", -123456, "10")
    assert (first.counterparty_document, first.status) == ("12ABC34501DE35", "PAGO")
    assert (second.booking_date, second.amount_minor) == (date(2026, 7, 2), 1)
    assert (whole.currency, whole.amount_minor) == ("JPY", 1500)
    assert (last.currency, last.amount_minor) == ("KWD", 7000)


def test_a_row_that_cannot_be_read_is_kept_with_its_reason() -> None:
    assert [(one.record_no, one.code, one.field) for one in bad(TRANSACTIONS)] == [
        (3, "MALFORMED_AMOUNT", "amount"),
        (4, "BAD_DATE", "booking_date"),
        (6, "ROUNDING", "amount"),
        (7, "COLUMN_COUNT", ""),
    ]


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ('date,amount,description\n2026-01-02,"-1,650.00",x\n', -165000),
        ("data\tvalor\n02/01/2026\t-1.650,00\n", -165000),
        ("Data;Valor;D/C\n02/01/2026;1.650,00;D\n", -165000),
        ("Data;Valor;D/C\n02/01/2026;1.650,00;C\n", 165000),
        ("Data;Valor;Tipo\n02/01/2026;1.650,00;Débito\n", -165000),
        ("Data;Valor;Tipo\n02/01/2026;-1.650,00;PIX\n", -165000),
        ("data|valor\n20260102|-1650\n", -165000),
        ("date;debit;credit\n2026-01-02;-16.50;\n", -1650),
        ("date;debit;credit\n2026-01-02;0.00;16.50\n", 1650),
        ("\ufeffData;Valor;\n02/01/2026;16,50;\n", 1650),
        ("Data;Valor\r02/01/2026;16,50\r", 1650),
    ],
)  # fmt: skip
def test_the_usual_dialects_are_read(tmp_path: Path, text: str, minor: int) -> None:
    (line,) = lines(write(tmp_path, text))
    assert (line.amount_minor, line.booking_date) == (minor, date(2026, 1, 2))


@pytest.mark.parametrize(
    ("row", "code"),
    [
        ("02/01/2026;C;-5,00", "DIRECTION"),
        ("02/01/2026;X;5,00", "DIRECTION"),
        ("02/01/2026;;5,00", "DIRECTION"),
        ("02/01/2026;D;", "MALFORMED_AMOUNT"),
        ("12/31/2026;D;5,00", "BAD_DATE"),
        ("2026-01-02T10:00:00;D;5,00", "BAD_DATE"),
        ("2/1/2026;D;5,00", "BAD_DATE"),
        ("02/01/26;D;5,00", "BAD_DATE"),
        ("02/01/2026;D", "COLUMN_COUNT"),
        ("02/01/2026;D;5,00;more", "COLUMN_COUNT"),
        ('02/01/2026;"D;5,00', "UNCLOSED_QUOTE"),
    ],
)
def test_what_contradicts_itself_is_refused(tmp_path: Path, row: str, code: str) -> None:
    path = write(tmp_path, f"Data;D/C;Valor\n{row}\n03/01/2026;D;1,00\n")
    assert [one.code for one in bad(path)] == [code]
    assert [line.amount_minor for line in lines(path)] == [-100]  # the next row is not harmed


def test_debit_and_credit_at_once_are_refused(tmp_path: Path) -> None:
    path = write(tmp_path, "date;debit;credit\n2026-01-02;1.00;2.00\n2026-01-02;;\n")
    assert [one.code for one in bad(path)] == ["DIRECTION", "MALFORMED_AMOUNT"]


def test_a_stray_quote_takes_no_other_row_with_it(tmp_path: Path) -> None:
    rows = "".join(f"2026-01-02;{i}.00;x\n" for i in range(200))
    path = write(tmp_path, f'date;amount;memo\n2026-01-01;5.00;"open\n{rows}')
    assert [one.code for one in bad(path)] == ["UNCLOSED_QUOTE"]
    assert len(lines(path)) == 200
    assert [one.line_no for one in records(path)] == list(range(2, 203))


def test_rows_without_meaning_are_skipped_and_said(tmp_path: Path) -> None:
    text = "data;valor\n;\n\n02/01/2026;1,00\nData;Valor\n03/01/2026;2,00"
    path = write(tmp_path, text)
    assert [line.line_no for line in lines(path)] == [4, 6]
    assert codes(path) == {
        "EMPTY_ROW": 1,
        "NO_CURRENCY": 2,
        "NO_FINAL_NEWLINE": 1,
        "REPEATED_HEADER": 1,
    }


def test_a_line_without_end_is_refused(tmp_path: Path) -> None:
    path = write(tmp_path, b"data;valor\n02/01/2026;" + b"1" * 3_000_000)
    with pytest.raises(StatementError) as caught:
        records(path)
    assert caught.value.code == "RECORD_TOO_LONG"


def test_a_refused_line_is_not_read_to_its_end() -> None:
    file = io.BytesIO(b"x" * 5_000_000)
    with pytest.raises(StatementError):
        LineReader(file, 0).read()
    assert file.tell() < 2_000_000


def test_a_record_knows_its_bytes() -> None:
    content = RUNNING.read_bytes()
    pieces = [content[one.offset : one.next_offset] for one in records(RUNNING)]
    header_end = content.index(b"01/06/2026")
    assert b"".join(pieces) == content[header_end:]


def test_reading_does_not_depend_on_the_blocks(tmp_path: Path) -> None:
    many = 30_000
    rows = "".join(f"2026-01-02;{i}.00;{'x' * (i % 31)}\r\n" for i in range(many))
    found = lines(write(tmp_path, f"date;amount;memo\r\n{rows}"))
    assert [line.amount_minor for line in found] == [i * 100 for i in range(many)]
    assert [line.line_no for line in found] == list(range(2, many + 2))
