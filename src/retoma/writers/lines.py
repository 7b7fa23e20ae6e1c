"""Writes lines that a function of the job makes: fixed width, or any format of its own."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from retoma.errors import PermanentFailure
from retoma.writers.file import FileWriter, encoded


@dataclass(frozen=True, kw_only=True)
class LinesWriter(FileWriter):
    r"""One line a row: the text that ``line(row)`` returns, in ``encoding``, and then ``end``.

    The function is called within the chunk's transaction, so it only puts values into their places;
    what may be refused is refused in ``process``. A text that holds a line end fails the run.
    """

    line: Callable[[Any], str]
    encoding: str = "utf-8"
    end: str = "\n"

    def _encode(self, rows: Sequence[Any]) -> bytes:
        return b"".join(self._one(number, row) for number, row in enumerate(rows, start=1))

    def _one(self, number: int, row: Any) -> bytes:
        text = self.line(row)
        if "\n" in text or "\r" in text:
            raise PermanentFailure(f"row {number} of the chunk: its line holds a line end")
        return encoded(text + self.end, self.encoding, f"row {number} of the chunk")
