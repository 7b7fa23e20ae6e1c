"""CPF and CNPJ."""

from __future__ import annotations

import importlib
import importlib.util
import random
import timeit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.reconciliation.documents import is_valid_document, normalise_document

ALPHANUMERIC = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def check_digit(body: str, highest_weight: int) -> str:
    """The rule as it is told: weights 2, 3, … from the right, starting again after the highest."""
    total = 0
    for distance, char in enumerate(reversed(body)):
        total += (ord(char) - ord("0")) * (2 + distance % (highest_weight - 1))
    rest = total % 11
    return "0" if rest in (0, 1) else str(11 - rest)


def complete(body: str) -> str:
    highest = 11 if len(body) == 9 else 9
    first = check_digit(body, highest)
    return body + first + check_digit(body + first, highest)


BODIES = st.one_of(
    st.text("0123456789", min_size=9, max_size=9),
    st.text("0123456789", min_size=12, max_size=12),
    st.text(ALPHANUMERIC, min_size=12, max_size=12),
).filter(lambda body: len(set(body)) > 1)


@given(BODIES)
def test_every_document_with_right_check_digits_is_accepted(body: str) -> None:
    assert is_valid_document(complete(body))


@given(BODIES, st.integers(0, 99))
def test_of_all_hundred_endings_only_one_is_accepted(body: str, ending: int) -> None:
    text = f"{body}{ending:02d}"
    assert is_valid_document(text) == (text == complete(body))


@given(BODIES, st.data())
def test_a_changed_character_is_judged_as_the_rule_says(body: str, data: st.DataObject) -> None:
    document = complete(body)
    at = data.draw(st.integers(0, len(body) - 1))
    char = data.draw(st.sampled_from("0123456789"))
    changed = document[:at] + char + document[at + 1 :]
    expected = complete(changed[: len(body)]) == changed and len(set(changed)) > 1
    assert is_valid_document(changed) == expected


def test_the_official_alphanumeric_example_is_valid_masked_and_raw() -> None:
    assert is_valid_document("12.ABC.345/01DE-35")
    assert is_valid_document("12ABC34501DE35")
    assert not is_valid_document("12.ABC.345/01DE-36")


def test_lower_case_is_the_same_document() -> None:
    assert is_valid_document("12.abc.345/01de-35")
    assert normalise_document(" 12.abc.345/01de-35 ") == "12ABC34501DE35"


def test_a_mask_is_removed_and_leading_zeros_stay() -> None:
    cpf = complete("000123456")
    assert normalise_document(f"{cpf[:3]}.{cpf[3:6]}.{cpf[6:9]}-{cpf[9:]}") == cpf
    assert is_valid_document(cpf)
    assert normalise_document(complete("001234560001")) == complete("001234560001")


@pytest.mark.parametrize("digit", "0123456789")
def test_repeated_digits_are_nobodys_document(digit: str) -> None:
    assert not is_valid_document(digit * 11)
    assert not is_valid_document(digit * 14)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "-",
        "191",
        "1234567890",
        "123456789012",
        "5299822472X",
        "12ABC34501DEAB",
        "12ABC34501D:35",
        "١٢٣٤٥٦٧٨٩٠٩",
        "".join(chr(0xFF10 + int(digit)) for digit in "52998224725"),
        "12ÁBC34501DE35",
        "529 982 247 25",
        "5299822472\n5",
    ],
)
def test_what_has_another_shape_is_no_document(text: str) -> None:
    assert normalise_document(text) is None
    assert not is_valid_document(text)


def test_another_implementation_agrees() -> None:
    cnpj = importlib.import_module("stdnum.br.cnpj")
    draw = random.Random(7)
    for _ in range(2000):
        text = "".join(draw.choices(ALPHANUMERIC, k=12)) + f"{draw.randrange(100):02d}"
        for candidate in (text, complete(text[:12])):
            assert is_valid_document(candidate) == cnpj.is_valid(candidate)


def test_five_million_documents_take_less_than_a_minute() -> None:
    best = min(timeit.repeat(lambda: is_valid_document("12ABC34501DE35"), number=20_000, repeat=5))
    assert best / 20_000 < 12e-6  # seconds; about 2e-6 on a quiet machine
