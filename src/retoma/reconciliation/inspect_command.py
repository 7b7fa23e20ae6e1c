"""The command that shows what a statement file holds."""

import json
import sys
from collections.abc import Mapping
from typing import Any

import click


@click.command("inspect")
@click.argument("file", type=click.Path(path_type=str))
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
def inspect_command(file: str, as_json: bool) -> None:
    """Read FILE (OFX or CSV) and show its lines, sums, warnings and proof.

    Nothing is stored. Exit code: 0 read, 5 read with warnings or bad records, 4 refused or its
    proof failed, 2 no such file.
    """
    from retoma.reconciliation.inspect import error_as_json, exit_code_of, inspect_file
    from retoma.reconciliation.statement import StatementError

    try:
        report = inspect_file(file)
    except StatementError as error:
        if as_json:
            click.echo(json.dumps({"error": error_as_json(error)}, ensure_ascii=False, indent=2))
        click.echo(_refusal(file, error_as_json(error)), err=True)
        sys.exit(exit_code_of(error))
    if as_json:
        click.echo(json.dumps(report, ensure_ascii=False, indent=2))
    else:
        click.echo("\n".join(_lines(report)))
    sys.exit(int(str(report["exit_code"])))


def _refusal(file: str, error: Mapping[str, Any]) -> str:
    place = ""
    if error["line"] is not None:
        place += f", line {error['line']}"
    if error["offset"] is not None:
        place += f", byte {error['offset']}"
    return f"{click.format_filename(file)}{place}: {error['message']} {error['hint']}".rstrip()


def _lines(report: Mapping[str, Any]) -> list[str]:
    kinds, bad = report["lines"]["by_kind"], report["bad_records"]
    counts = (
        f"{kinds['MOVEMENT']} movements, {kinds['BALANCE']} balance lines, "
        f"{bad['count']} bad records; statements: {report['statements']}"
    )
    lines = [
        f"{report['format'].upper()}, {report['bytes']} bytes, {report['encoding']}",
        f"sha256 {report['sha256']}",
        counts,
    ]
    lines += [f"sum {code or '(no currency)'} {total}" for code, total in report["sums"].items()]
    for one in report["accounts"]:
        lines.append(
            f"  account {one['account'] or '(none)'} {one['currency']}: {one['movements']} "
            f"movements, sum {one['sum']}, opening {one['declared_opening'] or '-'}, "
            f"closing {one['declared_closing'] or '-'}: {one['proof']}"
        )
    lines.append(f"proof {report['proof']}: {report['proof_reason']}")
    for code, one in report["warnings"].items():
        where = ", ".join(str(example["line"]) for example in one["examples"])
        lines.append(f"warning {code} x{one['count']}: {one['message']} (line {where})")
    for one in bad["examples"]:
        lines.append(f"bad record at line {one['line']}: {one['code']} {one['message']}")
    return lines
