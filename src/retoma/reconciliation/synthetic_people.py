"""Invented CPF and CNPJ numbers with check digits of this module's own arithmetic.

Check digit d of a number with weighted sum s: (10 * s) mod 11 mod 10. It gives the same digit as
the usual "11 minus the rest, 0 if that is above 9", by another way.
"""

from __future__ import annotations

from random import Random

_ALPHABET = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_CNPJ_WEIGHTS = (6, 5, 4, 3, 2, 9, 8, 7, 6, 5, 4, 3, 2)


def _group_sums(weights: tuple[int, int, int]) -> tuple[int, ...]:
    a, b, c = weights
    return tuple(a * (n // 100) + b * (n // 10 % 10) + c * (n % 10) for n in range(1000))


# The weighted sum of nine digits is the sum of three looked-up ones.
_FIRST = tuple(_group_sums(weights) for weights in ((10, 9, 8), (7, 6, 5), (4, 3, 2)))
_SECOND = tuple(_group_sums(weights) for weights in ((11, 10, 9), (8, 7, 6), (5, 4, 3)))


def cpf(root: int) -> str:
    """The CPF of a nine-digit root, without mask; leading zeros are kept."""
    if root % 111_111_111 == 0:
        root = root - 1 if root else 1  # repeated digits are nobody's number
    high, middle, low = root // 1_000_000, root // 1000 % 1000, root % 1000
    first = (_FIRST[0][high] + _FIRST[1][middle] + _FIRST[2][low]) * 10 % 11 % 10
    second = _SECOND[0][high] + _SECOND[1][middle] + _SECOND[2][low] + 2 * first
    return f"{root:09d}{first}{second * 10 % 11 % 10}"


def cnpj(root: str) -> str:
    """The CNPJ of a root of twelve digits or capital letters, without mask."""
    values = [ord(character) - 48 for character in root]
    for weights in (_CNPJ_WEIGHTS[1:], _CNPJ_WEIGHTS):
        total = sum(weight * value for weight, value in zip(weights, values, strict=True))
        values.append(total * 10 % 11 % 10)
    return f"{root}{values[12]}{values[13]}"


def document(rng: Random, bits: int) -> str:
    """A document: 80 % CPF, 15 % numeric CNPJ, 5 % with letters; one in twenty with its mask.

    ``bits`` are at least 60 random bits; ``rng`` is asked only for the rare letters.
    """
    bits, kind = divmod(bits, 100)
    bits, mask = divmod(bits, 20)
    if kind < 80:
        text = cpf(bits % 1_000_000_000)
        return text if mask else f"{text[:3]}.{text[3:6]}.{text[6:9]}-{text[9:]}"
    if kind < 95:
        text = cnpj(f"{1 + bits % 99_999_998:08d}{1 + bits % 4:04d}")
    else:
        letters = "".join(rng.choices(_ALPHABET, k=11))
        text = cnpj("ABCDEFGHIJ"[bits % 10] + letters)
    return text if mask else f"{text[:2]}.{text[2:5]}.{text[5:8]}/{text[8:12]}-{text[12:]}"
