"""The lines of a file from an offset on, and the exact place of each record made of them."""

from __future__ import annotations

from io import BufferedReader

from retoma.errors import PermanentFailure
from retoma.readers.record import BadRecord, place


class Lines:
    """Lines that end with LF (or CR LF), one at a time, within flat memory.

    A record is one line or several. ``start`` is where it begins, ``end`` where the next one does;
    records that begin before ``stop`` are read. ``line`` counts the lines that were read, from
    None on if nobody knows where the file's beginning is.
    """

    def __init__(
        self, file: BufferedReader, name: str, at: int, line: int | None, stop: int, longest: int
    ) -> None:
        self.name = name
        self.start = self.end = at
        self.line = line
        self._first = line
        self._stop = stop
        self._longest = longest
        self._file = file
        self._readline = file.readline
        file.seek(at)

    def to_border(self) -> None:
        """Go to the next beginning of a line, unless one is here."""
        self._file.seek(self.end - 1)
        passed = self._file.read(1)
        while passed and not passed.endswith(b"\n"):
            passed = self._readline(self._longest)
            self.end += len(passed)

    def begin(self) -> bool:
        """Begin the next record; False if there is none before ``stop``."""
        if self.end >= self._stop:
            return False
        self.start = self.end
        self._first = self.line
        return True

    def next(self) -> bytes:
        """The next line with its end; empty at the end of the file.

        Raises ``PermanentFailure`` if the record grows beyond the limit: how much of the rest belongs
        to it, nobody can tell without holding it all.
        """
        raw = self._readline(self._longest + 1)
        self.end += len(raw)
        if self.end - self.start > self._longest:
            raise PermanentFailure(
                f"{place(self.name, self.number, self.start)}: the record that begins here is longer"
                f" than {self._longest} bytes. Everything before it is committed. If such a record is"
                " meant, give the reader a higher longest_record and repeat the same command; if not"
                " (a quote that is never closed, a line end that is missing), the file is damaged"
            )
        if self.line is not None and raw:
            self.line += 1
        return raw

    def back(self) -> None:
        """Read the record that was begun once more."""
        self._file.seek(self.start)
        self.end = self.start
        self.line = self._first

    @property
    def number(self) -> int | None:
        """The number of the record's first line, counted from 1."""
        return None if self._first is None else self._first + 1

    def bad(self, reason: str, message: str) -> BadRecord:
        """The record that was begun, as one that can't be read."""
        extra = 0 if self.line is None or self._first is None else self.line - self._first - 1
        over = f" (the record takes {extra + 1} lines)" if extra > 0 else ""
        return BadRecord(self.name, self.start, self.number, reason, message + over)
