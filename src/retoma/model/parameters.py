"""Parameters of a run: typed, checked before anything is stored, and the identity they give."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from typing import Any

from retoma.errors import UsageError
from retoma.model.items import Value

_KINDS: tuple[type, ...] = (date, int, bool, str)
_MAXIMUM_CHARACTERS = 20_000
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One parameter of a job; the identifying ones name the instance."""

    name: str
    kind: type = str
    identifying: bool = True
    required: bool = True
    default: Value = None

    def parse(self, raw: Any) -> Value:
        """The typed value of what a person or a caller gave; raises ``UsageError``."""
        if self.kind is date:
            return self._parse_date(raw)
        shown = str(raw)[:40]
        if self.kind is bool:
            if str(raw).lower() in ("true", "1", "yes"):
                return True
            if str(raw).lower() in ("false", "0", "no"):
                return False
            raise UsageError(f"parameter {self.name!r} must be true or false, not {shown!r}")
        if self.kind is int:
            try:
                return int(str(raw))
            except ValueError:
                raise UsageError(
                    f"parameter {self.name!r} must be a whole number, not {shown!r}"
                ) from None
        text = str(raw)
        if "\0" in text or (self.identifying and not text.isprintable()):
            raise UsageError(f"parameter {self.name!r} holds a character that can't be stored")
        if len(text) > _MAXIMUM_CHARACTERS:
            raise UsageError(
                f"parameter {self.name!r} is longer than {_MAXIMUM_CHARACTERS} characters"
            )
        return text

    def _parse_date(self, raw: Any) -> date:
        if isinstance(raw, date):
            return date(raw.year, raw.month, raw.day)
        text = str(raw)
        try:
            if not _DATE.fullmatch(text):  # fromisoformat alone takes week dates such as 2026-W48-1
                raise ValueError
            return date.fromisoformat(text)
        except ValueError:
            raise UsageError(
                f"parameter {self.name!r} must be a date such as 2026-11-30, not {text[:40]!r}"
            ) from None


def parse_parameters(declared: Sequence[Parameter], given: Mapping[str, Any]) -> dict[str, Value]:
    """All parameters, typed, with defaults; raises one ``UsageError`` that names every mistake."""
    known = {parameter.name for parameter in declared}
    mistakes = [
        f"unknown parameter {name!r} (known: {', '.join(sorted(known)) or 'none'})"
        for name in sorted(set(given) - known)
    ]
    values: dict[str, Value] = {}
    for parameter in declared:
        if parameter.name in given and given[parameter.name] is not None:
            try:
                values[parameter.name] = parameter.parse(given[parameter.name])
            except UsageError as error:
                mistakes.append(error.message)
        elif parameter.required:
            mistakes.append(f"parameter {parameter.name!r} is missing")
        else:
            values[parameter.name] = parameter.default
    if mistakes:
        raise UsageError("; ".join(mistakes), safe="Nothing was stored or started.")
    return values


def to_json(values: Mapping[str, Value]) -> str:
    """The canonical text of parameters: sorted names, dates as ISO text, no blanks."""
    return json.dumps(
        {
            name: value.isoformat() if isinstance(value, date) else value
            for name, value in values.items()
        },
        sort_keys=True,
        separators=(",", ":"),
        ensure_ascii=True,
    )


def from_json(declared: Sequence[Parameter], text: str) -> dict[str, Value]:
    """Parameters as they were stored by ``to_json``; unknown names are kept as they are."""
    kinds = {parameter.name: parameter for parameter in declared}
    stored = json.loads(text)
    return {
        name: kinds[name].parse(value) if name in kinds and value is not None else value
        for name, value in stored.items()
    }


def identity_of(job: str, declared: Sequence[Parameter], values: Mapping[str, Value]) -> str:
    """The instance's key: a digest of the job and its identifying parameters."""
    identifying = {p.name: values.get(p.name) for p in declared if p.identifying}
    return hashlib.sha256(f"{job}\n{to_json(identifying)}".encode()).hexdigest()
