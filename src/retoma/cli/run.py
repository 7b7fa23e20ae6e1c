"""``retoma run``: start or take up an identity, in the foreground."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from retoma.cli import options

if TYPE_CHECKING:
    from retoma.operations.commands import RunResult
    from retoma.store.store import Store


@click.command()
@click.argument("job")
@options.parameter_option
@options.database_option
@options.app_option
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True)
@options.json_option
def run(
    job: str, pairs: tuple[str, ...], url: str, apps: tuple[str, ...], slots: int, as_json: bool
) -> int:
    """Start JOB for an identity, or take it up where it stopped.

    \b
    retoma run posting -p reference_date=2026-11-30 --slots 2
    """
    from retoma.cli.progress import shown_progress
    from retoma.cli.signals import stop_on_signal
    from retoma.model.parameters import parse_parameters
    from retoma.operations import commands

    definition = options.job_named(apps, job)
    parameters = options.parse_pairs(pairs)
    parse_parameters(definition.parameters, parameters)  # a mistake is told before all else
    store = options.open_store(url)
    with stop_on_signal() as stop, shown_progress(store, definition.name, quiet=as_json) as bus:
        result = commands.run(
            store, definition, parameters, slots=slots, apps=apps, bus=bus, stop=stop
        )
    print_result(store, result, as_json)
    return result.exit_code


def print_result(store: Store, result: RunResult, as_json: bool) -> None:
    """The run's counts and what to do next."""
    from retoma.operations.queries import status

    found = status(store, result.run_id)
    if as_json:
        options.print_json(
            {**found, "exit_code": result.exit_code, "was_complete": result.was_complete}
        )
        return
    click.echo(
        f"run {result.run_id} {result.state}"
        + (" (already complete: nothing was done)" if result.was_complete else "")
    )
    click.echo(
        f"  read {found['items_read']} = done {found['done']} + already done {found['already_done']}"
        f" + filtered {found['filtered']} + set aside {found['set_aside']}"
        f" + deferred {found['deferred']}"
    )
    if not found["items_read"] and result.exit_code == 0:
        click.echo("  note: the input was empty; a completed identity is not run again", err=True)
    if result.failure:
        click.echo(f"  failure: {result.failure}")
    hints = {
        3: "next: repeat the same command; it takes up from the last committed chunk",
        4: f"next: retoma status {result.run_id}, cure the cause, then repeat the same command",
        5: f"next: retoma errors list {result.run_id}",
        8: "next: repeat the same command to go on",
    }
    if result.exit_code in hints:
        click.echo("  " + hints[result.exit_code])
