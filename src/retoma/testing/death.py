"""A process that dies at a chosen point, without a process."""

from __future__ import annotations


class Killed(BaseException):
    """The process is gone. No handler of errors may catch it, as none catches a SIGKILL."""


class KilledAt:
    """A scheduling point (``retoma.faults.Point``) that raises ``Killed`` where it is told to.

    ``where`` is a number n (before the n-th statement, counted from 1) or the name of a point, such
    as ``chunk.finish`` (before that statement) or ``work.commit.after``; ``passing`` says at which
    passing of that name. The dead do nothing more: each later point raises as well. ``died_at`` is
    the name of the point of death, None as long as there was none.
    """

    def __init__(self, where: int | str, *, passing: int = 1) -> None:
        self.died_at: str | None = None
        self._name = None if isinstance(where, int) else where
        self._left = where if isinstance(where, int) else passing
        if self._left < 1:
            raise ValueError(f"statements and passings are counted from 1, not {self._left}")

    def __call__(self, name: str) -> None:
        if self.died_at is None and self._is_counted(name):
            self._left -= 1
            if self._left == 0:
                self.died_at = name
        if self.died_at is not None:
            raise Killed(f"killed at {self.died_at}")

    def _is_counted(self, name: str) -> bool:
        # Dying right after a statement is dying before the next: nothing outside the process
        # happens in between.
        return not name.endswith(".after") if self._name is None else name == self._name
