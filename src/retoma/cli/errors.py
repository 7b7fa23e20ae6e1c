"""``retoma errors``: items that were set aside or deferred."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any, TextIO

import click

from retoma.cli import options
from retoma.errors import UsageError

_FIELDS = (
    "id", "item_key", "state", "reason", "field", "message", "payload", "step_name", "chunk_id",
    "run_id", "due_at", "created_at",
)  # fmt: skip


@click.group()
def errors() -> None:
    """Items that were set aside or deferred, with their reasons."""


@errors.command("list")
@click.argument("run_id", metavar="RUN", type=int)
@options.database_option
@click.option("--reason", default=None, help="Only this reason, such as INVALID_DOCUMENT.")
@click.option("--limit", type=click.IntRange(1, 100_000), default=50, show_default=True)
@options.json_option
def list_errors(run_id: int, url: str, reason: str | None, limit: int, as_json: bool) -> int:
    """Show the first item errors of RUN."""
    from retoma.operations.queries import item_errors

    store = options.existing_store(url)
    found = list(item_errors(store, run_id, reason=reason, limit=limit))
    if as_json:
        options.print_json({"errors": found})
        return 0
    for error in found:
        field = f" [{error['field']}]" if error["field"] else ""
        click.echo(
            f"{error['item_key']:>14}  {error['state']:<10} {error['reason']}{field}: {error['message']}"
        )
    if not found:
        click.echo("no item was set aside")
    elif len(found) == limit:
        click.echo(f"… the first {limit}; all of them: retoma errors export {run_id} --output FILE")
    return 0


@errors.command("export")
@click.argument("run_id", metavar="RUN", type=int)
@options.database_option
@click.option(
    "--output", type=click.Path(dir_okay=False), default="-", help="A .csv or .jsonl file."
)
@click.option("--reason", default=None, help="Only this reason.")
@click.option("--json", "as_json", is_flag=True, help="JSON lines instead of CSV.")
def export(run_id: int, url: str, output: str, reason: str | None, as_json: bool) -> int:
    """Write all item errors of RUN as CSV, or as JSON lines (--json, or a file named .jsonl)."""
    from retoma.operations.queries import item_errors

    store = options.existing_store(url)
    rows = item_errors(store, run_id, reason=reason)
    if output == "-":
        _write(sys.stdout, rows, as_lines=as_json)
        return 0
    try:
        with Path(output).open("w", encoding="utf-8", newline="") as out:
            count = _write(out, rows, as_lines=as_json or output.endswith(".jsonl"))
    except OSError as error:
        raise UsageError(
            f"{output} can't be written: {error.strerror}", safe="Nothing was changed."
        ) from None
    click.echo(f"{count} item errors written to {output}", err=True)
    return 0


def _write(out: TextIO, rows: Any, *, as_lines: bool) -> int:
    count = 0
    writer = csv.writer(out)
    if not as_lines:
        writer.writerow(_FIELDS)
    for row in rows:
        count += 1
        if as_lines:
            out.write(json.dumps({name: row[name] for name in _FIELDS}, ensure_ascii=False) + "\n")
        else:
            writer.writerow([_cell(row[name]) for name in _FIELDS])
    return count


def _cell(value: Any) -> Any:
    """A spreadsheet must not take a cell for a formula."""
    if isinstance(value, str) and value[:1] in ("=", "+", "-", "@", "\t", "\r"):
        return "'" + value
    return value
