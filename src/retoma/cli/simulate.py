"""``retoma chaos simulate`` and ``mutants``: seeds through the real code, on a virtual clock."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from retoma.cli import options
from retoma.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from retoma.testing.simulation.campaign import Report
    from retoma.testing.simulation.play import Played
    from retoma.testing.simulation.stage import Stage

_DATABASE = (
    "An empty database of a PostgreSQL or MariaDB server, on which nobody else works;"
    " without it: SQLite in memory."
)


def _stage(url: str | None, **options_: Any) -> Stage:
    """The stage for a URL; raises ``UsageError`` if what it needs is missing."""
    try:
        if url is None:
            from retoma.testing.simulation.sqlite_stage import SqliteStage

            return SqliteStage(**options_)
        if url.startswith("postgres"):
            from retoma.testing.simulation.postgres_stage import PostgresStage

            return PostgresStage(url, **options_)
        if url.startswith(("mariadb", "mysql")):
            from retoma.testing.simulation.mariadb_stage import MariaDbStage

            return MariaDbStage(url, **options_)
    except ModuleNotFoundError as error:
        raise UsageError(
            f"the simulation needs {error.name}",
            next_step="pip install 'retoma[testing,postgres,mariadb]'",
        ) from None
    raise UsageError(
        "the simulation runs on SQLite (without --database), PostgreSQL or MariaDB",
        next_step="retoma chaos simulate --database postgresql://…",
    )


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=1_000, show_default=True, help="How many.")
@click.option("--first", type=click.IntRange(0), default=0, show_default=True, help="The first.")
@click.option("--database", "url", default=None, help=_DATABASE)
@click.option("--trace", is_flag=True, help="Print what happens, statement by statement.")
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    default=None,
    help="Append a row of the table of proofs to this file.",
)
@options.json_option
def simulate(
    seeds: int, first: int, url: str | None, trace: bool, record: Path | None, as_json: bool
) -> int:
    """Play seeds: each draws a small cluster, a job and the faults that hit them.

    After every commit the invariants are checked on the real tables. Exit 0 only if all of them held
    in every seed, else 4. A failing seed is shrunk, and the command that repeats it is printed.

    \b
    retoma chaos simulate --seeds 8000
    retoma chaos simulate --first 17 --seeds 1 --trace
    """
    from retoma.cli.signals import stop_on_signal

    chosen = range(first, first + seeds)
    with ExitStack() as opened:
        rows = None if record is None else opened.enter_context(_appended(record))
        stage = opened.enter_context(_stage(url))
        stop = opened.enter_context(stop_on_signal("the end of this seed"))
        if trace:
            return _traced(stage, chosen, stop.is_set)
        from retoma.testing.simulation.campaign import campaign, proof_line

        report = campaign(stage, chosen, lambda played: _tell(stage, played, url), stop.is_set)
        if rows is not None and report.played:
            rows.write(proof_line(report, stage.name, first) + "\n")
    _show(report, as_json=as_json)
    if report.failed:
        return ExitCode.NEEDS_PERSON
    return ExitCode.COMPLETED if report.played == seeds else ExitCode.STOPPED


def _appended(record: Path) -> TextIO:
    """The file, open for more; raises ``UsageError`` before a seed is played in vain."""
    try:
        return record.open("a", encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{record} can't be written: {error.strerror}", safe="No seed was played."
        ) from None


def _traced(stage: Stage, seeds: range, is_stopped: Callable[[], bool]) -> int:
    from retoma.testing.simulation.play import play
    from retoma.testing.simulation.setting import draw

    is_clean = True
    for seed in seeds:
        if is_stopped():
            return ExitCode.STOPPED
        setting = draw(seed)
        click.echo(f"{setting}")
        played = play(
            stage, setting, lambda at, who, text: click.echo(f"{at:9.3f} {who:18} {text}")
        )
        click.echo(f"seed {seed}: {played.text or 'all invariants held'}")
        is_clean = is_clean and played.violation is None
    return ExitCode.COMPLETED if is_clean else ExitCode.NEEDS_PERSON


def _tell(stage: Stage, played: Played, url: str | None) -> None:
    from retoma.testing.simulation.campaign import shrink
    from retoma.testing.simulation.setting import draw

    where = f" --database {url}" if url else ""
    click.echo(f"seed {played.seed} FAILED: {played.text}", err=True)
    click.echo(
        f"  repeat: retoma chaos simulate --first {played.seed} --seeds 1 --trace{where}", err=True
    )
    smallest = shrink(stage, draw(played.seed), played)
    click.echo(f"  smallest: {smallest!r}", err=True)


def _show(report: Report, *, as_json: bool) -> None:
    from retoma.testing.simulation.campaign import RARE

    if as_json:
        options.print_json(
            {
                "seeds": report.played,
                "failed": [
                    {"seed": one.seed, "invariant": one.violation, "text": one.text}
                    for one in report.failed
                ],
                "seconds": round(report.seconds, 1),
                "seeds_per_hour": report.an_hour,
                "statements": report.statements,
                "virtual_hours": round(report.virtual_seconds / 3600, 1),
                "reached": dict(sorted(report.reached.items())),
                "unreached": report.unreached,
            }
        )
        return
    click.echo(
        f"{report.played:,} seeds, {len(report.failed)} failed; {report.an_hour:,} an hour,"
        f" {report.statements:,} statements, {report.virtual_seconds / 3600:,.1f} virtual hours"
    )
    for name in RARE:
        click.echo(f"  {name:20} {report.reached[name]:,}")


@click.command()
@click.option("--seeds", type=click.IntRange(1), default=10_000, show_default=True, help="At most.")
@click.option("--only", "names", multiple=True, metavar="NAME", help="Only this mutant.")
@click.option("--from-seed", type=click.IntRange(0), default=0, help="Where to begin.")
@click.option("--database", "url", default=None, help=_DATABASE)
@options.json_option
def mutants(
    seeds: int, names: tuple[str, ...], from_seed: int, url: str | None, as_json: bool
) -> int:  # fmt: skip
    """Break the protocol on purpose, one line at a time: the simulation must find each.

    A mutant lives on SQLite or, if it needs row locks, on PostgreSQL; those of the other database are
    left out. Prints a table (mutant, invariant, seed). Exit 0 only if every mutant is found, else 4.
    """
    from retoma.testing.simulation.hunt import hunt
    from retoma.testing.simulation.mutants import MUTANTS

    where = "postgresql" if url else "sqlite"
    here = [name for name, mutant in MUTANTS.items() if mutant.database == where]
    unknown = set(names) - set(here)
    if unknown:
        raise UsageError(f"no such mutant on {where}: {', '.join(sorted(unknown))}")
    found = []
    for name in names or here:
        seen = range(from_seed, from_seed + seeds)
        result = hunt(MUTANTS[name], seen, lambda **options_: _stage(url, **options_))
        found.append(result)
        if not as_json:
            click.echo(result.row())
    if as_json:
        options.print_json([result.as_dict() for result in found])
    is_whole = all(result.seed is not None for result in found)
    return ExitCode.COMPLETED if is_whole else ExitCode.NEEDS_PERSON
