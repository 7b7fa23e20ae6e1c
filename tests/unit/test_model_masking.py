"""Personal data is masked before it is stored or shown, whatever it is wrapped in."""

from __future__ import annotations

import json
import time
from datetime import date
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.model.masking import mask, mask_payload, mask_text, storable

NUMBERS = [
    "529.982.247-25",
    "52998224725",
    "529 982 247 25",
    "11.222.333/0001-81",
    "11222333000181",
    "12.ABC.345/01DE-35",
    "12ABC34501DE35",
    "12abc34501de35",
    "4111 1111 1111 1111",
    "4111-1111-1111-1111",
    "4111111111111111",
    "378282246310005",
]
FRAMES = [
    "{}",
    "CPF {}.",
    "({})",
    "id={};",
    "a {} b",
    "o cliente {}, de São Paulo",
    '"{}"',
    "\n{}\t",
]


def kept_digits(text: str) -> int:
    return sum(c.isalnum() for c in text)


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("frame", FRAMES)
def test_a_number_in_free_text_is_masked_but_for_its_last_two(number: str, frame: str) -> None:
    text = mask_text(frame.format(number))
    assert number not in text
    assert kept_digits(text) == kept_digits(frame) + 2
    assert text.replace("*", "").replace(number[-2:], "") == frame.format("")


def test_several_numbers_in_one_text_are_all_masked() -> None:
    text = mask_text("; ".join(NUMBERS))
    assert not any(number in text for number in NUMBERS)
    assert kept_digits(text) == 2 * len(NUMBERS)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "boom at 4",
        "2026-11-30",
        "R$ 1.234,56",
        "run 1234567",
        "transaction 1000042",
        "abcdefghijklmn",
    ],
)
def test_what_is_no_such_number_stays_readable(text: str) -> None:
    assert mask_text(text) == text


@pytest.mark.parametrize(
    "value", ["52998224700", "not a CPF at all", "529.982", 52998224700, "12345"]
)
def test_in_a_personal_field_invalid_values_are_masked_too(value: Any) -> None:
    [shown] = json.loads(mask_payload({"document": value}, ("document",))).values()
    assert shown == "*" * min(len(str(value)) - 2, 12) + str(value)[-2:]


@pytest.mark.parametrize("value", ["abcd", "x", ""])
def test_of_a_short_personal_value_nothing_is_left(value: str) -> None:
    assert mask(value) == "*" * len(value)


def test_personal_values_are_masked_at_any_depth() -> None:
    payload = {"person": {"names": ["Ana Souza", {"cpf": "52998224725"}], "born": date(1990, 1, 2)}}
    text = mask_payload(payload, ("person",))
    assert not any(word in text for word in ("Ana", "Souz", "529", "1990"))


def test_numbers_hide_in_no_type() -> None:
    payload = {
        "int": 52998224725,
        "decimal": Decimal(52998224725),
        "list": ["52998224725"],
        "nested": {"a": {"b": "52998224725"}},
        "bytes": b"52998224725",
        "key": {"52998224725": 1},
        "set": {"52998224725"},
        "float": 52998224725.0,
    }
    assert "529982247" not in mask_payload(payload, ())


@pytest.mark.parametrize(
    "value", ["a\0b", "lone \ud800 surrogate", b"\xff\x00", float("nan"), float("inf")]
)
def test_what_no_database_can_hold_is_escaped(value: Any) -> None:
    text = mask_payload({"value": value}, ())
    assert "\0" not in text
    text.encode("utf-8")
    assert isinstance(json.loads(text)["value"], str)


@given(st.text(), st.binary(), st.floats())
def test_any_value_becomes_text_that_can_be_stored(text: str, raw: bytes, number: float) -> None:
    stored = mask_payload({"a": text, "b": raw, "c": number, text: 1}, ())
    stored.encode("utf-8")
    assert "\0" not in stored
    assert "\0" not in storable(text)


@pytest.mark.parametrize("before", range(1_985, 2_001))
@pytest.mark.parametrize("kind", [str, bytes])
def test_a_number_at_the_cut_is_masked_before_the_cut(before: int, kind: type) -> None:
    text = "x" * (before - 1) + " 52998224725 rest"
    stored = mask_payload({"value": text if kind is str else text.encode()}, ())
    assert "5299" not in stored


def test_a_long_text_is_cut_with_a_digest_that_tells_it_apart() -> None:
    first, second = storable("x" * 3_000), storable("x" * 2_999 + "y")
    assert len(first) < 2_100
    assert first != second
    assert "3000 characters" in first


def test_a_text_of_ten_megabytes_is_stored_quickly_and_short() -> None:
    begun = time.monotonic()
    stored = mask_payload({"text": "lorem ipsum 12 " * 700_000, "raw": b"\xff\x01" * 5_000_000}, ())
    assert len(stored) < 60_200
    assert time.monotonic() - begun < 2.0
    assert "10500000 characters" in stored


@pytest.mark.parametrize("before", range(12))
def test_a_number_that_the_scan_reaches_only_in_part_is_not_shown(before: int) -> None:
    stored = mask_payload({"value": "x" * before + " " + "52998224725 " * 5_000}, ())
    assert "5299" not in stored


def test_a_payload_of_many_fields_has_a_bound() -> None:
    stored = mask_payload({f"field {n}": "x" * 2_000 for n in range(500)}, ())
    assert len(stored) < 60_200
