"""Reads whatever a Python function gives one after the other, as long as it gives it again."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, is_dataclass
from hashlib import blake2b
from itertools import islice
from typing import Any

from retoma.errors import SourceChanged
from retoma.model.items import Key, Measure, Page, PartitionPlan, Source, StepContext


@dataclass(frozen=True, kw_only=True)
class IterableReader:
    """What ``items(context)`` gives, in its order, by one slot at a time.

    The function must give the same items in the same order whenever it is called: in another
    process, after a kill, days later. The checkpoint is the position, with a digest of all that was
    passed over (of each item's ``repr``, which must therefore show its value): if the past is
    another one than before, the run fails and nothing more is written. ``key`` names an item in item
    errors, uniquely within the step.

    A process calls the function once, and again after a failure or when another one has gone on;
    it then passes over what is done. Nothing is kept but the chunk.
    """

    items: Callable[[StepContext], Iterable[Any]]
    key: Callable[[Any], str]
    order: str = field(default="strict", init=False)
    _walks: dict[tuple[int, str], _Walk] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def plan(self, source: Source, context: StepContext, partitions: int) -> list[PartitionPlan]:
        """One slice: everything."""
        low = {"position": 0, "digest": ""}
        return [PartitionPlan(name="items", low=low, high={"position": None})]

    def measure(self, source: Source, context: StepContext, low: Key, high: Key) -> Measure | None:
        """Not known without calling the function."""
        return None

    def next_end(
        self, source: Source, context: StepContext, cursor: Key, high: Key, size: int
    ) -> Key | None:
        """Never asked: in strict order the reading itself finds the end."""
        return high

    def read(
        self, source: Source, context: StepContext, start: Key, end: Key | None, size: int
    ) -> Page:
        """The next ``size`` items; raises ``SourceChanged`` if those before are not what they were."""
        who = (context.run_id, context.step)
        walk = self._walks.pop(who, None)
        if walk is None or not walk.is_before(start):
            walk = _Walk(self.items(context))
        walk.pass_over(start["position"])
        if walk.place() != start:
            raise SourceChanged(
                f"step {context.step}: the first {start['position']} items are not those that were"
                " read before. What was read is committed, and nothing more was written. The job's"
                " function must give the same items in the same order each time; make it so, and"
                " repeat the same command"
            )
        items = walk.take(size)
        self._walks[who] = walk
        measure, is_last = Measure(len(items)), len(items) < size
        return Page(items=items, end=walk.place(), measure=measure, is_last=is_last)

    def key_of(self, item: Any) -> str:
        """What ``key`` says."""
        return str(self.key(item))

    def payload_of(self, item: Any) -> Mapping[str, Any]:
        """The fields of a mapping or dataclass; else the item under that name."""
        if isinstance(item, Mapping):
            return {str(name): value for name, value in item.items()}
        if is_dataclass(item) and not isinstance(item, type):
            return asdict(item)
        return {"item": item}


class _Walk:
    """How far one call of the function has been gone."""

    def __init__(self, items: Iterable[Any]) -> None:
        self._rest = iter(items)
        self.position = 0
        self._digest = ""

    def is_before(self, place: Mapping[str, Any]) -> bool:
        """Whether the place lies ahead, or is this one."""
        return self.position < place["position"] or self.place() == place

    def place(self) -> dict[str, Any]:
        """The checkpoint."""
        return {"position": self.position, "digest": self._digest}

    def pass_over(self, position: int) -> None:
        """Go to a position, or to the end if that comes first; nothing is kept."""
        for item in islice(self._rest, position - self.position):
            self._note(item)

    def take(self, count: int) -> list[Any]:
        """The next items, at most so many."""
        taken = list(islice(self._rest, count))
        for item in taken:
            self._note(item)
        return taken

    def _note(self, item: Any) -> None:
        own: object = type(item).__repr__
        if own is object.__repr__:
            raise TypeError(
                f"an item of type {type(item).__name__} shows no value of its own, so that nobody"
                " could tell whether it is the same after a restart: give it a __repr__"
            )
        shown = f"{self._digest} {item!r}".encode("utf-8", "backslashreplace")
        self._digest = blake2b(shown, digest_size=16).hexdigest()
        self.position += 1
