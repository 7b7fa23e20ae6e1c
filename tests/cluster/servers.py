"""A database server of the test's own that can be killed and comes back by itself."""

from __future__ import annotations

import os
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import psutil
import pytest

import retoma.embedded
from retoma.server_guard import GuardedServer, ServerPlan
from tests import databases
from tests.databases import Servers

# Starts the server again and again; the guard's end of this shell's group ends the loop as well.
_AGAIN = 'trap "kill -9 0" QUIT TERM; while :; do "$@" & wait $!; sleep "$OUTAGE"; done'
_PROGRAMS = {"postgres": "postgres", "mariadb": "mariadbd"}


@dataclass(slots=True)
class MortalServer:
    """The URL of an empty database, and the way to kill the server under it."""

    url: str
    program: str
    shells: list[GuardedServer]

    def kill(self) -> None:
        """SIGKILL to the server; after the outage another one recovers its files."""
        (loop,) = psutil.Process(self.shells[-1].guard_pid).children()
        (server,) = (child for child in loop.children() if child.name() == self.program)
        os.kill(server.pid, signal.SIGKILL)


@contextmanager
def mortal_server(
    backend: str, folder: Path, outage_seconds: float, patch: pytest.MonkeyPatch
) -> Iterator[MortalServer]:
    """A throw-away server behind a loop that starts it again ``outage_seconds`` after its death."""
    shells: list[GuardedServer] = []

    def guarded(plan: ServerPlan) -> GuardedServer:
        loop = _AGAIN.replace("$OUTAGE", str(outage_seconds))
        serve = ["/bin/sh", "-c", loop, "sh", *plan.serve]
        shells.append(GuardedServer(replace(plan, serve=serve, stop_signal=signal.SIGTERM)))
        return shells[-1]

    patch.setattr(databases, "GuardedServer", guarded)
    patch.setattr(retoma.embedded, "GuardedServer", guarded)
    patch.delenv(f"RETOMA_TEST_{backend.upper()}", raising=False)
    own = Servers()
    try:
        with own.database(backend, folder) as url:
            yield MortalServer(url, _PROGRAMS[backend], shells)
    finally:
        own.stop()
