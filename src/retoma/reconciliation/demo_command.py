"""``retoma demo``: see a job killed and taken up again, and the proof that nothing was lost."""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from types import FrameType
from typing import Any

import click


@click.command("demo")
@click.option("--transactions", type=int, default=100_000, show_default=True)
@click.option("--workers", type=int, default=2, show_default=True, help="Processes, one slot each.")
@click.option(
    "--database",
    metavar="URL|embedded",
    default=None,
    help="Where to do it; 'embedded' starts a throw-away PostgreSQL. Default: an SQLite file that "
    "is removed afterwards.",
)
@click.option("--seed", type=int, default=1, show_default=True, help="Decides data and kills.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
def demo(transactions: int, workers: int, database: str | None, seed: int, as_json: bool) -> int:
    """Make a night, kill its workers, resume, and print the proof.

    At some 60 % one worker is killed (SIGKILL) while it has a chunk half done, at some 90 % all of
    them; as many are started again. Exit code: 0 if the proof holds, 4 if not.
    """
    from retoma import ExitCode
    from retoma.reconciliation.demo import Plan, run_demo
    from retoma.reconciliation.demo_display import display_for

    plan = Plan(transactions=transactions, workers=workers, database=database, seed=seed)
    with _ended_by_signal(), display_for(is_terminal=sys.stderr.isatty()) as display:
        result = run_demo(plan, display)
    if as_json:
        click.echo(json.dumps(result, ensure_ascii=False))
    else:
        click.echo("\n".join(_lines(result)))
    return ExitCode.COMPLETED if result["is_clean"] else ExitCode.NEEDS_PERSON


def _lines(result: Mapping[str, Any]) -> list[str]:
    rows = [
        ("state", result["state"]),
        ("set aside, deferred", f"{result['item_errors']:,}, {result['deferred']:,}"),
        ("workers killed", result["kills"]),
        ("items a second", f"{result['items_per_second']:,.0f}"),
        ("expected entries", f"{result['expected_entries']:,}"),
        ("entries", f"{result['entries']:,}"),
        ("duplicates", result["duplicate"]),
        ("lost", result["missing"]),
        ("sum difference", result["sum_difference"]),
        (
            "chunks repeated",
            f"{result['chunks_repeated']} of {result['chunks_total']} "
            f"({result['items_recomputed']:,} items computed again)",
        ),
    ]
    lines = [f"{name:<20} {value}" for name, value in rows]
    if result["is_clean"]:
        return lines
    notes = [f"  {note}" for note in result["notes"]]
    return [f"THE PROOF FAILED; logs and side files: {result['files']}", *notes, *lines]


@contextmanager
def _ended_by_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP end the demo as Ctrl-C does: with everything that it started."""

    def interrupt(_number: int, _frame: FrameType | None) -> None:
        raise KeyboardInterrupt

    before = {
        number: signal.signal(number, interrupt) for number in (signal.SIGTERM, signal.SIGHUP)
    }
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
