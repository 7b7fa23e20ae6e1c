"""How often a technical failure is tried again, and how long to wait in between."""

from __future__ import annotations

import random
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """Exponential back-off with full jitter, bounded; times in seconds.

    The wait before try n+1 is drawn evenly from 0 to ``first_seconds · 2^(n-1)``, at most
    ``longest_seconds`` (https://aws.amazon.com/blogs/architecture/exponential-backoff-and-jitter/).
    """

    tries: int = 5
    first_seconds: float = 0.1
    longest_seconds: float = 5.0

    def wait_seconds(self, failed_tries: int, source: random.Random) -> float | None:
        """How long to wait after so many failed tries; None: give up."""
        if failed_tries >= self.tries:
            return None
        ceiling = min(self.longest_seconds, self.first_seconds * 2 ** (failed_tries - 1))
        return source.uniform(0.0, float(ceiling))
