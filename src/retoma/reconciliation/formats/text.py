"""Bytes and lines of a file, within flat memory, and the decision on its encoding.

Offsets are bytes from the start of the file. No file is read whole: it is looked at in blocks,
and no line or record may grow beyond RECORD_LIMIT.
"""

import codecs
import hashlib
import re
import stat
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final, NamedTuple

from retoma.reconciliation.wording import refusal

RECORD_LIMIT: Final = 1 << 20
HEAD_BYTES: Final = 1 << 16
_BLOCK: Final = 1 << 18
_UNDEFINED_IN_CP1252 = re.compile(rb"[\x81\x8d\x8f\x90\x9d]")
_LINE = re.compile(rb"([^\r\n]*)(\r\n|\n|\r)")


@dataclass(frozen=True, slots=True)
class FileFacts:
    """A file's size, hash and encoding ('utf-8', 'cp1252' or 'latin-1'), of its whole content."""

    bytes: int
    sha256: str
    encoding: str
    is_ascii: bool


class RawLine(NamedTuple):
    """One line: its bytes without the line end, where it begins and where the next one does."""

    content: bytes
    start: int
    end: int
    ended: bool


def open_file(path: Path) -> BinaryIO:
    """Open a regular file for reading; raises StatementError for everything else."""
    try:
        mode = path.stat().st_mode
    except (FileNotFoundError, NotADirectoryError):
        raise refusal("NO_SUCH_FILE") from None
    except (OSError, ValueError):
        raise refusal("UNREADABLE") from None
    if stat.S_ISDIR(mode):
        raise refusal("IS_DIRECTORY")
    if not stat.S_ISREG(mode):
        raise refusal("NOT_A_FILE")
    try:
        return path.open("rb")
    except OSError:
        raise refusal("UNREADABLE") from None


def scan(file: BinaryIO) -> FileFacts:
    """Read the whole file once, block by block: its hash, size and encoding.

    Strict UTF-8 if all of it decodes, else Windows-1252, else Latin-1. A NUL byte is refused.
    """
    digest = hashlib.sha256()
    decoder: codecs.IncrementalDecoder | None = codecs.getincrementaldecoder("utf-8")()
    is_ascii, is_cp1252, size = True, True, 0
    file.seek(0)
    while block := file.read(_BLOCK):
        digest.update(block)
        if (nul := block.find(b"\0")) >= 0:
            raise refusal("NUL_BYTE", offset=size + nul)
        size += len(block)
        if block.isascii() and is_ascii:
            continue
        is_ascii = False
        is_cp1252 = is_cp1252 and _UNDEFINED_IN_CP1252.search(block) is None
        decoder = _still_utf8(decoder, block)
    if decoder is not None:
        decoder = _still_utf8(decoder, b"", final=True)
    encoding = "utf-8" if decoder is not None else "cp1252" if is_cp1252 else "latin-1"
    return FileFacts(size, digest.hexdigest(), encoding, is_ascii)


def _still_utf8(
    decoder: codecs.IncrementalDecoder | None, block: bytes, *, final: bool = False
) -> codecs.IncrementalDecoder | None:
    if decoder is None:
        return None
    try:
        decoder.decode(block, final)
    except UnicodeDecodeError:
        return None
    return decoder


def count_line_ends(content: bytes) -> int:
    """Count the ends of lines: LF, CR LF and a lone CR, each once."""
    count = content.count(b"\n")
    if b"\r" in content:
        count += content.count(b"\r") - content.count(b"\r\n")
    return count


class LineReader:
    """Lines from an offset on, one at a time, each with its exact place."""

    def __init__(self, file: BinaryIO, offset: int) -> None:
        self._file = file
        self._buffer = b""
        self._base = -1
        self._at = 0
        self._eof = False
        self.seek(offset)

    def seek(self, offset: int) -> None:
        """Go on with the line that begins at `offset`."""
        if self._base >= 0 and self._base <= offset <= self._base + len(self._buffer):
            self._at = offset - self._base
            return
        self._file.seek(offset)
        self._buffer, self._base, self._at, self._eof = b"", offset, 0, False

    def read(self) -> RawLine | None:
        """Return the next line, or None at the end; raises RECORD_TOO_LONG."""
        while True:
            match = _LINE.match(self._buffer, self._at)
            if match is not None and (self._eof or match.end() < len(self._buffer)):
                return self._take(match[1], match.end(), ended=True)
            if self._eof:
                rest = self._buffer[self._at :]
                return self._take(rest, len(self._buffer), ended=False) if rest else None
            self._fill()

    def _take(self, content: bytes, end: int, *, ended: bool) -> RawLine:
        line = RawLine(content, self._base + self._at, self._base + end, ended)
        self._at = end
        if len(content) > RECORD_LIMIT:
            raise refusal("RECORD_TOO_LONG", offset=line.start, limit=RECORD_LIMIT)
        return line

    def _fill(self) -> None:
        self._base += self._at
        self._buffer = self._buffer[self._at :]
        self._at = 0
        if len(self._buffer) > RECORD_LIMIT:
            raise refusal("RECORD_TOO_LONG", offset=self._base, limit=RECORD_LIMIT)
        block = self._file.read(_BLOCK)
        self._eof = not block
        self._buffer += block
