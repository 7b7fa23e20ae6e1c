"""Who would notice a mutant: what the reference says of unit tests and calm nights is so."""

from __future__ import annotations

import pytest

from retoma.testing.simulation.mutants import MUTANTS
from tests.databases import Servers
from tests.simulation import subtle
from tests.simulation.table import recorded

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900)]


def test_the_code_as_it_is_passes_both(servers: Servers) -> None:
    assert subtle.passes_nights(subtle.NONE, "sqlite", servers)
    assert subtle.passes_unit_tests(subtle.NONE)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_unit_tests_say_what_is_recorded(name: str) -> None:
    assert subtle.passes_unit_tests(name) == recorded()[name].unit_tests


@pytest.mark.parametrize("name", MUTANTS)
def test_calm_nights_end_as_is_recorded(name: str, servers: Servers) -> None:
    row = recorded()[name]
    assert subtle.passes_nights(name, row.database, servers) == row.calm_night
