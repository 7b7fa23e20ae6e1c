"""Dates as they are written. A zone is never applied: a bank's day stays that day."""

import re
from datetime import date
from functools import lru_cache

_OFX = re.compile(r"(\d{4})(\d{2})(\d{2})(?:\d{2}){0,3}(?:[.:,]\d*)?\s*(?:\[[^\]]*\]?)?", re.ASCII)
_ISO = re.compile(r"(\d{4})-(\d{2})-(\d{2})", re.ASCII)
_DAY_FIRST = re.compile(r"(\d{2})/(\d{2})/(\d{4})", re.ASCII)
_COMPACT = re.compile(r"(\d{4})(\d{2})(\d{2})", re.ASCII)


@lru_cache(maxsize=4096)
def parse_ofx_date(text: str) -> tuple[date | None, bool]:
    """Return the local date of an OFX date-time, and whether it was written as OFX asks.

    '20170901000000[-3:GMT]' is 1 September 2017, whatever the zone. dd/mm/yyyy and yyyy-mm-dd
    are read too, as not regular. None: no such date.
    """
    stripped = text.strip()
    match = _OFX.fullmatch(stripped)
    if match is not None:
        return _date(match[1], match[2], match[3]), True
    return parse_plain_date(stripped), False


@lru_cache(maxsize=4096)
def parse_plain_date(text: str) -> date | None:
    """Return the date of yyyy-mm-dd, dd/mm/yyyy or yyyymmdd, or None for anything else.

    Two-digit years, times and month-first dates are not guessed at.
    """
    stripped = text.strip()
    match = _ISO.fullmatch(stripped) or _COMPACT.fullmatch(stripped)
    if match is not None:
        return _date(match[1], match[2], match[3])
    match = _DAY_FIRST.fullmatch(stripped)
    return _date(match[3], match[2], match[1]) if match is not None else None


def _date(year: str, month: str, day: str) -> date | None:
    if not "1900" <= year <= "2199":
        return None
    try:
        return date(int(year), int(month), int(day))
    except ValueError:
        return None
