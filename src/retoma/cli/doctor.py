"""``retoma doctor``: is this installation fit for the night?"""

from __future__ import annotations

import sys
from typing import Any

import click

from retoma.cli import options
from retoma.errors import ExitCode


@click.command()
@options.database_option
@options.app_option
@options.json_option
def doctor(url: str, apps: tuple[str, ...], as_json: bool) -> int:
    """Check Python, driver, database, rights, clock and jobs; exit 4 if something must be cured."""
    from retoma.operations.checks import check_all
    from retoma.registry import load_jobs
    from retoma.store.store import Store

    findings: list[dict[str, Any]] = [
        {"check": "python", "ok": sys.version_info >= (3, 11), "detail": sys.version.split()[0]}
    ]
    findings += check_all(Store(url))
    jobs = load_jobs(apps)
    findings.append({"check": "jobs", "ok": bool(jobs), "detail": ", ".join(sorted(jobs))})
    is_well = all(finding["ok"] for finding in findings)
    if as_json:
        options.print_json({"ok": is_well, "checks": findings})
    else:
        for finding in findings:
            click.echo(
                f"{'ok  ' if finding['ok'] else 'BAD '} {finding['check']}: {finding['detail']}"
            )
    return ExitCode.COMPLETED if is_well else ExitCode.NEEDS_PERSON
