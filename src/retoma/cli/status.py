"""``retoma status``: the newest runs, or how one run stands."""

from __future__ import annotations

import click

from retoma.cli import options


@click.command()
@click.argument("run_id", metavar="[RUN]", type=int, required=False)
@options.database_option
@options.json_option
def status(run_id: int | None, url: str, as_json: bool) -> int:
    """Show the newest runs, or RUN with its steps, counts and chunks."""
    from retoma.operations import queries

    store = options.existing_store(url)
    if run_id is None:
        found = queries.recent_runs(store)
        if as_json:
            options.print_json({"runs": found})
        for run in found if not as_json else []:
            values = " ".join(f"{k}={v}" for k, v in run["parameters"].items())
            click.echo(f"run {run['run']:>5}  {run['state']:<20} {run['job']} {values[:80]}")
        if not found and not as_json:
            click.echo("there are no runs yet; start one with: retoma run JOB -p NAME=VALUE")
        return 0
    one = queries.status(store, run_id)
    if as_json:
        options.print_json(one)
        return 0
    click.echo(f"run {run_id} of job {one['job']}: {one['state']}")
    if one["failure"]:
        click.echo(f"  failure: {one['failure']}")
    total = one["items_total"]
    share = f" of {total} ({100 * one['items_read'] / total:.1f} %)" if total else ""
    click.echo(f"  items read: {one['items_read']}{share}")
    for step in one["steps"]:
        click.echo(
            f"  step {step['step']}: {step['state']}; done {step['done']}, already done"
            f" {step['already_done']}, filtered {step['filtered']}, set aside {step['set_aside']},"
            f" deferred {step['deferred']}; chunks completed {step['chunks_completed']}, running"
            f" {step['chunks_running']}, waiting {step['chunks_pending']}, failed {step['chunks_failed']}"
        )
    return 0
