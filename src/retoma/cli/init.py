"""``retoma init``: a small project that runs, to begin with."""

from __future__ import annotations

from importlib.resources import files
from pathlib import Path

import click

from retoma.errors import UsageError

_FILES = ("jobs.py", "make_payments.py", "README.md")


@click.command()
@click.argument("folder", type=click.Path(path_type=Path))
def init(folder: Path) -> int:
    """Write a project that runs into FOLDER: a CSV file, checked, into a table.

    \b
    retoma init first && cd first
    """
    there = [name for name in _FILES if (folder / name).exists()]
    if there:
        raise UsageError(
            f"{folder} has {', '.join(there)} already",
            safe="Nothing was written.",
            next_step="name a new folder",
        )
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for name in _FILES:
            text = files("retoma.cli").joinpath("project", f"{name}.txt").read_text("utf-8")
            (folder / name).write_text(text, encoding="utf-8")
    except OSError as error:
        raise UsageError(
            f"{folder} can't be written: {error.strerror}", next_step="name another folder"
        ) from None
    click.echo(f"wrote {', '.join(_FILES)} to {folder}")
    click.echo(f"next: cd {folder} && python make_payments.py 1000")
    click.echo("      retoma run payments --app jobs -p day=2026-11-30 -p file=payments.csv")
    return 0
