"""SIGTERM and Ctrl-C become a request to stop at the next chunk border; a second one insists."""

from __future__ import annotations

import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType

import click

from retoma.errors import ExitCode


@contextmanager
def stop_on_signal(at: str = "the next chunk border") -> Iterator[threading.Event]:
    """An event that the first signal sets, saying where the stop will be; the second ends the process."""
    stop = threading.Event()

    def handle(_number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            raise SystemExit(ExitCode.STOPPED)
        click.echo(f"retoma: stopping at {at} …", err=True)
        stop.set()

    before = {number: signal.signal(number, handle) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
