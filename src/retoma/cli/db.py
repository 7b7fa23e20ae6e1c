"""``retoma db``: the control tables."""

from __future__ import annotations

import click

from retoma.cli import options
from retoma.errors import ExitCode


@click.group()
def db() -> None:
    """Create, check and print the control tables."""


@db.command()
@options.database_option
@options.json_option
def migrate(url: str, as_json: bool) -> int:
    """Create the control tables or bring them to this release."""
    from retoma.store import migrate as migrations

    store = options.open_store(url)
    if as_json:
        options.print_json({"revision": migrations.HEAD, "database": store.shown_url})
    else:
        click.echo(f"control tables in {store.shown_url} are at revision {migrations.HEAD}")
    return 0


@db.command()
@options.database_option
@click.option(
    "--backend", type=click.Choice(["sqlite", "postgresql", "mariadb"]), default=None,
    help="Print for this database without connecting to one.",
)  # fmt: skip
@options.json_option
def sql(url: str, backend: str | None, as_json: bool) -> int:
    """Print the control tables as SQL, for a DBA who applies it himself. Nothing is connected."""
    from retoma.store import migrate as migrations
    from retoma.store.store import normal_url

    if backend is None:
        scheme = normal_url(url).partition("+")[0].partition(":")[0]
        backend = scheme
    text = migrations.offline_sql(backend)
    if as_json:
        options.print_json({"backend": backend, "revision": migrations.HEAD, "sql": text})
    else:
        click.echo(text, nl=False)
    return 0


@db.command()
@options.database_option
@click.option(
    "--production/--no-production",
    "is_production",
    required=True,
    help="Set the mark, or take it away.",
)
@options.json_option
def mark(url: str, is_production: bool, as_json: bool) -> int:  # fmt: skip
    """Mark this store as production, or take the mark away; who did it is kept.

    A process that allows faults (RETOMA_ALLOW_FAULTS=1) never opens a marked store, and the crash
    matrix refuses it.
    """
    from retoma.operations.commands import default_actor
    from retoma.store import production

    store = options.existing_store(url)
    is_changed = production.mark(store, is_production=is_production, actor=default_actor())
    if as_json:
        options.print_json({"production": is_production, "changed": is_changed})
    else:
        state = "marked as production" if is_production else "not marked as production"
        click.echo(f"{store.shown_url} is {'now' if is_changed else 'already'} {state}")
    return ExitCode.COMPLETED


@db.command()
@options.database_option
@options.json_option
def check(url: str, as_json: bool) -> int:
    """Tell whether the control tables are those of this release; exit 4 if not."""
    from retoma.store import migrate as migrations
    from retoma.store.store import Store

    store = Store(url)
    found = migrations.current_version(store)
    is_right = found == migrations.HEAD
    if as_json:
        options.print_json({"revision": found, "expected": migrations.HEAD, "ok": is_right})
    else:
        click.echo(f"revision {found or 'none'}, expected {migrations.HEAD}")
        if not is_right:
            click.echo("  next: retoma db migrate")
    return ExitCode.COMPLETED if is_right else ExitCode.NEEDS_PERSON
