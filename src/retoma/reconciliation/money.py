"""Money as whole minor units of a currency: exact, or refused. No float anywhere.

Amounts come as people and banks write them: with a point or a comma for the decimals, with or
without thousands, with more zeros than the currency has decimals. What could mean two amounts is
refused, because a wrong amount costs more than a line that a person has to look at.
"""

import re
from typing import Final, Literal

from retoma.reconciliation.masking import shape_of

AmountCode = Literal["ROUNDING", "MALFORMED_AMOUNT"]

MAX_MINOR: Final = 10**17
"""No single amount is that large; it leaves room for sums in a signed 64-bit column."""

_LONGEST_TEXT = 64

_NO_DECIMALS = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_TWO_DECIMALS = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
    "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD "
    "MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP "
    "PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS "
    "TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VED VES WST XCD YER ZAR ZMW"
)
_THREE_DECIMALS = "BHD IQD JOD KWD LYD OMR TND"
_FOUR_DECIMALS = "CLF UYW"

_EXPONENT: Final[dict[str, int]] = {
    code: exponent
    for exponent, codes in (
        (0, _NO_DECIMALS),
        (2, _TWO_DECIMALS),
        (3, _THREE_DECIMALS),
        (4, _FOUR_DECIMALS),
    )
    for code in codes.split()
}

# A sign before or after the real's symbol, then digits with separators. ASCII digits only.
_AMOUNT = re.compile(r"([+-]?)[ ]*(R\$)?[ ]*([+-]?)([0-9.,]+)", re.ASCII)
_PLAIN = re.compile(r"(-?)([0-9]{1,15})[.,]([0-9]{2})", re.ASCII)
_GROUPED = re.compile(r"[1-9][0-9]{0,2}(?:[.,][0-9]{3})+", re.ASCII)


class AmountError(ValueError):
    """A text that is no amount, could be two amounts, or does not fit its currency.

    `code` is ROUNDING when only decimals beyond the currency's stand in the way, else
    MALFORMED_AMOUNT. The text shows the shape of what was read, never the value.
    """

    def __init__(self, code: AmountCode, reason: str) -> None:
        super().__init__(reason)
        self.code: AmountCode = code
        self.reason = reason


def is_known_currency(currency: str) -> bool:
    """Tell whether the ISO 4217 code is in the table (`''` and invented codes are not)."""
    return currency in _EXPONENT


def exponent_of(currency: str) -> int:
    """Return how many decimals the currency has (ISO 4217); 2 for one that is not known."""
    return _EXPONENT.get(currency, 2)


def parse_amount(text: str, currency: str) -> int:
    """Return the signed amount in minor units of `currency` (1650 for '16,50' in BRL).

    With both separators the last one is the decimal separator. A single separator followed by
    exactly three digits, as in '1.234', is refused as ambiguous, unless the digits before it
    cannot be a group of thousands ('0.500', '1234.500') or the currency has three decimals and
    the separator is a point. Zeros beyond the currency's decimals are fine, other digits are
    refused as ROUNDING. `R$` may stand in front if the currency is BRL or unknown ('').
    Raises AmountError.
    """
    plain = _PLAIN.fullmatch(text)
    if plain is not None and exponent_of(currency) == 2:
        minor = int(plain[2] + plain[3])
        return -minor if plain[1] else minor
    return _parse_tolerantly(text, currency)


def format_amount(minor: int, currency: str) -> str:
    """Write minor units with a point and all decimals of the currency: -5 in BRL is '-0.05'."""
    exponent = exponent_of(currency)
    sign = "-" if minor < 0 else ""
    digits = str(abs(minor)).rjust(exponent + 1, "0")
    if exponent == 0:
        return sign + digits
    return f"{sign}{digits[:-exponent]}.{digits[-exponent:]}"


def _parse_tolerantly(text: str, currency: str) -> int:
    if len(text) > _LONGEST_TEXT:
        raise _malformed(f"the text is longer than {_LONGEST_TEXT} characters")
    stripped = text.replace("\xa0", " ").replace("\u202f", " ").strip()
    if not stripped:
        raise _malformed("the amount is empty")
    match = _AMOUNT.fullmatch(stripped)
    if match is None or (match[1] and match[3]):
        raise _malformed(f"{shape_of(stripped)!r} is not an amount")
    if match[2] and currency not in ("BRL", ""):
        raise _malformed(f"the amount says R$, but the currency is {currency}")
    whole, decimals = _split(match[4], currency)
    minor = _to_minor(whole, decimals, currency)
    return -minor if "-" in (match[1], match[3]) else minor


def _split(number: str, currency: str) -> tuple[str, str]:
    """Part '1.234.567,89' into whole digits and decimals, or refuse."""
    at = max(number.rfind("."), number.rfind(","))
    if at < 0:
        return number, ""
    whole, decimals, mark = number[:at], number[at + 1 :], number[at]
    if mark in whole:  # seen twice: no decimal separator, so all of it is thousands
        _require_groups(number, mark)
        return number.replace(mark, ""), ""
    if not decimals:
        raise _malformed(f"{shape_of(number)!r} ends after its separator")
    other = "," if mark == "." else "."
    if other in whole:
        _require_groups(whole, other)
        return whole.replace(other, ""), decimals
    if _is_ambiguous(number, mark, currency):
        raise _malformed(
            f"{shape_of(number)!r} is ambiguous: thousands or three decimals; "
            "write it with its decimals"
        )
    return whole, decimals


def _is_ambiguous(number: str, mark: str, currency: str) -> bool:
    if mark == "." and exponent_of(currency) == 3:
        return False
    return _GROUPED.fullmatch(number) is not None


def _require_groups(number: str, mark: str) -> None:
    if _GROUPED.fullmatch(number) is None or ("," if mark == "." else ".") in number:
        raise _malformed(f"{shape_of(number)!r} has its thousands in the wrong places")


def _to_minor(whole: str, decimals: str, currency: str) -> int:
    exponent = exponent_of(currency)
    excess = decimals[exponent:]
    if excess.strip("0"):
        raise AmountError(
            "ROUNDING",
            f"{len(decimals.rstrip('0'))} decimals, but {currency or 'the currency'} "
            f"has {exponent}; nothing is rounded here",
        )
    minor = int((whole or "0") + decimals[:exponent].ljust(exponent, "0"))
    if minor > MAX_MINOR:
        raise _malformed("the amount is too large to be one")
    return minor


def _malformed(reason: str) -> AmountError:
    return AmountError("MALFORMED_AMOUNT", reason)
