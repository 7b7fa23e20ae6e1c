"""Makes the table of mutants anew: python -m tests.simulation.record_mutants --database URL

Hunts each mutant and writes seed and invariant; with ``--subtle`` also whether the unit tests and a
calm night notice it. ``--database`` is an empty PostgreSQL database for the mutants that live there;
without it their rows stay as they are. Rows are written one by one: it can be broken off.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from retoma.testing.simulation.hunt import hunt
from retoma.testing.simulation.mutants import MUTANTS
from retoma.testing.simulation.postgres_stage import PostgresStage
from retoma.testing.simulation.sqlite_stage import SqliteStage
from tests.databases import Servers
from tests.simulation import subtle, table

MOST_SEEDS = {"sqlite": 10_000, "postgresql": 500}


def maker(database: str, url: str | None) -> Callable[..., Any]:
    """What builds the stage of a database."""
    if database == "sqlite":
        return SqliteStage
    return lambda **options: PostgresStage(str(url), **options)


def hunted(row: table.Row, url: str | None) -> table.Row:
    """The row with the first seed that finds its mutant."""
    seeds = range(MOST_SEEDS[row.database])
    found = hunt(MUTANTS[row.name], seeds, maker(row.database, url))
    return replace(row, invariant=found.invariant, seed=found.seed)


def tried(row: table.Row, servers: Servers) -> table.Row:
    """The row with what the unit tests and a calm night say."""
    calm = subtle.passes_nights(row.name, row.database, servers)
    return replace(row, unit_tests=subtle.passes_unit_tests(row.name), calm_night=calm)


def main() -> None:
    """Write the rows."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--database", help="an empty PostgreSQL database")
    parser.add_argument("--subtle", action="store_true", help="try unit tests and a calm night too")
    parser.add_argument("--no-hunt", action="store_true", help="keep the seeds")
    parser.add_argument("--only", nargs="*", default=list(MUTANTS), choices=list(MUTANTS))
    given = parser.parse_args()
    servers = Servers()
    known = table.recorded()
    rows = {}
    for name, mutant in MUTANTS.items():
        row = known.get(name, table.Row(name, mutant.words, mutant.database))
        rows[name] = replace(row, words=mutant.words, database=mutant.database)
    try:
        for name in given.only:
            if not given.no_hunt and (rows[name].database == "sqlite" or given.database):
                rows[name] = hunted(rows[name], given.database)
            if given.subtle:
                rows[name] = tried(rows[name], servers)
            table.record(list(rows.values()))
            print(rows[name], flush=True)  # noqa: T201
    finally:
        servers.stop()


if __name__ == "__main__":
    main()
