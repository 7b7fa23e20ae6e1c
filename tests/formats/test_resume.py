"""Reading on from any position, and keys that do not move."""

from __future__ import annotations

import dataclasses
import itertools
import json
from datetime import date
from pathlib import Path

import pytest

from retoma.reconciliation.natural_key import natural_key
from retoma.reconciliation.reading import iterate
from retoma.reconciliation.statement import Position, StatementError
from tests.formats.samples import ALL, RUNNING, TWO_ACCOUNTS, lines, ofx, trn, write


def through_json(position: Position) -> Position:
    stored = json.dumps(dataclasses.asdict(position))
    return Position(**json.loads(stored))


@pytest.mark.parametrize("path", ALL, ids=lambda path: path.name)
def test_from_every_position_exactly_the_rest_is_read(path: Path) -> None:
    whole = list(iterate(path))
    assert len(whole) > 1
    for done, (_, position) in enumerate(whole, start=1):
        assert list(iterate(path, through_json(position))) == whole[done:]


@pytest.mark.parametrize("end", ["\r\n", "\r\r\n", "\r"])
def test_line_ends_do_not_harm_resuming(tmp_path: Path, end: str) -> None:
    for source in (TWO_ACCOUNTS, RUNNING):
        text = source.read_text("utf-8").replace("\n", end)
        path = write(tmp_path, text, source.name)
        whole = list(iterate(path))
        for done, (_, position) in enumerate(whole, start=1):
            assert list(iterate(path, position)) == whole[done:]


def test_transactions_without_end_tags_can_be_resumed(tmp_path: Path) -> None:
    text = ofx("".join(trn(fitid=str(i)) for i in range(1, 6)).replace("</STMTTRN>", ""))
    path = write(tmp_path, text)
    whole = list(iterate(path))
    for done, (_, position) in enumerate(whole, start=1):
        assert list(iterate(path, position)) == whole[done:]


def test_a_line_end_inside_a_tag_is_counted(tmp_path: Path) -> None:
    path = write(tmp_path, ofx((trn() * 3).replace("</STMTTRN>", "</STMTTRN\n>")))
    whole = list(iterate(path))
    assert [record.line_no for record, _ in whole] == [3, 5, 7]
    for done, (_, position) in enumerate(whole, start=1):
        assert list(iterate(path, position)) == whole[done:]


def test_records_are_numbered_and_follow_each_other() -> None:
    for path in ALL:
        whole = [record for record, _ in iterate(path)]
        assert [one.record_no for one in whole] == list(range(1, len(whole) + 1))
        assert all(a.next_offset <= b.offset for a, b in itertools.pairwise(whole))


def test_a_file_of_another_size_is_not_read_on(tmp_path: Path) -> None:
    path = write(tmp_path, TWO_ACCOUNTS.read_bytes())
    _, position = next(iterate(path))
    write(tmp_path, TWO_ACCOUNTS.read_bytes() + b" ")
    with pytest.raises(StatementError) as caught:
        next(iterate(path, position))
    assert caught.value.code == "FILE_CHANGED"


def test_a_position_of_something_else_is_refused() -> None:
    size = TWO_ACCOUNTS.stat().st_size
    with pytest.raises(StatementError) as caught:
        next(iterate(TWO_ACCOUNTS, Position(0, {"format": "ofx", "bytes": size})))
    assert caught.value.code == "BAD_POSITION"


@pytest.mark.parametrize("encoding", ["cp1252", "utf-8", "utf-8-sig"])
@pytest.mark.parametrize("source", [TWO_ACCOUNTS, RUNNING], ids=lambda path: path.name)
def test_keys_do_not_depend_on_encoding_or_name(
    tmp_path: Path, source: Path, encoding: str
) -> None:
    path = write(tmp_path, source.read_text("utf-8").encode(encoding), "another.name")
    before, after = lines(source), lines(path)
    assert [line.natural_key for line in after] == [line.natural_key for line in before]
    assert [line.description for line in after] == [line.description for line in before]


def test_overlapping_statements_give_equal_keys(tmp_path: Path) -> None:
    days = [trn(fitid=fitid, day=f"202608{i:02d}") for i, fitid in enumerate("ab0c", start=1)]
    first = lines(write(tmp_path, ofx("".join(days[:3])), "first"))
    second = lines(write(tmp_path, ofx("".join(days[1:])), "second"))
    keys = [{line.natural_key for line in part} for part in (first, second)]
    assert len(keys[0] & keys[1]) == 2
    assert len(keys[0] | keys[1]) == 4


def test_keys_tell_apart_what_is_different() -> None:
    keys = {
        natural_key(
            account=account, bank_id=bank_id, booking_date=day, amount_minor=amount,
            currency=currency, description_norm=text, reference="",
        )
        for account in ("1", "11")
        for bank_id in ("", "1", "12")
        for day in (date(2026, 1, 1), date(2026, 1, 2))
        for amount in (1, -1)
        for currency in ("BRL", "USD")
        for text in ("A", "B")
    }  # fmt: skip
    # With an id the text is no part of the key: 2*2*2*2*2 without an id, 2*2*2*2*2 with one.
    assert len(keys) == 32 + 32


def test_neighbouring_parts_of_a_key_do_not_run_together() -> None:
    def key(text: str, reference: str) -> str:
        return natural_key(
            account="1", bank_id="", booking_date=date(2026, 1, 1), amount_minor=1,
            currency="BRL", description_norm=text, reference=reference,
        )  # fmt: skip

    assert key("AB", "") != key("A", "B")


def test_an_id_of_zeros_or_blanks_is_none(tmp_path: Path) -> None:
    path = write(tmp_path, ofx(trn(fitid="000") + trn(fitid="  ") + trn(fitid=" 7 ")))
    first, second, third = lines(path)
    assert first.natural_key == second.natural_key
    assert first.natural_key.startswith("F:")
    assert third.natural_key.startswith("I:")
    assert third.fitid == "7"
