"""What all writers of files share: the file's name, and the three acts of its life."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from retoma.errors import PermanentFailure
from retoma.model.items import StepContext, Transaction, Written
from retoma.writers import segments
from retoma.writers.assembly import assemble


@dataclass(frozen=True, kw_only=True)
class FileWriter:
    """Writes the rows of a step to the file that ``path(context)`` names, each exactly once.

    The path is absolute, and depends on the run's parameters alone; with its folder it is on a disk
    that all workers share. The file appears when the job's last step, ``TaskStep(work=….assemble)``,
    has put it together, in the order of the input. ``prepare`` makes the table that it takes.
    """

    path: Callable[[StepContext], str | os.PathLike[str]]

    def _head(self) -> bytes:
        """What stands before the rows."""
        return b""

    def _encode(self, rows: Sequence[Any]) -> bytes:
        """The rows as they stand in the file; raises for a row that can't stand there."""
        raise AssertionError("each writer of a format says it")

    def prepare(self, engine: Any) -> None:
        """Create the table ``file_segment`` where it is missing: call it from the job's ``prepare``."""
        segments.prepare(engine)

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        """Write the chunk's segment; raises for a row of another shape, which names it."""
        path = segments.target(self.path(context))
        content = self._encode(rows)
        with segments.disk(path):
            segments.write_segment(tx, context, path, content, len(rows))
        return Written(done=len(rows))

    def assemble(self, tx: Transaction, context: StepContext) -> Written:
        """Put the file together: the work of a task step after the step that writes.

        Repeatable. Raises ``NeedsPerson`` if another file of that name is there, or if a segment is
        not what was committed; then nothing was published.
        """
        return assemble(tx, context, segments.target(self.path(context)), self._head())


def encoded(text: str, encoding: str, what: str) -> bytes:
    """The text's bytes; raises ``PermanentFailure`` that names what can't be written."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        character = f"U+{ord(error.object[error.start]):04X}"
        raise PermanentFailure(
            f"{what}: the character {character} can't be written in {encoding}. Nothing of the chunk"
            " was written. Let the job's function set such items aside, or replace it"
        ) from None
