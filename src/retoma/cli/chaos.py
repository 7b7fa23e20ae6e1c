"""``retoma chaos``: proves on a database of its own that a worker may die anywhere."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from retoma.cli import options
from retoma.cli.simulate import mutants, simulate
from retoma.errors import ExitCode

if TYPE_CHECKING:
    from retoma.testing.chaos.matrix import CellResult


@click.group()
def chaos() -> None:
    """Prove on a database of its own that a worker may die anywhere, at any time."""


chaos.add_command(simulate)
chaos.add_command(mutants)


@chaos.command()
@click.option("--database", "url", required=True, help="A database that nobody else works on.")
@click.option(
    "--point",
    "points",
    multiple=True,
    metavar="POINT",
    help="Only this crash point, as chunk.finish or chunk.finish.after; may be given several times.",
)
@click.option("--sample", type=click.IntRange(1), default=None, help="Only so many cells, drawn.")
@click.option("--seed", type=int, default=0, show_default=True, help="What draws the sample.")
@options.json_option
def matrix(
    url: str, points: tuple[str, ...], sample: int | None, seed: int, as_json: bool
) -> int:  # fmt: skip
    """Kill (SIGKILL) or freeze (SIGSTOP) slot, supervisor or worker at each crash point.

    After each cell the run is taken up again, and proven: nothing missing, nothing twice. Exit 0 only
    if every cell is clean, else 4. The database is never taken from the environment.

    \b
    retoma chaos matrix --database sqlite:///chaos.db --sample 20
    """
    from retoma.cli.signals import stop_on_signal
    from retoma.testing.chaos.matrix import open_matrix

    found = open_matrix(url, points, sample, seed)
    click.echo(f"retoma chaos: {len(found.cells)} cells on {found.store.shown_url}", err=True)
    with stop_on_signal("the end of this cell") as stop:
        results = found.run(lambda result: click.echo(_line(result), err=as_json), stop.is_set)
    failed = [result for result in results if not result.is_clean]
    is_whole = len(results) == len(found.cells)
    if as_json:
        options.print_json(
            {
                "database": found.store.shown_url,
                "seed": seed,
                "cells": [_row(result) for result in results],
                "chosen": len(found.cells),
                "clean": len(results) - len(failed),
                "failed": len(failed),
                "seconds": round(sum(result.seconds for result in results), 1),
            }
        )
    else:
        _summary(results, len(found.cells))
    if failed:
        return ExitCode.NEEDS_PERSON
    return ExitCode.COMPLETED if is_whole else ExitCode.STOPPED


def _line(result: CellResult) -> str:
    cell = result.cell
    said = "clean" if result.is_clean else f"FAILED: {result.failure} (logs: {result.folder})"
    where = f"{cell.point} ({cell.scene})"
    return f"{where:42} {cell.action:4} {cell.victim:10} {result.seconds:5.1f} s  {said}"


def _row(result: CellResult) -> dict[str, Any]:
    cell = result.cell
    return {
        "point": cell.point,
        "scene": cell.scene,
        "action": cell.action,
        "victim": cell.victim,
        "result": "clean" if result.is_clean else "failed",
        "failure": result.failure or None,
        "repeated_chunks": result.repeated,
        "seconds": round(result.seconds, 2),
        "logs": result.folder or None,
    }


def _summary(results: list[CellResult], chosen: int) -> None:
    failed = sum(not result.is_clean for result in results)
    seconds = sum(result.seconds for result in results)
    click.echo(f"{len(results) - failed} of {chosen} cells clean, {failed} failed, {seconds:.0f} s")
    if len(results) < chosen:
        click.echo(f"  stopped: {chosen - len(results)} cells were not played")
    if failed:
        click.echo("  next: read the logs of the failed cells, then repeat one with --point")
