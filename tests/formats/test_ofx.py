"""The OFX reader."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest

from retoma.reconciliation.inspect import read_report
from retoma.reconciliation.reading import iterate, open_statement
from retoma.reconciliation.statement import StatementError
from tests.formats.samples import ONE_LINE, TWO_ACCOUNTS, bad, lines, ofx, records, trn, write


def codes(path: Path) -> dict[str, int]:
    return {one.code: one.count for one in read_report(path).warnings}


def test_each_statement_has_its_own_account_and_currency() -> None:
    seen = [(line.account, line.currency, line.amount_minor) for line in lines(TWO_ACCOUNTS)]
    assert seen == [
        ("0999/0001/70001-1", "BRL", 0),
        ("0999/0001/70001-1", "BRL", 165000),
        ("0999/0001/70001-1", "BRL", -895),
        ("0999/0001/70001-1", "BRL", 75000),
        ("0999/70002-2", "USD", -123450),
        ("4000-9", "BRL", -2010),
        ("4000-9", "BRL", -2010),
    ]


def test_every_oddity_is_counted() -> None:
    assert codes(TWO_ACCOUNTS) == {
        "BAD_DATE": 2,  # DTSERVER, DTASOF
        "BALANCE_LINE": 1,
        "DOUBLE_ESCAPED": 1,
        "EMPTY_RECORD": 1,
        "ENCODING_MISLABELLED": 1,
        "MISSING_END_TAG": 2,  # a transaction, the card's list
        "NO_FITID": 2,
        "RAW_AMPERSAND": 1,
        "UNKNOWN_TRNTYPE": 1,
    }


def test_a_record_that_cannot_be_read_is_kept_with_its_reason() -> None:
    assert [(one.code, one.field) for one in bad(TWO_ACCOUNTS)] == [("BAD_DATE", "DTPOSTED")]


def test_a_record_with_fields_but_neither_type_nor_amount_is_set_aside(tmp_path: Path) -> None:
    path = write(tmp_path, ofx("<STMTTRN><FITID>7</FITID></STMTTRN>"))
    assert [(one.code, one.field) for one in bad(path)] == [("NO_AMOUNT", "TRNAMT")]


def test_a_record_without_any_field_is_counted_and_nothing_is_read_of_it(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn() + "<STMTTRN>*snipped*</STMTTRN>" + trn()))
    report = read_report(path)
    assert (report.movements, report.empty_records, report.bad_records) == (2, 1, 0)
    assert [(one.code, one.count) for one in report.warnings] == [("EMPTY_RECORD", 1)]
    assert report.proof == "NOT_PROVABLE"


def test_a_date_is_the_local_day_as_written(tmp_path: Path) -> None:
    days = {
        "20170901000000[-3:GMT]": date(2017, 9, 1),
        "20170901235959[-3:BRT]": date(2017, 9, 1),
        "20170901235959.999[-03:EST]": date(2017, 9, 1),
        "20170901000000[+14]": date(2017, 9, 1),
        "20170901000000:123": date(2017, 9, 1),
        "201709010000[-3": date(2017, 9, 1),
        "20170901": date(2017, 9, 1),
        "01/09/2017": date(2017, 9, 1),
        "2017-09-01": date(2017, 9, 1),
    }
    path = write(tmp_path, ofx("".join(trn(day=day) for day in days)))
    assert [line.booking_date for line in lines(path)] == list(days.values())


@pytest.mark.parametrize(
    "day",
    [
        "",
        "00000000",
        "00010101",
        "99991231",
        "20170931",
        "20171301",
        "2017",
        "010917",
        "09/31/2017",
        "20170901x",
    ],
)
def test_a_date_that_is_none_makes_a_bad_record(tmp_path: Path, day: str) -> None:
    path = write(tmp_path, ofx(trn(day=day) + trn(fitid="2")))
    assert [one.code for one in bad(path)] == ["BAD_DATE"]
    assert len(lines(path)) == 1


def test_a_balance_written_as_a_movement_is_not_added_up() -> None:
    first = lines(TWO_ACCOUNTS)[0]
    assert (first.kind, first.amount_minor, first.balance_minor) == ("BALANCE", 0, None)
    assert read_report(TWO_ACCOUNTS).sums["BRL"] == 165000 - 895 + 75000 - 4020


def test_a_movement_whose_text_names_a_balance_stays_a_movement(tmp_path: Path) -> None:
    path = write(
        tmp_path, ofx(trn(memo="SALDO ANTERIOR", fitid="77") + trn(memo="SALDO DEVEDOR JUROS"))
    )
    assert [line.kind for line in lines(path)] == ["MOVEMENT", "MOVEMENT"]
    assert codes(path) == {"LOOKS_LIKE_BALANCE": 1}


def test_a_lone_dot_that_is_no_balance_is_a_bad_record(tmp_path: Path) -> None:
    assert [one.code for one in bad(write(tmp_path, ofx(trn(amount="."))))] == ["MALFORMED_AMOUNT"]


def test_text_is_unescaped_and_kept() -> None:
    assert [line.description for line in lines(TWO_ACCOUNTS)][1:3] == [
        "CRÉDITO DE ALUGUÉIS & CONDOMÍNIO",
        "TARIFA PÃO & LEITE LTDA",
    ]
    assert lines(TWO_ACCOUNTS)[1].description_norm == "CREDITO DE ALUGUEIS & CONDOMINIO"
    assert [line.description for line in lines(ONE_LINE)] == ["A <B> & C", "3 < 5"]


def test_a_commented_transaction_is_none() -> None:
    assert [line.amount_minor for line in lines(ONE_LINE)] == [1234, -234]
    assert bad(ONE_LINE) == []


def test_a_comment_or_cdata_at_a_block_of_reading_is_still_one(tmp_path: Path) -> None:
    many = 4000
    one = "<!-- " + trn(fitid="9") + " -->" + trn(memo=f"<![CDATA[{trn(memo='in')}]]>")
    found = records(write(tmp_path, ofx(one * many)))
    assert len(found) == many
    assert {getattr(line, "description", "") for line in found} == {trn(memo="in").strip()}


def test_the_currency_of_a_line_is_never_guessed() -> None:
    # CURRENCY names the amount's currency; ORIGCURRENCY only where it was converted from.
    assert [line.currency for line in lines(ONE_LINE)] == ["AUD", ""]
    assert codes(ONE_LINE)["NO_CURRENCY"] == 1


def test_a_pix_identifier_is_found_in_the_text() -> None:
    assert lines(TWO_ACCOUNTS)[3].e2e_id == "E99999999202603031500abcDEF12345"


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r", "\r\r\n"])
def test_any_line_end_gives_the_same_lines(tmp_path: Path, end: str) -> None:
    text = TWO_ACCOUNTS.read_text("utf-8")
    path = write(tmp_path, text.replace("\n", end).encode())
    assert [line.natural_key for line in lines(path)] == [
        line.natural_key for line in lines(TWO_ACCOUNTS)
    ]
    factor = 2 if end == "\r\r\n" else 1
    expected = [(one.line_no - 1) * factor + 1 for one in records(TWO_ACCOUNTS)]
    assert [one.line_no for one in records(path)] == expected


def test_a_record_knows_its_bytes_and_its_line() -> None:
    content = TWO_ACCOUNTS.read_bytes()
    for record in records(TWO_ACCOUNTS):
        piece = content[record.offset : record.next_offset]
        assert piece.startswith(b"<STMTTRN>")
        assert piece.count(b"<STMTTRN>") == 1
        assert record.line_no == content[: record.offset].count(b"\n") + 1


def test_a_file_without_a_header_is_read(tmp_path: Path) -> None:
    path = write(tmp_path, "\r\n\r\n" + ofx(trn()).partition("\n\n")[2])
    assert len(lines(path)) == 1
    assert codes(path) == {"NO_HEADER": 1}


def test_transactions_without_end_tags_are_read(tmp_path: Path) -> None:
    path = write(tmp_path, ofx((trn() + trn(fitid="2")).replace("</STMTTRN>", "")))
    assert [line.fitid for line in lines(path)] == ["1", "2"]
    assert codes(path) == {"MISSING_END_TAG": 2}


@pytest.mark.parametrize("cut", range(1, 20))
def test_a_file_cut_off_in_a_record_never_gives_a_shorter_amount(tmp_path: Path, cut: int) -> None:
    text = ofx(trn(amount="-1234567.89"))
    at = text.index("-1234567.89")
    path = write(tmp_path, text[: at + cut])
    assert lines(path) == []
    assert [one.code for one in bad(path)] == ["TRUNCATED_RECORD"]
    assert "NO_END_OF_FILE" in codes(path)


def test_two_amounts_in_one_record_are_not_chosen_between(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn().replace("<FITID>", "<TRNAMT>-2.00<FITID>")))
    assert [one.code for one in bad(path)] == ["MALFORMED_RECORD"]


def test_a_sign_against_its_type_is_said_and_the_sign_counts(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn(amount="5.00").replace("OTHER", "DEBIT")))
    assert lines(path)[0].amount_minor == 500
    assert codes(path) == {"SIGN_DISAGREES": 1}


def test_something_like_a_tag_in_a_text_is_not_lost(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn(memo="A <B AND C")))
    assert lines(path)[0].description == "A <B AND C"
    assert codes(path) == {"STRAY_MARKUP": 1}


def test_investments_are_named_as_not_read(tmp_path: Path) -> None:
    text = "<OFX><INVSTMTRS><CURDEF>USD<INVTRANLIST></INVTRANLIST></INVSTMTRS></OFX>"
    path = write(tmp_path, text)
    assert records(path) == []
    assert "INVESTMENTS_NOT_READ" in codes(path)


def test_an_answer_without_a_statement_is_said(tmp_path: Path) -> None:
    text = "OFXHEADER:100\n<OFX><STATUS><CODE>15500<SEVERITY>ERROR</STATUS></OFX>"
    assert codes(write(tmp_path, text)) == {"BANK_SAYS_ERROR": 1, "NO_STATEMENT": 1}


def test_documents_joined_in_one_file_are_all_read(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn()) + ofx(trn(fitid="2")))
    assert [line.fitid for line in lines(path)] == ["1", "2"]
    assert codes(path)["SEVERAL_DOCUMENTS"] == 1


def test_a_record_does_not_end_at_a_block_of_reading(tmp_path: Path) -> None:
    many = 4000  # beyond several blocks, every record at another place in its block
    text = ofx("".join(trn(fitid=f"{i + 1}", memo="M" * (i % 97)) for i in range(many)))
    found = lines(write(tmp_path, text))
    assert [line.fitid for line in found] == [f"{i + 1}" for i in range(many)]
    assert [len(line.description) for line in found] == [i % 97 for i in range(many)]


@pytest.mark.parametrize("opener", ["", "<![CDATA[", "<!--"])
def test_a_text_without_end_is_refused_within_flat_memory(tmp_path: Path, opener: str) -> None:
    path = write(tmp_path, ofx(trn(memo=opener + "x" * 3_000_000)))
    with pytest.raises(StatementError) as caught:
        records(path)
    assert caught.value.code == "RECORD_TOO_LONG"


def test_nothing_is_read_before_it_is_asked_for() -> None:
    opened = open_statement(TWO_ACCOUNTS)
    assert opened.report_header.format == "ofx"
    assert next(iterate(TWO_ACCOUNTS))[0].record_no == 1
