"""Looks after a run that nobody alive coordinates, without working on it: to stop it, say."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

from retoma.cluster.coordinator import Coordinator
from retoma.cluster.identity import this_node
from retoma.cluster.sweep import Sweep
from retoma.cluster.timing import timing_from
from retoma.events import EventBus
from retoma.model.job import Job
from retoma.release import VERSION
from retoma.store import nodes
from retoma.store.session import Session
from retoma.store.store import Store


@dataclass(slots=True)
class Caretaker:
    """A node without slots that coordinates and sweeps for one run while its context is open."""

    store: Store
    jobs: Mapping[str, Job]
    run_id: int
    _session: Session = field(init=False)
    _node: int = field(init=False)
    _coordinator: Coordinator = field(init=False)
    _sweep: Sweep = field(init=False)

    def __enter__(self) -> Self:
        store, clock, bus = self.store, self.store.clock, EventBus()
        timing = timing_from(os.environ)
        self._session = store.control()
        self._node = nodes.register(self._session, this_node(store.host, "", 0, VERSION))
        self._coordinator = Coordinator(
            store, self.jobs, clock, timing, bus, self._node, 0, self.run_id
        )
        self._sweep = Sweep(store, clock, timing, bus, lambda _node, _pid: False)
        return self

    def tick(self) -> None:
        """Take the run if it was left alone, end what dead workers hold, and move it on."""
        self._coordinator.tick()
        self._sweep.chunks(self._session)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._coordinator.put_down()
        nodes.change(self._session, self._node, "ACTIVE", "LEFT", f"node {self._node}", "done")
        self._coordinator.session.close()
        self._session.close()
