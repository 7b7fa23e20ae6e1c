"""``retoma stop``: ask a run to stop at its chunk borders, and wait for it."""

from __future__ import annotations

import click

from retoma.cli import options


@click.command()
@click.argument("run_id", metavar="RUN", type=int)
@options.database_option
@options.app_option
@click.option("--reason", default="", help="Why; kept with the request.")
@options.json_option
def stop(run_id: int, url: str, apps: tuple[str, ...], reason: str, as_json: bool) -> int:
    """Stop RUN: the chunks in hand are finished, then the run is STOPPED and can be taken up again."""
    from retoma.cli.run import print_result
    from retoma.operations import commands
    from retoma.registry import load_jobs

    store = options.existing_store(url)
    result = commands.stop(store, run_id, load_jobs(apps), reason=reason)
    print_result(store, result, as_json)
    return result.exit_code
