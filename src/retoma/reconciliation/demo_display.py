"""How a demo looks while it runs: a bar on a terminal, a line every two seconds elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from types import TracebackType
from typing import Any, Protocol, Self

import click

_EVERY_SECONDS = 2.0


class Display(Protocol):
    """What the demo tells while it runs; everything goes to standard error."""

    def say(self, text: str) -> None:
        """Something happened."""

    def show(self, status: Mapping[str, Any]) -> None:
        """How far the run is."""


class _Pace:
    """Items a second until the last one that was read, and what is left at that pace."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._read = -1
        self._rate = 0.0

    def words(self, read: int, total: int) -> str:
        """Such as ``12,345/s, 8 s left``."""
        now = time.monotonic()
        if self._since is None:
            self._since = now
        if read != self._read and now > self._since:
            self._read, self._rate = read, read / (now - self._since)
        if not self._rate:
            return "waiting for the first chunk"
        if read >= total:
            return f"{self._rate:,.0f}/s, waiting for the run to be closed"
        return f"{self._rate:,.0f}/s, {(total - read) / self._rate:.0f} s left"


class PlainLines:
    """For logs and pipes."""

    def __init__(self) -> None:
        self._pace = _Pace()
        self._next = 0.0

    def say(self, text: str) -> None:
        """One line."""
        click.echo(text, err=True)

    def show(self, status: Mapping[str, Any]) -> None:
        """One line, unless the last one is fresh."""
        if time.monotonic() < self._next:
            return
        self._next = time.monotonic() + _EVERY_SECONDS
        read, total = int(status["items_read"]), int(status["items_total"])
        share = 100 * read / total if total else 0.0
        pace = self._pace.words(read, total)
        click.echo(f"{share:5.1f} %  {read:,} of {total:,} items, {pace}", err=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        return None


class Bar:
    """For a terminal; what happens is printed above the bar."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415 - heavy, and only for a terminal
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        self._pace = _Pace()
        self._progress = Progress(
            BarColumn(bar_width=None),
            TextColumn("{task.percentage:5.1f} %"),
            TextColumn("{task.completed:,.0f} of {task.total:,.0f}"),
            TextColumn("{task.fields[pace]}"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._progress.add_task("posting", total=1, pace="", start=False)

    def say(self, text: str) -> None:
        """One line, above the bar."""
        self._progress.console.print(text, highlight=False, markup=False)

    def show(self, status: Mapping[str, Any]) -> None:
        """Move the bar."""
        read, total = int(status["items_read"]), int(status["items_total"])
        pace = self._pace.words(read, total)
        self._progress.update(self._task, completed=read, total=max(total, 1), pace=pace)

    def __enter__(self) -> Self:
        self._progress.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._progress.stop()


def display_for(*, is_terminal: bool) -> PlainLines | Bar:
    """The display that fits where standard error goes."""
    return Bar() if is_terminal else PlainLines()
