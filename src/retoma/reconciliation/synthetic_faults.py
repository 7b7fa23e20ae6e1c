"""What is wrong with the bad rows of a made-up night: one defect a row, of every known kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

Row = list[Any]
"""id, external_id, business_date, amount, currency, document, status, entry_type, payload."""

Spoil = Callable[[Row, Row, int], None]
"""Changes a clean row, given the clean row before it and how many of its kind came before."""

_AMOUNT, _DOCUMENT, _STATUS, _PAYLOAD = 3, 5, 6, 8
_REQUIRED = (1, 3, 4, 5, 6, 7)

_BAD_AMOUNTS = ("NaN", "1e30", "", "Infinity", "12.34.56", "--5.00", "0x10", "twelve", "9" * 40)
_ROUNDED = ("123.455", "0.001", "1234.56789", "-10.5001", "99.999")
_UNKNOWN_STATUS = ("SETTLD", "settled", "CHARGEBACK", "42", " SETTLED")

_TOO_LARGE = '{"blob": "' + "x" * 1_200_000 + '"}'
_BAD_PAYLOADS = (
    '{"note": "a\\u0000b"}',
    '{"note": "\\ud800"}',
    '{"rate": NaN}',
    '{"rate": -Infinity}',
    '{"channel": "app"',
    "[1, 2, 3]",
    '"text"',
    "",
    "null",
    "{'channel': 'app'}",
    '{"a": 1,}',
    '{"a": 1} {"b": 2}',
    "<payload/>",
    '{"deep": ' + "[" * 10_000 + "]" * 10_000 + "}",
    '{"tab": "\t"}',
)


def _spoil_document(row: Row, _before: Row, count: int) -> None:
    document = row[_DOCUMENT]
    last = (int(document[-1]) + 1) % 10
    plain = document.replace(".", "").replace("-", "").replace("/", "")
    row[_DOCUMENT] = (
        f"{document[:-1]}{last}",
        "11111111111",
        plain[1:],  # a leading zero lost on the way, as spreadsheets do
        f"{plain}0",
        "no document",
    )[count % 5]


def _drop_field(row: Row, _before: Row, count: int) -> None:
    row[_REQUIRED[count % len(_REQUIRED)]] = None


def _send_again(row: Row, before: Row, _count: int) -> None:
    row[1:] = before[1:]


def _spoil_payload(row: Row, _before: Row, count: int) -> None:
    # The megabyte comes once a night: the second of its kind.
    row[_PAYLOAD] = _TOO_LARGE if count == 1 else _BAD_PAYLOADS[count % len(_BAD_PAYLOADS)]


def _put(place: int, values: Sequence[str]) -> Spoil:
    def spoil(row: Row, _before: Row, count: int) -> None:
        row[place] = values[count % len(values)]

    return spoil


SPOILS: dict[str, Spoil] = {
    "INVALID_DOCUMENT": _spoil_document,
    "MISSING_FIELD": _drop_field,
    "UNKNOWN_STATUS": _put(_STATUS, _UNKNOWN_STATUS),
    "ROUNDING": _put(_AMOUNT, _ROUNDED),
    "DUPLICATE_SOURCE": _send_again,
    "MALFORMED_PAYLOAD": _spoil_payload,
    "MALFORMED_AMOUNT": _put(_AMOUNT, _BAD_AMOUNTS),
    "PENDING_STATUS": _put(_STATUS, ("PENDING",)),
}
"""Each bad outcome, and how a clean row is made to deserve it."""
