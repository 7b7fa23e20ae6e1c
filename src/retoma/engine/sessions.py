"""The two sessions of a slot, reopened after a failure, and its belief in its claim."""

from __future__ import annotations

from collections.abc import Callable

from retoma.clock import Clock
from retoma.errors import LostClaim
from retoma.model.records import Claim
from retoma.store.session import Session
from retoma.store.store import Store


class SlotSessions:
    """Control and work session of one slot.

    ``believe_until`` gives the instant (by the clock that runs through suspend) until which the
    slot may believe in its claim. Past it no work transaction is begun: the fence would refuse it.
    """

    def __init__(self, store: Store, clock: Clock, believe_until: Callable[[Claim], float]) -> None:
        self._store = store
        self._clock = clock
        self._believe_until = believe_until
        self._control: Session | None = None
        self._work: Session | None = None

    @property
    def control(self) -> Session:
        """Each statement its own transaction; opened when first needed."""
        if self._control is None:
            self._control = self._store.control()
        return self._control

    @property
    def work(self) -> Session:
        """Explicit transactions; opened when first needed."""
        if self._work is None:
            self._work = self._store.work()
        return self._work

    def reopen(self) -> None:
        """Throw both connections away: after an error nobody knows what they hold."""
        for session in (self._control, self._work):
            if session is not None:
                session.discard()
        self._control = self._work = None

    def pause(self, seconds: float) -> None:
        """Wait outside any transaction."""
        self._clock.sleep(seconds)

    def require_belief(self, claimed: Claim) -> None:
        """Raise ``LostClaim`` if the lease may have ended meanwhile."""
        if self._clock.boottime() >= self._believe_until(claimed):
            raise LostClaim(
                f"chunk {claimed.chunk_id}: the lease may have ended; nothing was begun"
            )
