"""A slot: a child process that works on one chunk at a time and lives for many.

It is exec'd by its supervisor, gets its settings as the first line of standard input, then
messages; it reports on what was its standard output. It ends by itself when its supervisor is gone:
at the end of that input, and by the kernel's parent-death signal.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
import threading
from collections.abc import Mapping
from typing import Any

from retoma.cluster.timing import Timing
from retoma.cluster.work import Orders, SlotWork
from retoma.engine.history import log_from
from retoma.faults import point_from
from retoma.registry import load_jobs
from retoma.store.production import refuse_faults
from retoma.store.store import Store

_PR_SET_PDEATHSIG = 1


def tie_to_parent(supervisor: int) -> None:
    """Die when the supervisor dies, even in the middle of code that never returns."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != supervisor:
        os._exit(3)


def follow(orders: Orders) -> None:
    """Read orders until the supervisor is gone, then end this process at once."""
    for line in sys.stdin.buffer:
        orders.take(json.loads(line))
    os._exit(3)


def main() -> None:
    """Entry of the child process."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    reports = os.dup(1)
    os.dup2(2, 1)  # what a job prints must not mix with the reports
    settings: dict[str, Any] = json.loads(sys.stdin.buffer.readline())
    tie_to_parent(settings["supervisor"])
    orders = Orders(settings["node_id"], settings["believe"])
    threading.Thread(target=follow, args=(orders,), daemon=True, name="orders").start()

    def report(message: Mapping[str, Any]) -> None:
        os.write(reports, json.dumps(message).encode() + b"\n")

    store = Store(settings["url"], point=point_from(os.environ))
    refuse_faults(store, os.environ)
    slot = SlotWork(
        store=store,
        jobs=load_jobs(settings["apps"]),
        timing=Timing(**settings["timing"]),
        orders=orders,
        number=settings["slot"],
        run_id=settings["run_id"],
        report=report,
        log=log_from(os.environ),
    )
    slot.serve(orders.stop.wait)
    slot.store.dispose()
    os._exit(0)


if __name__ == "__main__":
    main()
