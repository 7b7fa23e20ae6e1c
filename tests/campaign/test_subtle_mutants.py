"""Who would notice a mutant: what the reference says of unit tests and calm nights is so."""

from __future__ import annotations

from pathlib import Path

import pytest

from retoma.testing.simulation.mutants import MUTANTS
from tests.databases import Servers
from tests.simulation import subtle
from tests.simulation.table import recorded

pytestmark = [pytest.mark.campaign, pytest.mark.timeout(900)]
BACKENDS = {"sqlite": "sqlite", "postgresql": "postgres"}


def test_the_code_as_it_is_passes_both(sqlite_url: str) -> None:
    assert subtle.passes_demo(subtle.NONE, sqlite_url)
    assert subtle.passes_unit_tests(subtle.NONE)


@pytest.mark.parametrize("name", MUTANTS)
def test_the_unit_tests_say_what_is_recorded(name: str) -> None:
    assert subtle.passes_unit_tests(name) == recorded()[name].unit_tests


@pytest.mark.parametrize("name", MUTANTS)
def test_a_calm_night_ends_as_is_recorded(name: str, servers: Servers, tmp_path: Path) -> None:
    row = recorded()[name]
    with servers.database(BACKENDS[row.database], tmp_path) as url:
        assert subtle.passes_demo(name, url) == row.calm_night
