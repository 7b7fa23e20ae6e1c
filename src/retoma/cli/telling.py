"""What happens, as lines for an operator: the same line is not repeated again and again."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

import click

from retoma.clock import Clock
from retoma.events import Event

_AGAIN_SECONDS = 10.0
_LONGEST = 300


@dataclass(slots=True)
class Telling:
    """A subscriber of events that prints them on standard error, or as JSON lines on output."""

    clock: Clock
    as_json: bool = False
    _told: dict[str, tuple[float, int]] = field(default_factory=dict)

    def hear(self, event: Event) -> None:
        """Print the event, unless the same was printed a moment ago."""
        if self.as_json:
            click.echo(json.dumps(asdict(event)))
            return
        if event.name == "chunk.completed":
            return
        line = self._line(event)
        now = self.clock.monotonic()
        last, silent = self._told.get(event.name + event.detail, (-1e9, 0))
        if now - last < _AGAIN_SECONDS:
            self._told[event.name + event.detail] = (last, silent + 1)
            return
        self._told[event.name + event.detail] = (now, 0)
        click.echo(line + (f" ({silent} more like this)" if silent else ""), err=True)

    def _line(self, event: Event) -> str:
        run = f" run {event.run_id}" if event.run_id else ""
        chunk = f" chunk {event.chunk_id}" if event.chunk_id else ""
        detail = " ".join(event.detail.split())
        return f"{event.name}{run}{chunk}: {detail[:_LONGEST]}"
