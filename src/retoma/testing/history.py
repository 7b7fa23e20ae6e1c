"""The history checker: what attempts said of themselves, against what the tables say at the end.

One pass over the entries and the rows of one instance, each chunk by itself. What is allowed:

- A process may be frozen between its claim and its ``invoke``, so a lower fence may be told after a
  higher one. It must not commit any more, and its row must have been written before the other's.
- A process may be killed after the commit and before it could say so: COMPLETED without an ``ok``.
- A doubt that nobody could resolve (the database was away) may have been a commit. The next try
  with the same fence is then refused, and fails, though the fence is COMPLETED.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import pairwise

from retoma.engine.history import Entry, Kind
from retoma.store.chunks import key_text
from retoma.store.store import Store
from retoma.testing.recorded import AttemptRow, ChunkRow, Recorded, recorded


class Broken(StrEnum):
    """What can be wrong with a history."""

    END_WITHOUT_INVOKE = "a try ended that never began"
    FENCE_SHARED = "two processes worked under one fence"
    FENCE_FELL = "a fence did not rise"
    TWO_OKS = "two tries at one chunk committed"
    OK_AFTER_HIGHER_FENCE = "an attempt committed after its chunk was given to another"
    INVOKED_AFTER_COMMIT = "a committed chunk was worked on again"
    OK_NOT_COMPLETED = "a commit was answered, and the attempt is not COMPLETED"
    COMPLETED_NOT_INVOKED = "an attempt is COMPLETED that nobody began"
    FAIL_COMPLETED = "an attempt is COMPLETED though each of its tries failed"
    COUNTS_DIFFER = "the items that were committed are not those that the chunk counts"
    RANGE_DIFFERS = "the range that was committed is not that of the chunk"
    SUMS_DIFFER = "the counts of the committed chunks do not add up to the step's"
    REWORK = "more was computed again than the attempts that ended without a commit explain"
    NEVER_ENDED = "an attempt began, and no row tells its end"


@dataclass(frozen=True, slots=True)
class Violation:
    """One thing that must not be; ``chunk_id`` is None for what concerns a whole step."""

    broken: Broken
    chunk_id: int | None
    detail: str

    def __str__(self) -> str:
        where = "" if self.chunk_id is None else f"chunk {self.chunk_id}: "
        return f"{self.broken.name}: {where}{self.broken} ({self.detail})"


def check(entries: Iterable[Entry], store: Store, run_id: int) -> list[Violation]:
    """Every violation in the history of a run's instance; none may be RUNNING any more.

    ``entries`` in the order in which they were told (``retoma.engine.history.read``); those of other
    instances are passed over. Raises ``UsageError`` for an unknown run.
    """
    return violations(entries, recorded(store, run_id))


def violations(entries: Iterable[Entry], tables: Recorded) -> list[Violation]:
    """The same for rows that were read before."""
    told: dict[int, list[Entry]] = defaultdict(list)
    for entry in entries:
        if entry.run_id in tables.runs:
            told[entry.chunk_id].append(entry)
    ended: dict[int, list[AttemptRow]] = defaultdict(list)
    for row in tables.attempts:
        ended[row.chunk_id].append(row)
    rows = {chunk.chunk_id: chunk for chunk in tables.chunks}
    found: list[Violation] = []
    for chunk_id in sorted(told.keys() | ended.keys()):
        story = _Story(chunk_id, rows.get(chunk_id), ended[chunk_id], told[chunk_id])
        found += [Violation(broken, chunk_id, detail) for broken, detail in story.check()]
    return found + list(_sums(tables))


def _sums(tables: Recorded) -> Iterator[Violation]:
    """The counts of what committed are the step's, and each chunk's items have one outcome each."""
    committed = {row.chunk_id for row in tables.attempts if row.outcome == "COMPLETED"}
    sums = dict.fromkeys(tables.step_items, 0)
    for chunk in tables.chunks:
        if chunk.items != chunk.outcomes:
            detail = f"{chunk.items} items read, {chunk.outcomes} outcomes"
            yield Violation(Broken.COUNTS_DIFFER, chunk.chunk_id, detail)
        if chunk.chunk_id in committed:
            sums[chunk.step_id] += chunk.items
    for step_id, items in tables.step_items.items():
        if items != sums[step_id]:
            detail = f"step {step_id}: {items} items, {sums[step_id]} in committed chunks"
            yield Violation(Broken.SUMS_DIFFER, None, detail)


@dataclass(slots=True)
class _Try:
    """From an ``invoke`` to the last that was told of it."""

    position: int
    begun: Entry
    last: Entry

    @property
    def is_ok(self) -> bool:
        return self.last.kind is Kind.OK

    @property
    def may_have_committed(self) -> bool:
        return self.last.kind is not Kind.FAIL


Found = Iterator[tuple[Broken, str]]


@dataclass(slots=True)
class _Story:
    """All that is known of one chunk."""

    chunk_id: int
    row: ChunkRow | None
    ended: Sequence[AttemptRow]
    told: Sequence[Entry]
    tries: list[_Try] = field(default_factory=list)
    orphans: list[Entry] = field(default_factory=list)

    def __post_init__(self) -> None:
        current: dict[tuple[int, str], _Try] = {}
        for position, entry in enumerate(self.told):
            key = (entry.fence, entry.process)
            if entry.kind is Kind.INVOKE:
                current[key] = _Try(position, entry, entry)
                self.tries.append(current[key])
            elif key in current:
                current[key].last = entry
            else:
                self.orphans.append(entry)

    def check(self) -> Found:
        """Each violation with its detail."""
        for entry in self.orphans:
            yield Broken.END_WITHOUT_INVOKE, f"{entry.kind} with fence {entry.fence}"
        yield from self._fences()
        yield from self._commits()
        yield from self._ends()
        yield from self._effects()
        yield from self._rework()

    def _fences(self) -> Found:
        owner: dict[int, str] = {}
        highest: dict[str, int] = {}
        for each in self.tries:
            fence, process = each.begun.fence, each.begun.process
            if owner.setdefault(fence, process) != process:
                yield Broken.FENCE_SHARED, f"fence {fence}: {owner[fence]} and {process}"
            if fence < highest.get(process, 0):
                yield Broken.FENCE_FELL, f"{process}: {fence} after {highest[process]}"
            highest[process] = max(fence, highest.get(process, 0))
        written = [row.fence for row in self.ended]
        for before, after in pairwise(written):
            if after <= before:
                yield Broken.FENCE_FELL, f"the row of fence {after} follows that of {before}"

    def _commits(self) -> Found:
        oks = [each for each in self.tries if each.is_ok]
        if len(oks) > 1:
            yield Broken.TWO_OKS, f"fences {[each.begun.fence for each in oks]}"
        committed = {row.fence for row in self.ended if row.outcome == "COMPLETED"}
        for each in oks:
            if each.begun.fence not in committed:
                yield Broken.OK_NOT_COMPLETED, f"fence {each.begun.fence}"
        for fence in committed:
            yield from self._superseded(fence)
            tries = [each for each in self.tries if each.begun.fence == fence]
            if not tries:
                yield Broken.COMPLETED_NOT_INVOKED, f"fence {fence}"
            elif not any(each.may_have_committed for each in tries):
                yield Broken.FAIL_COMPLETED, f"fence {fence}"

    def _superseded(self, committed: int) -> Found:
        """Whoever begins under a higher fence has seen the lower one end without a commit."""
        answered = [
            position
            for position, entry in enumerate(self.told)
            if entry.fence == committed and entry.kind is Kind.OK
        ]
        for each in self.tries:
            if each.begun.fence > committed:
                is_late = answered and each.position < answered[0]
                broken = Broken.OK_AFTER_HIGHER_FENCE if is_late else Broken.INVOKED_AFTER_COMMIT
                yield broken, f"fence {committed} committed, {each.begun.fence} was given out"
                return

    def _ends(self) -> Found:
        known = {row.fence for row in self.ended}
        for fence in sorted({each.begun.fence for each in self.tries} - known):
            yield Broken.NEVER_ENDED, f"fence {fence}"

    def _effects(self) -> Found:
        for each in self.tries:
            if not each.is_ok or self.row is None:
                continue
            if each.last.items != self.row.items:
                detail = f"{each.last.items} were committed, {self.row.items} are counted"
                yield Broken.COUNTS_DIFFER, detail
            here = (key_text(each.last.start), key_text(each.last.end))
            if here != (self.row.start, self.row.end):
                detail = f"{here[0]}..{here[1]}, and not {self.row.start}..{self.row.end}"
                yield Broken.RANGE_DIFFERS, detail

    def _rework(self) -> Found:
        """Computed again is what did not commit: a chunk at most for each attempt or try that ended so."""
        again = sum(each.last.items for each in self.tries if not self._has_committed(each))
        ended = sum(1 for row in self.ended if row.outcome != "COMPLETED")
        retries = len(self.tries) - len({each.begun.fence for each in self.tries})
        largest = max(self.row.size, self.row.items) if self.row else 0
        if again > (ended + retries) * largest:
            detail = (
                f"{again} items, {ended} ended attempts and {retries} further tries of {largest}"
            )
            yield Broken.REWORK, detail

    def _has_committed(self, each: _Try) -> bool:
        committed = {row.fence for row in self.ended if row.outcome == "COMPLETED"}
        return each.begun.fence in committed and each.may_have_committed
