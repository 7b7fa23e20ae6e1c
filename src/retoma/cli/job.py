"""``retoma job``: what the definitions say, before anything is started."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING

import click

from retoma.cli import options
from retoma.errors import ExitCode, UsageError

if TYPE_CHECKING:
    from retoma.operations.job_plan import Plan, PlannedStep


@click.group()
def job() -> None:
    """List jobs, find what is unsound in one, or see what a run would do."""


@job.command("list")
@options.app_option
@options.json_option
def list_jobs(apps: tuple[str, ...], as_json: bool) -> int:
    """List the jobs that are known here, with their parameters and steps."""
    from retoma.registry import load_jobs

    found = sorted(load_jobs(apps).values(), key=lambda known: known.name)
    rows = [
        {
            "job": known.name,
            "parameters": [
                {"name": p.name, "kind": p.kind.__name__, "identifying": p.identifying}
                for p in known.parameters
            ],
            "steps": [step.name for step in known.steps],
        }
        for known in found
    ]
    if as_json:
        options.print_json({"jobs": rows})
        return 0
    for known in found:
        given = " ".join(f"-p {p.name}={p.kind.__name__.upper()}" for p in known.parameters)
        click.echo(f"{known.name} {given}".rstrip())
        click.echo(f"  {' → '.join(step.name for step in known.steps)}")
    if not found:
        click.echo("no jobs are known here; name their module: --app MODULE")
    return 0


@job.command()
@click.argument("name", metavar="JOB")
@options.database_option
@options.app_option
@options.json_option
def check(name: str, url: str, apps: tuple[str, ...], as_json: bool) -> int:
    """Find what is unsound in JOB: exit 4 if exactly once would not hold. Changes nothing.

    \b
    retoma job check posting --database postgresql://…
    """
    from retoma.operations.job_check import check_job

    definition = options.job_named(apps, name)
    found = check_job(options.store_that_is_there(url), definition)
    is_fatal = any(weakness.is_fatal for weakness in found)
    if as_json:
        options.print_json({"job": name, "weaknesses": [asdict(weakness) for weakness in found]})
        return ExitCode.NEEDS_PERSON if is_fatal else 0
    for weakness in found:
        kind = "UNSOUND" if weakness.is_fatal else "advice"
        click.echo(f"{kind} {weakness.code} ({weakness.where}): {weakness.message}")
        click.echo(f"  cure: {weakness.cure}")
    if not is_fatal:
        click.echo(f"job {name}: nothing unsound was found")
    return ExitCode.NEEDS_PERSON if is_fatal else 0


@job.command()
@click.argument("name", metavar="JOB")
@options.parameter_option
@options.database_option
@options.app_option
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True)
@options.json_option
def plan(
    name: str, pairs: tuple[str, ...], url: str, apps: tuple[str, ...], slots: int, as_json: bool
) -> int:
    """Show what a run of JOB would do: identity, slices, items, chunks. Stores nothing.

    \b
    retoma job plan posting -p reference_date=2026-11-30
    """
    from retoma.operations.job_plan import plan_job

    definition = options.job_named(apps, name)
    parameters = options.parse_pairs(pairs)
    store = options.store_that_is_there(url)
    if store is None:
        raise UsageError(
            f"there is no database {url}",
            safe="Nothing was created.",
            next_step="check --database; a plan needs the tables that the job reads",
        )
    found = plan_job(store, definition, parameters, slots=slots)
    if as_json:
        options.print_json(asdict(found))
    else:
        _print_plan(found)
    return 0


def _print_plan(found: Plan) -> None:
    click.echo(f"job {found.job} {found.parameters}")
    click.echo(f"identity {found.identity}")
    if found.run is None:
        click.echo("no run of this identity yet: a new instance would start")
    else:
        click.echo(
            f"run {found.run.run_id} of this identity is {found.run.state}; its stored plan would be"
            " used, not this one"
        )
    for step in found.steps:
        click.echo(f"  step {step.name}: {_in_words(step)}")


def _in_words(step: PlannedStep) -> str:
    parts = []
    if step.partitions:
        parts.append(f"{step.partitions} partitions")
    if step.items:
        parts.append(f"{step.items:,} items in about {step.chunks:,} chunks")
    if step.note:
        parts.append(step.note)
    return ", ".join(parts)
