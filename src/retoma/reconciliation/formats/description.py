"""The free text of a line: one spelling for comparing, and what can be found in it."""

import re
import unicodedata

_END_TO_END = re.compile(
    r"(?<![0-9A-Za-z])[ED][0-9A-Z]{8}20[0-9]{10}[0-9A-Za-z]{11}(?![0-9A-Za-z])"
)
_BALANCE = re.compile(
    r"SALDO(?: (?:DO|DE|NO|EM|ATE))?"
    r"(?: (?:DIA|ANTERIOR|INICIAL|FINAL|ATUAL|TOTAL|PARCIAL|DISPONIVEL|BLOQUEADO|CONTA|C/C|"
    r"CORRENTE|[0-9/.-]+))*"
    r"|(?:OPENING|CLOSING) BALANCE"
)
_OPENING = re.compile(r"\b(?:ANTERIOR|INICIAL|OPENING)\b")


def normalise_description(text: str) -> str:
    """Return the text in upper case, without accents, blanks made single; digits are kept.

    By Unicode NFKD, so that a file in another encoding, or one that a bank has stripped of its
    accents, gives the same text.
    """
    if not text.isascii():
        parted = unicodedata.normalize("NFKD", text)
        text = "".join(char for char in parted if not unicodedata.combining(char))
    return " ".join(text.upper().split())


def names_balance(description_norm: str) -> bool:
    """Tell whether the text says nothing but that it is a balance ('SALDO ANTERIOR')."""
    return _BALANCE.fullmatch(description_norm) is not None


def names_opening(description_norm: str) -> bool:
    """Tell whether a balance line means the balance before the first movement."""
    return names_balance(description_norm) and _OPENING.search(description_norm) is not None


def find_end_to_end_id(*texts: str) -> str:
    """Return the first Pix EndToEndId or return id (32 characters, E or D first), or ''.

    Layout by the central bank's Pix API: letter, 8 of the ISPB, 12 of the UTC instant, 11 free.
    Its case is kept.
    """
    for text in texts:
        if len(text) >= 32:
            found = _END_TO_END.search(text)
            if found is not None:
                return found[0]
    return ""
