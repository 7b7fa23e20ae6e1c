"""A job as its author writes it: functions and small frozen objects."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from retoma.errors import UsageError
from retoma.model.items import Reader, StepContext, Transaction, Writer, Written
from retoma.model.parameters import Parameter

Process = Callable[[Any, StepContext], Any]
"""Gets an item, returns a row for the writer, ``SetAside``, ``NotReady``, or None (filtered)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemStep:
    """Reader → a function per item → writer, in chunks.

    ``chunk_size`` is the number of items a chunk; ``attempt_deadline_seconds`` how long one attempt
    at a chunk may take before its slot is ended; ``personal`` the names of fields whose values are
    masked whole in item errors; ``partitions`` the number of slices (None: four a slot).
    """

    name: str
    reader: Reader
    process: Process
    writer: Writer
    chunk_size: int = 10_000
    partitions: int | None = None
    attempt_deadline_seconds: float = 60.0
    personal: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskStep:
    """A callable in one transaction of its own: ``work(tx, context)``, committed with its checkpoint.

    Returns how many things it did (``Written``) or None.
    """

    name: str
    work: Callable[[Transaction, StepContext], Written | None]
    attempt_deadline_seconds: float = 600.0


Step = ItemStep | TaskStep


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What a job's own audit found of one instance; all zero means: nothing lost, nothing twice."""

    expected: int
    found: int
    missing: int
    duplicate: int
    unexpected: int
    sum_difference: str = "0.00"
    notes: tuple[str, ...] = ()

    @property
    def is_clean(self) -> bool:
        """Whether every item has its effect once and the sums agree."""
        amount = self.sum_difference.strip("-0.")
        return not (self.missing or self.duplicate or self.unexpected or amount)


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """A named sequence of steps with typed parameters.

    ``audit`` is asked by ``retoma verify``: it must find the truth from the source and the effects
    alone, by other means than the steps themselves.
    """

    name: str
    steps: tuple[Step, ...]
    parameters: tuple[Parameter, ...] = ()
    audit: Callable[[Any, StepContext], Finding] | None = None
    prepare: Callable[[Any], None] | None = None
    """Called with an SQLAlchemy engine before the first run: creates the job's own tables."""

    labels: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        names = [step.name for step in self.steps]
        if not names or len(set(names)) != len(names):
            raise UsageError(f"job {self.name!r}: each step needs a name of its own")

    def step(self, name: str) -> Step:
        """The step of that name."""
        for step in self.steps:
            if step.name == name:
                return step
        raise UsageError(f"job {self.name!r} has no step {name!r} in this version of the code")

    def fingerprint(self) -> str:
        """A digest of the definition: step names, kinds and sizes; equal for equal definitions."""
        shape = [
            (step.name, type(step).__name__, getattr(step, "personal", ())) for step in self.steps
        ]
        text = json.dumps([self.name, shape, [p.name for p in self.parameters]], sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]
