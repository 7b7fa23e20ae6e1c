"""Encodings in which a byte below 128 is that ASCII character, wherever it stands.

Only in these can lines be found in the bytes, so that offsets are exact.
"""

from __future__ import annotations

import codecs

from retoma.errors import UsageError

_ASCII = bytes(range(128)) + b"\x1b$B0A"  # with what shifts ISO 2022 into another alphabet


def plain_encoding(name: str) -> str:
    """The codec's name; raises ``UsageError`` for an encoding whose lines can't be told by bytes."""
    try:
        codec = codecs.lookup(name).name
        if codec == "utf-8-sig":  # a byte order mark is passed over in any case
            return "utf-8"
        is_plain = _ASCII.decode(codec) == _ASCII.decode("ascii") and all(
            (bytes([high]) + b"A").decode(codec, "replace").endswith("A")
            for high in range(128, 256)
        )
    except (LookupError, UnicodeError):
        is_plain = False
        codec = name
    if not is_plain:
        raise UsageError(
            f"encoding {name!r}: lines are found in the bytes of a file, so it must be utf-8 or a"
            " single-byte encoding that contains ASCII, such as cp1252 or latin-1",
            next_step="convert the file first: iconv -f FROM -t UTF-8",
        )
    return codec


def text_of(raw: bytes, encoding: str, start: int) -> str | tuple[str, str]:
    """The text of a line that begins at ``start``; or reason and message if it can't be read."""
    if b"\0" in raw:
        return "NUL_BYTE", f"byte {start + raw.index(0)} is NUL"
    try:
        return raw.decode(encoding)
    except UnicodeDecodeError as error:
        return "WRONG_ENCODING", f"byte {start + error.start} is no {encoding}"
