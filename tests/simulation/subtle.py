"""Would anybody notice a mutant? The unit tests, and a night without faults by real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from datetime import date
from pathlib import Path
from typing import Any

import retoma
from retoma.reconciliation.posting import JOB
from retoma.reconciliation.synthetic import NightTotals, make_night
from retoma.reconciliation.tables import create_tables
from tests.databases import Servers

ROOT = Path(__file__).parents[2]
NIGHT = date(2026, 11, 30)
TRANSACTIONS = 2_000
SECONDS = 300
NIGHTS = 5
"""How many nights are tried: two slots meet at the same partition in one night and not in the next."""

BACKENDS = {"sqlite": "sqlite", "postgresql": "postgres"}
NONE = "none"
"""The name of no mutant: the code as it is."""

# Left out: the start and end of database servers, which no mutant touches, and what is about imports,
# for a mutated process has loaded the mutants.
_LEFT_OUT = (
    "--ignore=tests/unit/test_embedded.py",
    "--ignore=tests/unit/test_databases.py",
    "--deselect=tests/unit/test_testing.py::test_importing_retoma_leaves_testing_alone",
    "--deselect=tests/unit/test_testing.py::test_the_plugin_loads_nothing_but_itself",
    "--pythonwarnings=ignore::pytest.PytestAssertRewriteWarning",
)


def environment(mutant: str) -> dict[str, str]:
    """That of a process in which the mutation is on."""
    return {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parent / "mutated"),
        "RETOMA_MUTANT": mutant,
    }


def passes_unit_tests(mutant: str) -> bool:
    """Whether the unit tests hold."""
    command = [sys.executable, "-m", "pytest", "tests/unit", "-x", "-q", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *_LEFT_OUT],
        cwd=ROOT,
        env=environment(mutant),
        capture_output=True,
        text=True,
        check=False,
    )
    return not done.returncode


def passes_nights(mutant: str, database: str, servers: Servers) -> bool:
    """Whether each of some calm nights ends as it was made."""
    for _ in range(NIGHTS):
        with (
            tempfile.TemporaryDirectory() as folder,
            servers.database(BACKENDS[database], Path(folder)) as url,
        ):
            if not passes_demo(mutant, url):
                return False
    return True


def passes_demo(mutant: str, url: str) -> bool:
    """Whether a night that nothing disturbs ends as it was made, on a fresh database."""
    store = retoma.Store(url)
    try:
        create_tables(store.engine)
        night = make_night(store.engine, TRANSACTIONS, 1, NIGHT)
        command = [sys.executable, "-m", "retoma", "run", "posting", "--database", url]
        command += ["--app", "retoma.reconciliation.demo_job", "--slots", "2", "--json"]
        done = subprocess.run(
            [*command, "-p", f"reference_date={NIGHT}"],
            env={**environment(mutant), "RETOMA_DEMO_CHUNK_SIZE": "50"},
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
        return done.returncode in (0, 5) and is_right(store, json.loads(done.stdout), night)
    except subprocess.TimeoutExpired:
        return False
    finally:
        store.dispose()


def is_right(store: retoma.Store, told: dict[str, Any], night: NightTotals) -> bool:
    """Whether ledger and counts are those that the night was made for; judged by the code as it is."""
    found = retoma.verify(store, JOB, told["run"])
    counts = (int(found["found"]), int(told["set_aside"]), int(told["deferred"]))
    return bool(found["is_clean"]) and counts == (night.entries, night.item_errors, night.deferred)
