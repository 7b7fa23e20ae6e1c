"""Parameters: typed, every mistake named at once, and one identity for one meaning."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from retoma.errors import UsageError
from retoma.model.parameters import (
    Parameter,
    from_json,
    identity_of,
    parse_parameters,
    to_json,
)

DAY = Parameter(name="day", kind=date)
SIZE = Parameter(name="size", kind=int, identifying=False, required=False, default=7)
DRY = Parameter(name="dry", kind=bool, identifying=False, required=False, default=False)
FILE = Parameter(name="file")
ALL = (DAY, SIZE, DRY, FILE)


@pytest.mark.parametrize(
    ("parameter", "raw", "expected"),
    [
        (DAY, "2026-11-30", date(2026, 11, 30)),
        (DAY, date(2026, 11, 30), date(2026, 11, 30)),
        (DAY, datetime(2026, 11, 30, 23, 59), date(2026, 11, 30)),  # noqa: DTZ001 - only its date counts
        (SIZE, "12", 12),
        (SIZE, -3, -3),
        (DRY, "true", True),
        (DRY, "NO", False),
        (DRY, True, True),
        (FILE, "ação.csv", "ação.csv"),
    ],
)
def test_a_value_is_read_as_its_type(parameter: Parameter, raw: Any, expected: Any) -> None:
    value = parameter.parse(raw)
    assert value == expected
    assert type(value) is type(expected)


@pytest.mark.parametrize(
    ("parameter", "raw"),
    [
        (DAY, "2026-02-30"),
        (DAY, "20261130"),
        (DAY, "30/11/2026"),
        (DAY, "2026-W48-1"),
        (DAY, "2026-11-30T00:00"),
        (DAY, ""),
        (SIZE, "1.5"),
        (SIZE, "many"),
        (SIZE, "9" * 5_000),
        (SIZE, True),
        (DRY, "maybe"),
        (FILE, "a\0b"),
        (FILE, "a\nb"),
        (FILE, "a\ud800"),
        (FILE, "x" * 20_001),
    ],
)
def test_a_value_that_is_none_of_its_type_is_refused_by_name(
    parameter: Parameter, raw: Any
) -> None:
    with pytest.raises(UsageError) as caught:
        parameter.parse(raw)
    assert repr(parameter.name) in caught.value.message
    assert len(caught.value.message) < 200


def test_all_mistakes_are_named_at_once_and_nothing_else_is_done() -> None:
    with pytest.raises(UsageError) as caught:
        parse_parameters(ALL, {"day": "yesterday", "size": "x", "colour": "red"})
    words = caught.value.message
    assert all(name in words for name in ("'day'", "'size'", "'colour'", "'file' is missing"))
    assert "Nothing" in caught.value.safe


def test_defaults_fill_what_is_optional() -> None:
    found = parse_parameters(ALL, {"day": "2026-11-30", "file": "a", "size": None})
    assert found == {"day": date(2026, 11, 30), "size": 7, "dry": False, "file": "a"}


def test_the_identity_depends_on_identifying_values_alone() -> None:
    first = parse_parameters(ALL, {"day": "2026-11-30", "file": "a", "size": "1"})
    second = parse_parameters(
        ALL, {"file": "a", "size": "2", "dry": "yes", "day": date(2026, 11, 30)}
    )
    other = parse_parameters(ALL, {"day": "2026-11-30", "file": "b"})
    assert identity_of("job", ALL, first) == identity_of("job", ALL, second)
    assert identity_of("job", ALL, first) != identity_of("job", ALL, other)
    assert identity_of("job", ALL, first) != identity_of("job2", ALL, first)
    assert identity_of("job", ALL, first) == identity_of("job", tuple(reversed(ALL)), first)


def test_a_text_and_a_number_that_look_alike_are_two_identities() -> None:
    as_text = identity_of("job", (Parameter(name="n"),), {"n": "1"})
    as_number = identity_of("job", (Parameter(name="n", kind=int),), {"n": 1})
    assert as_text != as_number


@given(
    st.dates(),
    st.integers(-(10**18), 10**18),
    st.booleans(),
    st.text(st.characters(codec="utf-8", exclude_categories=("C", "Z"))),
)
def test_what_is_stored_is_read_back_the_same(day: date, size: int, dry: bool, file: str) -> None:
    values = parse_parameters(ALL, {"day": day, "size": size, "dry": dry, "file": file})
    text = to_json(values)
    assert text.isascii()
    assert from_json(ALL, text) == values
    assert to_json(from_json(ALL, text)) == text


def test_a_stored_parameter_that_the_code_no_longer_knows_is_kept() -> None:
    assert from_json((DAY,), '{"day":"2026-11-30","old":1}') == {
        "day": date(2026, 11, 30),
        "old": 1,
    }
