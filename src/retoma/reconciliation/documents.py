"""CPF and CNPJ: shape and check digits.

Both numbers end in two check digits, modulo 11. Since July 2026 the first twelve positions of a
new CNPJ may hold letters (rule: IN RFB 2.229/2024): the value of a character is its ASCII code
minus 48, so that digits keep their value and the weights stay as they were.

A bank's night asks this module five million times, so the sums are written out by hand.
"""

_NO_MASK = {ord("."): None, ord("-"): None, ord("/"): None}

# Each weight counts a character's code; what 48 a position adds is taken off in one go.
_CPF_FIRST_EXCESS = 48 * (10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2)
_CPF_SECOND_EXCESS = 48 * (11 + 10 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2)
_CNPJ_FIRST_EXCESS = 48 * (5 + 4 + 3 + 2 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2)
_CNPJ_SECOND_EXCESS = 48 * (6 + 5 + 4 + 3 + 2 + 9 + 8 + 7 + 6 + 5 + 4 + 3 + 2)

# The check digit, as a character code, for each remainder of the division by 11.
_CHECK_CODE = tuple(48 if rest < 2 else 48 + 11 - rest for rest in range(11))


def normalise_document(text: str) -> str | None:
    """Return a CPF (11 digits) or CNPJ (14 characters) without mask and in upper case.

    Blanks around it and the mask characters ``.``, ``-`` and ``/`` are dropped; leading zeros
    stay. None means that the text has another length or other characters (a digit outside
    ASCII, a letter in a CPF or in a CNPJ's check digits). Check digits are not looked at.
    """
    if not text.isalnum():
        text = text.strip().translate(_NO_MASK)
        if not text.isalnum():
            return None
    if not text.isascii():
        return None
    if len(text) == 11:
        return text if text.isdigit() else None
    if len(text) == 14 and text[12:].isdigit():
        return text if text.isdigit() else text.upper()
    return None


def is_valid_document(text: str) -> bool:
    """Tell whether `text` is a CPF or CNPJ, masked or not, whose check digits hold.

    Repeated digits (111.111.111-11) satisfy the arithmetic but are nobody's number: refused.
    """
    document = normalise_document(text)
    if document is None:
        return False
    if len(document) == 11:
        return _cpf_holds(document)
    return _cnpj_holds(document)


def _cpf_holds(document: str) -> bool:
    a, b, c, d, e, f, g, h, i, j, k = document.encode()
    first = 10 * a + 9 * b + 8 * c + 7 * d + 6 * e + 5 * f + 4 * g + 3 * h + 2 * i
    if j != _CHECK_CODE[(first - _CPF_FIRST_EXCESS) % 11]:
        return False
    second = 11 * a + 10 * b + 9 * c + 8 * d + 7 * e + 6 * f + 5 * g + 4 * h + 3 * i + 2 * j
    if k != _CHECK_CODE[(second - _CPF_SECOND_EXCESS) % 11]:
        return False
    return not a == b == c == d == e == f == g == h == i


def _cnpj_holds(document: str) -> bool:
    a, b, c, d, e, f, g, h, i, j, k, m, x, y = document.encode()
    first = 5 * a + 4 * b + 3 * c + 2 * d + 9 * e + 8 * f + 7 * g + 6 * h + 5 * i + 4 * j
    first += 3 * k + 2 * m - _CNPJ_FIRST_EXCESS
    if x != _CHECK_CODE[first % 11]:
        return False
    second = 6 * a + 5 * b + 4 * c + 3 * d + 2 * e + 9 * f + 8 * g + 7 * h + 6 * i + 5 * j
    second += 4 * k + 3 * m + 2 * x - _CNPJ_SECOND_EXCESS
    if y != _CHECK_CODE[second % 11]:
        return False
    return not a == b == c == d == e == f == g == h == i == j == k == m == x == y
