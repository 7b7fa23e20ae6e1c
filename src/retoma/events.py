"""What happens, as a closed list of frozen events, and the bus that carries them.

Subscribers (progress, logs, metrics, tests) are called in the process where the thing happened. A
subscriber that fails is dropped and reported once; it never breaks the work.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Event:
    """Something that happened to a run, chunk or node; ``at`` is the database's time if known."""

    name: str
    run_id: int | None = None
    step: str | None = None
    chunk_id: int | None = None
    detail: str = ""
    items: int = 0
    seconds: float = 0.0


Subscriber = Callable[[Event], None]


class EventBus:
    """Delivers each event to every subscriber, in order of subscription."""

    def __init__(self) -> None:
        self._subscribers: list[Subscriber] = []

    def subscribe(self, subscriber: Subscriber) -> None:
        self._subscribers.append(subscriber)

    def publish(self, event: Event) -> None:
        for subscriber in tuple(self._subscribers):
            try:
                subscriber(event)
            except Exception as error:
                self._subscribers.remove(subscriber)
                print(
                    f"retoma: a subscriber of events failed and was dropped: {error}",
                    file=sys.stderr,
                )
