"""Which format a file is, told by its content. The name of a file is never asked."""

import re
from typing import Final

from retoma.reconciliation.formats.delimited_header import find_header
from retoma.reconciliation.wording import refusal

_BOM = b"\xef\xbb\xbf"
_OFX_START = re.compile(rb"<OFX[\s>]", re.IGNORECASE)

_SIGNATURES: Final[tuple[tuple[bytes, str], ...]] = (
    (b"PK\x05\x06", "an empty ZIP archive"),
    (b"\x1f\x8b", "a gzip archive"),
    (b"BZh", "a bzip2 archive"),
    (b"\xfd7zXZ\x00", "an xz archive"),
    (b"7z\xbc\xaf\x27\x1c", "a 7-Zip archive"),
    (b"\x28\xb5\x2f\xfd", "a zstd archive"),
    (b"%PDF", "a PDF document"),
    (b"\xd0\xcf\x11\xe0", "an old Excel workbook (.xls)"),
)

_TEXT_FORMATS: Final[tuple[tuple[re.Pattern[bytes], str], ...]] = (
    (re.compile(rb"<\?xml[^>]*>\s*<(?:\w+:)?Document[^>]*camt\.(?:052|053|054)"), "ISO 20022 camt"),
    (re.compile(rb"<(?:\w+:)?Document[\s>]"), "an ISO 20022 message"),
    (
        re.compile(rb"<(?:!DOCTYPE html|html|table)", re.IGNORECASE),
        "an HTML page",
    ),
    (re.compile(rb"<\?xml"), "an XML document that is not OFX"),
    (re.compile(rb"\d{3}00000"), "a CNAB 240 file"),
    (re.compile(rb"0[12](?:RETORNO|REMESSA)"), "a CNAB 400 file"),
    (re.compile(rb"A[12][^\r\n,;]{100,148}\s"), "a FEBRABAN 150 file"),
    (re.compile(rb"\{1:|:20:|:940:"), "an MT940 statement"),
    (re.compile(rb"01,[^\r\n]*,"), "a BAI2 file"),
    (re.compile(rb"!Type:|!Account", re.IGNORECASE), "a QIF file"),
    (re.compile(rb"[{\[]\s*[\"{\[\]}]"), "JSON"),
)


def bom_length(head: bytes) -> int:
    """Return how many bytes a UTF-8 byte order mark takes at the start: 3 or 0."""
    return len(_BOM) if head.startswith(_BOM) else 0


def ofx_start(head: bytes) -> int:
    """Return where `<OFX>` begins, or -1."""
    match = _OFX_START.search(head)
    return match.start() if match is not None else -1


def detect_format(head: bytes) -> str:
    """Return 'ofx' or 'csv' for the first bytes of a file; else raise, naming what it seems to be.

    `head` is the file's beginning, up to HEAD_BYTES.
    """
    if not head:
        raise refusal("EMPTY_FILE")
    _refuse_binary(head)
    text = head[bom_length(head) :].lstrip()
    if not text:
        raise refusal("BLANK_FILE")
    if ofx_start(text) >= 0 or text.upper().startswith((b"OFXHEADER", b"<?OFX")):
        return "ofx"
    for pattern, what in _TEXT_FORMATS:
        if pattern.match(text):
            raise refusal("NOT_READ", what=what)
    if find_header(head[bom_length(head) :]) is not None:
        return "csv"
    raise refusal("UNKNOWN_FORMAT")


def _refuse_binary(head: bytes) -> None:
    if head.startswith(b"PK\x03\x04"):
        is_workbook = b"[Content_Types].xml" in head or b"xl/" in head
        raise refusal("NOT_READ", what="an Excel workbook" if is_workbook else "a ZIP archive")
    for signature, what in _SIGNATURES:
        if head.startswith(signature):
            raise refusal("NOT_READ", what=what)
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or _looks_utf16(head):
        raise refusal("UTF16")
    nul = head.find(b"\0")
    if nul >= 0:
        raise refusal("NUL_BYTE", offset=nul)


def _looks_utf16(head: bytes) -> bool:
    # Text in UTF-16 has a NUL in nearly every second byte, on one side only.
    pairs = len(head) // 2
    if pairs < 4:
        return False
    even, odd = head[0 : pairs * 2 : 2].count(0), head[1 : pairs * 2 : 2].count(0)
    return max(even, odd) > pairs * 0.6 and min(even, odd) < pairs * 0.1
