"""``retoma reconcile``: look into statement files, and reconcile them with transactions."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click

from retoma.reconciliation.inspect_command import inspect_command

_SEVERAL = ("--statement", "--transactions")


@click.group()
def reconcile() -> None:
    """Reconcile bank statements with internal transactions.

    retoma reconcile inspect statement.ofx

    retoma reconcile run --statement a.ofx b.ofx --transactions t.csv --reference-date 2026-11-30
    """


class SeveralValues(click.Command):
    """A command whose file options take all values up to the next option."""

    def parse_args(self, context: click.Context, args: list[str]) -> list[str]:
        """``--statement a b`` means ``--statement a --statement b``."""
        return super().parse_args(context, spread(args))


def spread(args: Sequence[str]) -> list[str]:
    """The arguments with the option's name before each further value of it."""
    result: list[str] = []
    name, has_value = "", False
    for position, arg in enumerate(args):
        if arg == "--":
            return result + list(args[position:])
        if arg.startswith("-") and arg != "-":
            if name in _SEVERAL and not has_value:
                raise click.UsageError(f"{name} needs a file.")
            name, separator, _ = arg.partition("=")
            has_value = bool(separator)
        elif name in _SEVERAL:
            if has_value:
                result.append(name)
            has_value = True
        result.append(arg)
    return result


@reconcile.command("run", cls=SeveralValues)
@click.option(
    "--statement",
    "statements",
    multiple=True,
    required=True,
    metavar="FILE [FILE …]",
    help="Bank statements, OFX or CSV; several after one flag, or the flag several times.",
)
@click.option(
    "--transactions",
    multiple=True,
    required=True,
    metavar="FILE [FILE …]",
    help="Internal transactions, CSV.",
)
@click.option(
    "--reference-date",
    required=True,
    metavar="YYYY-MM-DD",
    help="The business date of the run; what matches is posted under it.",
)
@click.option(
    "--database",
    "url",
    envvar="RETOMA_DATABASE",
    default="sqlite:///retoma.db",
    show_default=True,
    help="The database of the work: sqlite:///FILE, postgresql://… or mariadb://… [RETOMA_DATABASE]",
)
@click.option(
    "--output-dir",
    metavar="DIRECTORY",
    help="Write matches.csv, breaks.csv and set_aside.csv there.",
)
@click.option("--slots", type=click.IntRange(1, 64), default=1, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def run_command(
    statements: tuple[str, ...],
    transactions: tuple[str, ...],
    reference_date: str,
    url: str,
    output_dir: str | None,
    slots: int,
    as_json: bool,
) -> int:
    """Match statements against transactions, post what matched, list the rest as breaks.

    The same command again takes up where it stopped, or shows the stored result. A file sent again,
    in another encoding or overlapping another adds nothing twice.

    Exit codes: 0 completed, with breaks or without: a break is a result, not a failure; 5 completed
    with records set aside; 2 no such file or a wrong value; 4 a file is refused or does not prove
    its own totals; 3 failed, a restart is safe; 6 running elsewhere; 7 database unreachable;
    8 stopped, resumable.
    """
    from retoma import RetomaError, stop_on_signal
    from retoma.reconciliation.statement_csv import check_directory, write_lists
    from retoma.reconciliation.statement_run import reconcile as reconcile_files
    from retoma.reconciliation.statement_text import lines_of

    try:
        if output_dir is not None:
            check_directory(output_dir)
        with stop_on_signal() as stop:
            store, outcome = reconcile_files(
                url, statements, transactions, reference_date, slots=slots, stop=stop
            )
    except RetomaError as error:
        if as_json:
            _print_error(error.exit_code, error.message, error.next_step)
        raise
    if output_dir is not None and outcome["state"] in ("COMPLETED", "PARTIALLY_COMPLETED"):
        outcome["written"] = write_lists(store, output_dir, outcome["instance"], outcome["run"])
    store.dispose()
    if as_json:
        click.echo(json.dumps(outcome, ensure_ascii=False, default=str))
    else:
        click.echo("\n".join(lines_of(outcome)))
    code: Any = outcome["exit_code"]
    return int(code)


def _print_error(exit_code: int, message: str, hint: str) -> None:
    error = {"message": message, "hint": hint, "exit_code": exit_code}
    click.echo(json.dumps({"error": error}, ensure_ascii=False))


reconcile.add_command(inspect_command)
