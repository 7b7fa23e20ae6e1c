"""``retoma submit``: leave a run to the workers."""

from __future__ import annotations

import click

from retoma.cli import options


@click.command()
@click.argument("job")
@options.parameter_option
@options.database_option
@options.app_option
@options.json_option
def submit(job: str, pairs: tuple[str, ...], url: str, apps: tuple[str, ...], as_json: bool) -> int:
    """Store a run of JOB; any worker of the database takes it. Asked again: the same run."""
    from retoma.model.parameters import parse_parameters
    from retoma.operations import commands

    definition = options.job_named(apps, job)
    parameters = options.parse_pairs(pairs)
    parse_parameters(definition.parameters, parameters)  # a mistake is told before all else
    store = options.open_store(url)
    run_id = commands.submit(store, definition, parameters)
    result = commands.outcome(store, run_id)
    if as_json:
        options.print_json({"run": run_id, "state": result.state})
    else:
        click.echo(f"run {run_id} {result.state}")
        click.echo(f"  next: retoma status {run_id}")
    return 0
