"""Tags and texts of OFX, 1.x (SGML, tags left open) and 2.x (XML) alike, as a stream of bytes.

Nothing is resolved but the five XML entities, character numbers and HTML's names of letters; no
document type is looked at and nothing outside the file is fetched.
"""

import re
from collections.abc import Iterator
from html.entities import name2codepoint
from typing import BinaryIO, Final, NamedTuple

from retoma.reconciliation.formats.text import RECORD_LIMIT
from retoma.reconciliation.wording import refusal

_BLOCK: Final = 1 << 18

# A tag, and its text up to the next one. A < that opens neither tag nor end tag is text.
_TAG = re.compile(
    rb"<(/?[A-Za-z][A-Za-z0-9._-]*)(?:\s[^<>]*|/)?>"
    rb"([^<]*(?:(?:<!\[CDATA\[[\s\S]*?\]\]>|<!--[\s\S]*?-->|<(?![/A-Za-z]))[^<]*)*)"
)
_OPENERS: Final = ((b"<![CDATA[", b"]]>"), (b"<!--", b"-->"))
_CDATA = re.compile(r"<!\[CDATA\[(.*?)\]\]>", re.DOTALL)
_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_ENTITY = re.compile(r"&(?:([A-Za-z][A-Za-z0-9]{1,9})|#(\d{1,7})|#[xX]([0-9A-Fa-f]{1,6}));")
_NAMED: Final = dict(name2codepoint) | {"apos": 39}


class Tag(NamedTuple):
    """One tag and the text after it. `name` is in upper case, with its slash if it is an end tag.

    `start` and `tag_end` are file offsets around the tag itself; `raw` is all of it with its
    text, for counting lines. The piece before the first tag has the name b''.
    """

    name: bytes
    text: bytes
    start: int
    tag_end: int
    raw: bytes
    stray: bool


def read_tags(file: BinaryIO, offset: int) -> Iterator[Tag]:
    """Yield the tags from `offset` on; raises RECORD_TOO_LONG for a text beyond the limit."""
    file.seek(offset)
    buffer, base, first = b"", offset, True
    while True:
        block = file.read(_BLOCK)
        buffer += block
        limit = _whole_until(buffer)
        last: re.Match[bytes] | None = None
        for match in _TAG.finditer(buffer, 0, limit):
            if last is not None:
                yield _tag(last, buffer, match.start(), base)
            elif first:
                yield Tag(b"", b"", base, base, buffer[: match.start()], stray=False)
                first = False
            last = match
        if not block:
            if last is not None:
                yield _tag(last, buffer, limit, base)
            return
        keep = last.start() if last is not None else 0
        base += keep
        buffer = buffer[keep:]
        if len(buffer) > RECORD_LIMIT:
            raise refusal("RECORD_TOO_LONG", offset=base, limit=RECORD_LIMIT)


def decode_text(raw: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    """Return the text that `raw` stands for, blanks around it removed, and codes of warnings."""
    text = raw.decode(encoding, "replace").strip()
    if "&" not in text and "<" not in text:
        return text, ()
    if "<!" not in text:
        return _unescape(text)
    # CDATA is taken as it is; the entities around it are not.
    pieces: list[str] = []
    codes: tuple[str, ...] = ()
    for index, piece in enumerate(_CDATA.split(_COMMENT.sub("", text))):
        plain, more = (piece, ()) if index % 2 else _unescape(piece)
        pieces.append(plain)
        codes += more
    return "".join(pieces).strip(), codes


def _unescape(text: str) -> tuple[str, tuple[str, ...]]:
    codes: list[str] = []
    once = _ENTITY.sub(_character, text)
    if "&" in _ENTITY.sub("", text):
        codes.append("RAW_AMPERSAND")
    twice = _ENTITY.sub(_character, once) if "&" in once and once != text else once
    if twice != once:
        codes.append("DOUBLE_ESCAPED")
    return twice, tuple(codes)


def _character(match: re.Match[str]) -> str:
    name, decimal, hexadecimal = match.groups()
    base = 10 if decimal else 16
    point = _NAMED.get(name, 0) if name else int(decimal or hexadecimal, base)
    is_character = 0 < point <= 0x10FFFF and not 0xD800 <= point <= 0xDFFF
    return chr(point) if is_character else match[0]


def _whole_until(buffer: bytes) -> int:
    """Return up to where the buffer holds no CDATA or comment that is cut off at its end."""
    limit = len(buffer)
    for opener, closer in _OPENERS:
        opened = buffer.find(opener, max(buffer.rfind(closer), 0))
        if opened >= 0:
            limit = min(limit, opened)
    return limit


def _tag(match: re.Match[bytes], buffer: bytes, end: int, base: int) -> Tag:
    start, stop = match.span()
    text, stray = match[2], stop != end
    if stray:  # something that looked like a tag and was none
        text += buffer[stop:end]
    tag_end = base + match.start(2)
    return Tag(match[1].upper(), text, base + start, tag_end, buffer[start:end], stray)
