"""Amounts as text, and as minor units."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.reconciliation.money import (
    MAX_MINOR,
    AmountError,
    exponent_of,
    format_amount,
    is_known_currency,
    parse_amount,
)

CURRENCIES = st.sampled_from(["BRL", "USD", "JPY", "BHD", "KWD", "CLF", ""])
MINOR = st.integers(-MAX_MINOR, MAX_MINOR)


@given(MINOR, CURRENCIES)
def test_what_is_written_is_read_back(minor: int, currency: str) -> None:
    assert parse_amount(format_amount(minor, currency), currency) == minor


@given(MINOR, CURRENCIES)
def test_what_is_written_is_the_exact_decimal(minor: int, currency: str) -> None:
    assert Decimal(format_amount(minor, currency)).scaleb(exponent_of(currency)) == minor


@given(MINOR, st.sampled_from([(".", ","), (",", "."), (".", ""), (",", "")]))
def test_point_and_comma_with_and_without_thousands_mean_the_same(
    minor: int, marks: tuple[str, str]
) -> None:
    decimal, thousands = marks
    whole = f"{abs(minor) // 100:,}".replace(",", thousands)
    text = f"{'-' if minor < 0 else ''}{whole}{decimal}{abs(minor) % 100:02d}"
    assert parse_amount(text, "BRL") == minor


@given(st.text("0123456789.,-+ R$eE", max_size=14))
def test_a_text_is_read_as_the_decimal_it_shows_or_refused(text: str) -> None:
    try:
        minor = parse_amount(text, "BRL")
    except AmountError:
        return
    plain = text.replace("R$", "").replace(" ", "")
    digits = plain.replace(",", "").replace(".", "").lstrip("+-")
    # Whatever was taken for decimals, no digit but zeros was lost or invented.
    assert str(abs(minor)).strip("0") == digits.strip("0")
    assert (minor <= 0) if "-" in plain else (minor >= 0)


@pytest.mark.parametrize(
    ("text", "minor"),
    [
        ("1234.56", 123456),
        ("-1.234,56", -123456),
        ("1,650.00", 165000),
        ("1.650,00", 165000),
        ("750", 75000),
        ("-8.95000", -895),
        ("-35.4", -3540),
        (" \t+12,30\n", 1230),
        ("\u00a0R$\u00a05.326,43\u00a0", 532643),
        ("-R$ 1,00", -100),
        ("R$ -1,00", -100),
        ("- 1,00", -100),
        (".50", 50),
        ("0.500", 50),
        ("1234.500", 123450),
        ("1.234.567", 123456700),
        ("1,234,567.8", 123456780),
        ("1.234,500", 123450),
        ("-0.00", 0),
        ("000012.30", 1230),
    ],
)
def test_amounts_as_banks_write_them_are_read(text: str, minor: int) -> None:
    assert parse_amount(text, "BRL") == minor


@pytest.mark.parametrize(
    "text",
    [
        "", " ", ".", ",", "-", "+", "R$", "NaN", "Infinity", "-inf", "1e30", "1E2", "1_000",
        "$120", "€5", "US$ 5", "12,34.56", "1.23.456,00", "1,2,3", "1,234.567.8", "5.", "5,",
        "--5", "+-5", "-R$-5", "5-", "(5)", "5 000", "1'000.00", "\uff10\uff11", "٣", "0x10",
        "1.234.56", "12.34.567", "1.234,567.89", "99999999999999999999", "1" * 65, "9" * 5000,
        "\u22125",
    ],
)  # fmt: skip
def test_what_is_no_amount_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(AmountError) as caught:
        parse_amount(text, "BRL")
    assert caught.value.code == "MALFORMED_AMOUNT"
    assert caught.value.reason


@pytest.mark.parametrize("text", ["1.234", "1,234", "-12.345", "999,000", "R$ 1.000"])
def test_what_could_be_two_amounts_is_refused_as_ambiguous(text: str) -> None:
    for currency in ("BRL", "JPY", ""):
        if "R$" in text and currency == "JPY":
            continue
        with pytest.raises(AmountError, match="ambiguous") as caught:
            parse_amount(text, currency)
        assert caught.value.code == "MALFORMED_AMOUNT"


@pytest.mark.parametrize(
    ("text", "currency"),
    [("1.2345", "BRL"), ("0.125", "BRL"), ("1.5", "JPY"), ("1.0001", "KWD"), ("1.234,567", "BRL")],
)
def test_nothing_is_rounded(text: str, currency: str) -> None:
    with pytest.raises(AmountError) as caught:
        parse_amount(text, currency)
    assert caught.value.code == "ROUNDING"


def test_a_currency_has_its_own_decimals() -> None:
    assert parse_amount("1500", "JPY") == 1500
    assert parse_amount("1500.00", "JPY") == 1500
    assert parse_amount("1.234", "BHD") == 1234
    assert parse_amount("7", "KWD") == 7000
    assert parse_amount("7", "QQQ") == 700
    assert not is_known_currency("QQQ")
    assert format_amount(-5, "BRL") == "-0.05"
    assert format_amount(5, "KWD") == "0.005"
    assert format_amount(-5, "JPY") == "-5"


def test_an_amount_beyond_all_reason_is_refused() -> None:
    assert parse_amount(format_amount(MAX_MINOR, "BRL"), "BRL") == MAX_MINOR
    with pytest.raises(AmountError, match="too large"):
        parse_amount(format_amount(MAX_MINOR + 1, "BRL"), "BRL")
    assert MAX_MINOR < 2**63


def test_the_symbol_of_another_currency_is_a_contradiction() -> None:
    with pytest.raises(AmountError, match="USD"):
        parse_amount("R$ 5,00", "USD")


def test_a_refusal_shows_the_shape_and_not_the_value() -> None:
    with pytest.raises(AmountError) as caught:
        parse_amount("529.982.247-25", "BRL")
    assert "529" not in caught.value.reason
    assert "999.999.999-99" in caught.value.reason
