"""The demo's side files: which items the workers' code has seen, whatever became of its chunk.

Each process appends the id of each item to a file of its own, eight bytes an item, before it does
anything else with it. What is written stays when the process is killed, so the files tell what was
done twice; the database can't, because of an attempt that was rolled back it knows nothing.
"""

from __future__ import annotations

import json
import os
import sys
from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import Engine, bindparam, column, select, table

from retoma import UsageError

VARIABLE = "RETOMA_DEMO_TRACE"
"""The environment variable that names the directory of the side files."""

_WIDTH = 8
_BLOCK = _WIDTH * 65_536
_WIDEST_SPAN = 1_000_000_000

_chunk = table(
    "batch_chunk",
    column("step_id"),
    column("run_id"),
    column("state"),
    column("start_key"),
    column("end_key"),
)


class SideFile:
    """This process's file in the directory, opened at its first item; a fork gets its own."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._descriptor: int | None = None
        os.register_at_fork(after_in_child=self._forget)

    def _forget(self) -> None:
        self._descriptor = None

    def _open(self) -> int:
        # The session names the worker: its slots are in it, and nobody else is.
        path = self._directory / f"{os.getsid(0)}.{os.getpid()}"
        self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
        return self._descriptor

    def note(self, ident: int) -> None:
        """Append an id; when this returns, the kernel has it and a kill can't take it back."""
        descriptor = self._descriptor if self._descriptor is not None else self._open()
        os.write(descriptor, ident.to_bytes(_WIDTH, sys.byteorder, signed=True))


def slots_of(directory: Path, session: int) -> dict[int, Path]:
    """Process id and side file of each slot that a worker, named by its session, has had."""
    return {int(path.suffix[1:]): path for path in directory.glob(f"{session}.*")}


def last_item(path: Path) -> int | None:
    """The id that was appended last."""
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END) // _WIDTH * _WIDTH
        if not size:
            return None
        file.seek(size - _WIDTH)
        return int.from_bytes(file.read(_WIDTH), sys.byteorder, signed=True)


def items_of(directory: Path) -> Iterator[array[int]]:
    """All ids in all side files, in blocks; an id as often as it was seen."""
    for path in sorted(directory.iterdir()):
        with path.open("rb") as file:
            while block := file.read(_BLOCK):
                ids = array("q")
                ids.frombytes(block[: len(block) // _WIDTH * _WIDTH])
                yield ids


@dataclass(frozen=True, slots=True)
class Rework:
    """What was computed more than once.

    ``items_recomputed`` counts each time beyond an item's first; ``repeated_ids`` has each of these
    items once.
    """

    items_seen: int
    items_recomputed: int
    repeated_ids: Sequence[int]


def rework_of(directory: Path) -> Rework:
    """Count the side files; one byte of memory for each id between the lowest and the highest."""
    blocks = [(min(ids), max(ids)) for ids in items_of(directory) if ids]
    if not blocks:
        return Rework(0, 0, ())
    low, high = min(low for low, _ in blocks), max(high for _, high in blocks)
    if high - low > _WIDEST_SPAN:
        raise UsageError(f"the ids of the traced items lie too far apart ({low} to {high})")
    times = bytearray(high - low + 1)
    seen = recomputed = 0
    repeated = array("q")
    for ids in items_of(directory):
        seen += len(ids)
        for ident in ids:
            before = times[ident - low]
            if before:
                recomputed += 1
            if before == 1:
                repeated.append(ident)
            if before < 2:
                times[ident - low] = before + 1
    return Rework(seen, recomputed, repeated)


def chunk_ranges(engine: Engine, run_id: int, state: str) -> list[tuple[int, int]]:
    """(above, up to) of each chunk of the run in that state, in the order of the keys."""
    statement = select(_chunk.c.start_key, _chunk.c.end_key).where(
        _chunk.c.run_id == bindparam("run_id"), _chunk.c.state == bindparam("state")
    )
    with engine.connect() as connection:
        rows = connection.execute(statement, {"run_id": run_id, "state": state}).all()
    return sorted((json.loads(start), json.loads(end)) for start, end in rows)


def chunks_with(ids: Iterable[int], ranges: Sequence[tuple[int, int]]) -> int:
    """How many of the ranges hold at least one of the ids."""
    ends = [end for _, end in ranges]
    found = set()
    for ident in ids:
        place = bisect_left(ends, ident)
        if place < len(ranges) and ranges[place][0] < ident:
            found.add(place)
    return len(found)


def side_file_from(environment: Callable[[str], str | None]) -> SideFile | None:
    """The side file that the environment asks for, if it asks for one."""
    directory = environment(VARIABLE)
    return SideFile(Path(directory)) if directory else None
