"""Options that all commands share."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from retoma.errors import UsageError

if TYPE_CHECKING:
    from retoma.model.job import Job
    from retoma.store.store import Store

Command = TypeVar("Command", bound=Callable[..., Any])
DEFAULT_URL = "sqlite:///retoma.db"

database_option = click.option(
    "--database",
    "url",
    envvar="RETOMA_DATABASE",
    default=DEFAULT_URL,
    show_default=True,
    help="The database of the work: sqlite:///FILE, postgresql://… or mariadb://… [RETOMA_DATABASE]",
)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
app_option = click.option(
    "--app",
    "apps",
    multiple=True,
    metavar="MODULE",
    envvar="RETOMA_APPS",
    help="A module that defines jobs; may be given several times. [RETOMA_APPS]",
)
parameter_option = click.option(
    "-p",
    "--parameter",
    "pairs",
    multiple=True,
    metavar="NAME=VALUE",
    help="A parameter of the job; may be given several times.",
)


def open_store(url: str) -> Store:
    """The store behind the URL, with the control tables of this release."""
    from retoma.faults import point_from
    from retoma.store import migrate
    from retoma.store.store import Store

    store = Store(url, point=point_from(os.environ))
    migrate.ensure(store)
    return store


def existing_store(url: str) -> Store:
    """The store behind the URL, for looking only: raises ``UsageError`` if there is none yet."""
    from retoma.store import migrate
    from retoma.store.store import Store

    store = Store(url)
    migrate.require(store)
    return store


def store_that_is_there(url: str) -> Store | None:
    """The database behind the URL, with or without control tables; None: no such SQLite file.

    Raises ``DatabaseUnreachable``. Looking creates nothing.
    """
    from retoma.store.store import Store

    store = Store(url)
    if store.dialect.name == "sqlite" and not Path(str(store.engine.url.database)).exists():
        return None
    store.check_connection()
    return store


def parse_pairs(pairs: Sequence[str]) -> dict[str, str]:
    """``NAME=VALUE`` pairs; raises ``UsageError`` for a text without ``=`` or a name given twice."""
    values: dict[str, str] = {}
    for pair in pairs:
        name, separator, value = pair.partition("=")
        if not separator or not name:
            raise UsageError(f"{pair!r} is no NAME=VALUE", next_step="-p reference_date=2026-11-30")
        if name in values:
            raise UsageError(f"parameter {name!r} is given twice")
        values[name] = value
    return values


def job_named(apps: Sequence[str], name: str) -> Job:
    """The job of that name."""
    from retoma.registry import find_job, load_jobs

    return find_job(load_jobs(apps), name)


def print_json(value: Any) -> None:
    """One JSON object on standard output."""
    click.echo(json.dumps(value, ensure_ascii=False, default=str))
