"""``retoma verify``: the proof."""

from __future__ import annotations

import click

from retoma.cli import options
from retoma.errors import ExitCode


@click.command()
@click.argument("run_id", metavar="RUN", type=int)
@options.database_option
@options.app_option
@options.json_option
def verify(run_id: int, url: str, apps: tuple[str, ...], as_json: bool) -> int:
    """Recount from the rows themselves what RUN claims; exit 0 only if all is well, else 4."""
    from retoma.operations import queries
    from retoma.operations.verify import verify as prove

    store = options.existing_store(url)
    name = queries.status(store, run_id)["job"]
    found = prove(store, options.job_named(apps, name), run_id)
    if as_json:
        options.print_json(found)
    else:
        click.echo(f"run {run_id} of job {name}: {found['state']}")
        for key in ("expected", "found", "missing", "duplicate", "unexpected", "sum_difference"):
            if found[key] is not None:
                click.echo(f"  {key.replace('_', ' ')}: {found[key]}")
        click.echo(f"  equation: {'holds' if found['equation_ok'] else 'BROKEN'}")
        for line in [*found["broken"], *found["notes"]]:
            click.echo(f"  {line}")
    return ExitCode.COMPLETED if found["is_clean"] else ExitCode.NEEDS_PERSON
