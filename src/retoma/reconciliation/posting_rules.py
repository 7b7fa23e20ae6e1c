"""What becomes of one transaction: an entry, an item set aside with its reason, or a later try.

Five million of them pass here in a night, so that the clean item goes straight through and all
explanations are made only for what is not clean. No message holds a value of the source.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date
from functools import lru_cache
from hashlib import blake2b
from json import JSONDecodeError, JSONDecoder
from typing import Any, Final

from retoma import NotReady, SetAside, StepContext
from retoma.reconciliation.documents import is_valid_document
from retoma.reconciliation.money import AmountError, exponent_of, is_known_currency, parse_amount

JOB_NAME: Final = "posting"

ENTRY_COLUMNS: Final = (
    "job",
    "idempotency_key",
    "transaction_id",
    "reference_date",
    "amount_minor",
    "currency",
    "entry_type",
    "digest",
)
"""The columns of an entry in the order in which ``to_entry`` gives their values."""

DEEPEST_PAYLOAD: Final = 200
"""Levels of nesting; a limit of our own, because each Python version has another one."""

LARGEST_PAYLOAD: Final = 1_000_000
"""Bytes of UTF-8; more is no payload of a financial message."""

_REQUIRED = ("external_id", "amount", "currency", "document", "status", "entry_type")
_THREE_DECIMALS = re.compile(r"-?[0-9]+\.([0-9]{3})", re.ASCII)
_SURROGATE = re.compile("[\ud800-\udfff]")

Outcome = tuple[Any, ...] | SetAside | NotReady


def to_entry(item: Any, context: StepContext) -> Outcome:
    """The ledger entry of one transaction (a row of ``posting.input_of``), or why there is none.

    Judged in this order: missing field, duplicate, status, document, currency, amount, payload;
    the first that fails names the reason. The idempotency key is ``CONCILIACAO:{yyyymmdd}:{id}``
    with the run's reference date. The digest is over what the entry does (amount, currency, entry
    type): if one of them changes after the entry was made, the engine sees a KEY_CONFLICT.
    """
    ident, external_id, amount, currency, document, status, entry_type, payload, first_id, *_ = item
    if not (
        external_id
        and amount
        and entry_type
        and first_id == ident
        and status == "SETTLED"
        and document
        and is_valid_document(document)
        and is_known_currency(currency)
    ):
        refusal = _refusal(item)
        if refusal is not None:
            return refusal
    try:
        minor = parse_amount(amount, currency)
    except AmountError as error:
        return _bad_amount(error, amount, currency)
    if payload is not None:
        complaint = payload_complaint(payload)
        if complaint is not None:
            return SetAside("MALFORMED_PAYLOAD", complaint, "payload")
    prefix, day = _day_texts(context.parameters["reference_date"])
    effect = f"{minor}|{currency}|{entry_type}".encode("utf-8", "backslashreplace")
    digest = blake2b(effect, digest_size=16).hexdigest()
    return (JOB_NAME, f"{prefix}{ident}", ident, day, minor, currency, entry_type, digest)


@lru_cache(maxsize=16)
def _day_texts(day: date) -> tuple[str, str]:
    return f"CONCILIACAO:{day:%Y%m%d}:", day.isoformat()


def _refusal(item: Any) -> SetAside | NotReady | None:
    for name, value in zip(_REQUIRED, item[1:7], strict=True):
        # An empty amount is there, and is no amount; any other empty text is as good as none.
        if value is None or (value == "" and name != "amount"):
            return SetAside("MISSING_FIELD", f"{name} is missing", name)
    return _contradiction(item)


def _contradiction(item: Any) -> SetAside | NotReady | None:
    ident, _, _, currency, document, status, _, _, first_id, *_ = item
    if first_id != ident:
        seen = f"the source sent it already as transaction {first_id}"
        return SetAside("DUPLICATE_SOURCE", seen, "external_id")
    if status == "PENDING":
        return NotReady("PENDING_STATUS", "not settled yet", "status")
    if status != "SETTLED":
        return SetAside("UNKNOWN_STATUS", "the status is neither SETTLED nor PENDING", "status")
    if not is_valid_document(document):
        return SetAside("INVALID_DOCUMENT", "no CPF or CNPJ with valid check digits", "document")
    if not is_known_currency(currency):
        return SetAside("MALFORMED_AMOUNT", "the currency is no ISO 4217 code", "currency")
    return None


def _bad_amount(error: AmountError, amount: str, currency: str) -> SetAside:
    # A point and three decimals could be thousands, hence refused; but if the third decimal is not
    # zero, both readings leave it out of the ledger, and this is what a person will look for.
    match = _THREE_DECIMALS.fullmatch(amount)
    if match is not None and match[1][exponent_of(currency) :].strip("0"):
        return SetAside("ROUNDING", "more decimals than the currency has", "amount")
    return SetAside(error.code, error.reason, "amount")


class _MalformedError(ValueError):
    """The payload can't be kept; the text says why."""


def _refuse_constant(name: str) -> Any:
    raise _MalformedError(f"not JSON: {name}")


# Numbers are checked for their form only: a number of a million digits costs nothing here.
_DECODER = JSONDecoder(parse_constant=_refuse_constant, parse_float=str, parse_int=str)
# raw_decode and decode are Python around this one, and cost more than a small payload itself.
_scan: Callable[[str, int], tuple[Any, int]] = vars(_DECODER)["scan_once"]


def payload_complaint(payload: str) -> str | None:
    """Why a payload is malformed, or None: it must be a JSON object of at most 1 MB, 200 deep.

    NUL and lone surrogates, raw or escaped, are refused: no two databases store them alike. NaN
    and Infinity are refused: they are not JSON (RFC 8259).
    """
    try:
        if len(payload) > LARGEST_PAYLOAD or not payload.isascii():
            _require_storable(payload)
        value = _parsed(payload)
        if not isinstance(value, dict):
            return "a JSON value, but no object"
        if "\\u" in payload or payload.count("{") + payload.count("[") > DEEPEST_PAYLOAD:
            _require_tame(value)
    except _MalformedError as error:
        return str(error)
    return None


def _require_storable(payload: str) -> None:
    try:
        size = len(payload) if len(payload) > LARGEST_PAYLOAD else len(payload.encode())
    except UnicodeEncodeError:
        raise _MalformedError("holds a lone surrogate") from None
    if size > LARGEST_PAYLOAD:
        raise _MalformedError("larger than 1 MB")


def _parsed(payload: str) -> Any:
    try:
        if not payload.startswith("{"):
            return _DECODER.decode(payload)
        value, end = _scan(payload, 0)
    except (JSONDecodeError, StopIteration):
        raise _MalformedError("not JSON") from None
    except RecursionError:
        raise _MalformedError("nested too deeply") from None
    if payload[end:].strip(" \t\n\r"):
        raise _MalformedError("not JSON: text after its end")
    return value


def _require_tame(value: Any) -> None:
    level: list[Any] = [value]
    for _ in range(DEEPEST_PAYLOAD):
        inside: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inside += one.keys()
                inside += one.values()
            else:
                inside += one
        for one in inside:
            if isinstance(one, str):
                _require_visible(one)
        level = [one for one in inside if isinstance(one, dict | list)]
        if not level:
            return
    raise _MalformedError("nested too deeply")


def _require_visible(text: str) -> None:
    if "\0" in text:
        raise _MalformedError("holds NUL")
    if _SURROGATE.search(text):
        raise _MalformedError("holds a lone surrogate")
