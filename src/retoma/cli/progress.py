"""Progress of a run: a bar with rate and ETA on a terminal, plain lines elsewhere."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import click

from retoma.cli.telling import Telling
from retoma.events import EventBus
from retoma.model.progress import Pace
from retoma.store.store import Store

_EVERY_SECONDS = 2.0


@contextmanager
def shown_progress(store: Store, job: str, *, quiet: bool) -> Iterator[EventBus]:
    """A bus whose events tell how the work of this process goes."""
    bus = EventBus()
    if quiet:
        yield bus
        return
    watcher = _Watcher(store, job)
    bus.subscribe(Telling(store.clock).hear)
    watcher.start()
    try:
        yield bus
    finally:
        watcher.finish()


class _Watcher(threading.Thread):
    """Asks the store now and then, and prints."""

    def __init__(self, store: Store, job: str) -> None:
        super().__init__(daemon=True, name="progress")
        self._store, self._job = store, job
        self._run_id: int | None = None
        self._done = threading.Event()
        self._pace = Pace()

    def finish(self) -> None:
        """No more lines."""
        self._done.set()
        self.join(timeout=5)

    def run(self) -> None:
        if sys.stderr.isatty():
            self._bar()
        else:
            self._lines()

    def _look(self) -> tuple[int, int] | None:
        from retoma.operations.queries import recent_runs, status

        if self._run_id is None:
            live = [r for r in recent_runs(self._store, 20) if r["job"] == self._job]
            live = [r for r in live if r["state"] in ("CREATED", "RUNNING")]
            if not live:
                return None
            self._run_id = int(live[0]["run"])
        found = status(self._store, self._run_id)
        return int(found["items_read"]), int(found["items_total"])

    def _lines(self) -> None:
        while not self._done.wait(_EVERY_SECONDS):
            looked = self._try()
            if looked is not None and looked[1]:
                click.echo(self._pace.line(*looked, self._store.clock.monotonic()), err=True)

    def _try(self) -> tuple[int, int] | None:
        try:
            return self._look()
        except Exception:
            return None  # the display must never break the work; the next look may succeed

    def _bar(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

        columns = (
            TextColumn("{task.description}"),
            BarColumn(),
            TextColumn("{task.percentage:>5.1f} %"),
            TextColumn("{task.fields[rate]} items/s"),
            TimeRemainingColumn(),
        )
        with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
            task = bar.add_task(self._job, total=None, rate="0")
            while not self._done.wait(0.5):
                looked = self._try()
                if looked is not None:
                    rate = self._pace.rate(looked[0], self._store.clock.monotonic())
                    bar.update(
                        task, completed=looked[0], total=looked[1] or None, rate=f"{rate:,.0f}"
                    )
