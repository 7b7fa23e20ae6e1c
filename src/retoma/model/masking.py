"""Personal data is masked before it is stored outside its own table, logged or shown.

Fields that a step declares personal are masked whole. Every other text is scanned for what looks
like a CPF, a CNPJ (also the alphanumeric one of July 2026, IN RFB 2.229/2024) or a card number.
Values that the database can't hold (NUL, lone surrogates) are escaped, long ones cut with a digest.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Collection, Mapping
from datetime import date, datetime
from decimal import Decimal
from typing import Any

_CPF = re.compile(r"(?<![0-9A-Za-z])\d{3}[.\s]?\d{3}[.\s]?\d{3}[-\s]?\d{2}(?![0-9A-Za-z])")
_CNPJ = re.compile(
    r"(?<![0-9A-Za-z])[0-9A-Za-z]{2}[.\s]?[0-9A-Za-z]{3}[.\s]?[0-9A-Za-z]{3}[/\s]?[0-9A-Za-z]{4}[-\s]?\d{2}"
    r"(?![0-9A-Za-z])"
)
_GLUED_CPF = re.compile(r"(?<!\d)\d{11}(?!\d)")
_CARD = re.compile(r"(?<![0-9A-Za-z])(?:\d[ .-]?){12,18}\d(?![0-9A-Za-z])")
_LONGEST = 2_000
_WINDOW = 16 * _LONGEST
"""No more of a text is scanned: what is kept of it lies well within, however much masking shrinks."""


def mask(value: str) -> str:
    """A text of which only the last two characters can still be read."""
    kept = value[-2:] if len(value) > 4 else ""
    return "*" * min(len(value) - len(kept), 12) + kept


def _mask_cnpj(match: re.Match[str]) -> str:
    text = match.group()
    digits = sum(c.isdigit() for c in text)
    # Words of fourteen letters are no CNPJ: a real one has at least its two check digits and,
    # so far, always some digits before them.
    return mask(text) if digits >= 5 else text


def _mask_glued_cpf(match: re.Match[str]) -> str:
    """Eleven digits right beside a letter: part of a digest, unless the check digits are right."""
    digits = [int(c) for c in match.group()]
    for length in (9, 10):
        total = sum(d * (length + 1 - n) for n, d in enumerate(digits[:length]))
        if total * 10 % 11 % 10 != digits[length]:
            return match.group()
    return mask(match.group())


def mask_text(text: str) -> str:
    """The text with everything that looks like a document or card number masked."""
    text = _CPF.sub(lambda m: mask(m.group()), text)
    text = _GLUED_CPF.sub(_mask_glued_cpf, text)
    text = _CNPJ.sub(_mask_cnpj, text)
    return _CARD.sub(lambda m: mask(m.group()), text)


def storable(text: str, longest: int = _LONGEST) -> str:
    """A text that every database can hold: NUL and lone surrogates escaped, cut with a digest."""
    if "\0" in text:
        text = text.replace("\0", "\\u0000")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        text = text.encode("utf-8", "backslashreplace").decode("utf-8")
    if len(text) > longest:
        digest = hashlib.sha256(text.encode()).hexdigest()[:16]
        text = f"{text[:longest]}… [{len(text)} characters, sha256 {digest}]"
    return text


def _plain(value: Any, *, personal: bool) -> Any:
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int) and not personal:
        return value if abs(value) < 10**10 else mask_text(str(value))
    if isinstance(value, Mapping):
        return {
            storable(mask_text(str(k)), 100): _plain(v, personal=personal)
            for k, v in list(value.items())[:100]
        }
    if isinstance(value, (list, tuple)):
        return [_plain(v, personal=personal) for v in value[:100]]
    if isinstance(value, (date, datetime)):
        text = value.isoformat()
    elif isinstance(value, bytes):
        text = value[: 4 * _WINDOW].decode("utf-8", "backslashreplace")
    else:
        text = str(value) if isinstance(value, (str, int, Decimal, float)) else repr(value)
    return mask(text) if personal else _scanned(text)


def _scanned(text: str) -> str:
    """Masked first, cut then: a cut could bare a number."""
    if len(text) <= _WINDOW:
        return storable(mask_text(text))
    digest = hashlib.sha256(text.encode("utf-8", "backslashreplace")).hexdigest()[:16]
    shown = storable(mask_text(text[:_WINDOW]), _WINDOW)[:_LONGEST]
    return f"{shown}… [{len(text)} characters, sha256 {digest}]"


def mask_payload(fields: Mapping[str, Any], personal: Collection[str]) -> str:
    """The fields as JSON text that is safe to store and to show; at most some 60,000 characters."""
    plain = {name: _plain(value, personal=name in personal) for name, value in fields.items()}
    text = json.dumps(plain, ensure_ascii=False, allow_nan=False, default=str)
    return storable(text, 60_000)
