"""What attempts say of themselves while they run, for a checker that compares it with the tables.

Each try of an attempt is told by an ``invoke`` before it begins to work and, unless its process
dies, by how it ended: ``ok`` (the commit was answered), ``fail`` (it certainly did not commit) or
``unknown`` (the commit's outcome is in doubt), which an ``ok`` or ``fail`` follows once the chunk's
row was read under its lock. Nothing is told in production.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from retoma.model.items import Key, Page
from retoma.model.records import Claim, Owner


class Kind(StrEnum):
    """What an entry says."""

    INVOKE = "invoke"
    OK = "ok"
    FAIL = "fail"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line of the history; the order of the lines is the order in which they were told.

    ``items`` is how many items the try has read so far, ``end`` the key that it reaches.
    ``process`` is the slot that tells it: node, slot and process id.
    """

    kind: Kind
    run_id: int
    chunk_id: int
    fence: int
    process: str
    start: Key
    end: Key | None = None
    items: int = 0


Log = Callable[[Entry], None]


def no_log(entry: Entry) -> None:
    """The log of production: nothing is kept."""


class Telling:
    """What one attempt tells, with what is known of it so far."""

    def __init__(self, log: Log, claimed: Claim, owner: Owner) -> None:
        self._log = log
        self._claimed = claimed
        self._process = f"{owner.node_id}/{owner.slot}/{owner.pid}"
        self._end: Key | None = claimed.end
        self._items = 0

    def invoke(self) -> None:
        """A try begins to work."""
        self._end, self._items = self._claimed.end, 0
        self._tell(Kind.INVOKE)

    def has_read(self, page: Page) -> None:
        """The try has read these items and is about to work on them."""
        self._end, self._items = page.end, page.measure.count

    def ok(self) -> None:
        """The commit was answered, or the chunk's row shows it."""
        self._tell(Kind.OK)

    def fail(self) -> None:
        """The try certainly did not commit."""
        self._tell(Kind.FAIL)

    def unknown(self) -> None:
        """Nobody knows yet whether the try committed."""
        self._tell(Kind.UNKNOWN)

    def _tell(self, kind: Kind) -> None:
        claimed = self._claimed
        self._log(
            Entry(
                kind=kind,
                run_id=claimed.run_id,
                chunk_id=claimed.chunk_id,
                fence=claimed.fence,
                process=self._process,
                start=claimed.start,
                end=self._end,
                items=self._items,
            )
        )


def log_from(environment: Mapping[str, str]) -> Log:
    """The log that ``RETOMA_HISTORY`` names; ``no_log`` unless ``RETOMA_ALLOW_FAULTS`` is 1."""
    path = environment.get("RETOMA_HISTORY", "")
    if environment.get("RETOMA_ALLOW_FAULTS") != "1" or not path:
        return no_log
    return partial(append, Path(path))


def append(path: Path, entry: Entry) -> None:
    """Add one line to a history that several processes write at once."""
    line = json.dumps(dataclasses.asdict(entry), separators=(",", ":")) + "\n"
    # One write to a file opened for appending: lines of several processes never mix, and a process
    # that is killed leaves a whole line or none.
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(descriptor, line.encode("ascii"))
    finally:
        os.close(descriptor)


def read(path: Path) -> list[Entry]:
    """The entries of a history file in their order; raises ``FileNotFoundError`` if it is missing."""
    return [_entry(line) for line in _lines(path)]


def _lines(path: Path) -> Iterable[str]:
    return path.read_text("ascii").splitlines()


def _entry(line: str) -> Entry:
    values = json.loads(line)
    return Entry(**{**values, "kind": Kind(values["kind"])})
