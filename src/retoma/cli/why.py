"""``retoma why``: why a run or a chunk stands as it does, in words."""

from __future__ import annotations

from dataclasses import asdict

import click

from retoma.cli import options
from retoma.errors import UsageError


@click.command()
@click.argument("run_id", metavar="[RUN]", type=int, required=False)
@click.option("--chunk", "chunk_id", type=int, help="Explain this chunk instead.")
@options.database_option
@options.json_option
def why(run_id: int | None, chunk_id: int | None, url: str, as_json: bool) -> int:
    """Say in words why RUN, or a chunk, stands as it does, and which command comes next.

    \b
    retoma why 17
    retoma why --chunk 4711
    """
    from retoma.operations.why import why_chunk, why_run

    if (run_id is None) == (chunk_id is None):
        raise UsageError("name a run or a chunk", next_step="retoma why RUN, or --chunk CHUNK")
    store = options.existing_store(url)
    found = why_run(store, run_id) if run_id is not None else why_chunk(store, chunk_id or 0)
    if as_json:
        options.print_json(asdict(found))
        return 0
    click.echo(found.subject)
    for sentence in found.sentences:
        click.echo(f"  {sentence}")
    click.echo(f"  next: {found.next_step}")
    return 0
