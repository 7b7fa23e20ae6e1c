"""How values of a file may appear in messages: never in full.

A message may reach a log or a screen, so it shows the tail of an account number at most, and of
any other value only its shape.
"""

import re

_DIGIT = re.compile(r"\d")
_LETTER = re.compile(r"[^\W\d_]")
_SHAPE_LENGTH = 24


def mask_tail(value: str) -> str:
    """Return the last four characters of `value` at most, and never more than half of it."""
    if not value:
        return ""
    shown = min(4, len(value) // 2)
    return "…" + value[len(value) - shown :]


def shape_of(value: str) -> str:
    """Return `value` with 9 for each digit and A for each letter, cut to 24 characters.

    Enough to see why it could not be read ("$999", "99/99/99"), too little to know what it was.
    """
    text = value.strip()
    short = text[:_SHAPE_LENGTH]
    shape = _LETTER.sub("A", _DIGIT.sub("9", short))
    return shape + "…" if len(text) > _SHAPE_LENGTH else shape
