"""The coordinator: takes runs that nobody coordinates, and moves on those that it holds."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from retoma.clock import Clock
from retoma.cluster.identity import is_certainly_dead
from retoma.cluster.suspicion import Suspicion
from retoma.cluster.timing import Timing
from retoma.engine.advance import Advance
from retoma.errors import RetomaError
from retoma.events import Event, EventBus
from retoma.model.job import Job
from retoma.model.records import RunRow
from retoma.model.status import RunState
from retoma.store import nodes, runs
from retoma.store.session import Session
from retoma.store.store import Store, is_database_error


@dataclass(slots=True)
class Coordinator:
    """One node's part in coordinating runs; each ``tick`` does one bounded piece of work."""

    store: Store
    jobs: Mapping[str, Job]
    clock: Clock
    timing: Timing
    bus: EventBus
    node_id: int
    slots: int
    only_run: int | None = None
    ended: dict[int, RunState] = field(default_factory=dict)
    _tokens: dict[int, str] = field(default_factory=dict)
    _renewed: dict[int, float] = field(default_factory=dict)
    _looked_at: float = -1e9
    _suspicion: Suspicion = field(init=False)
    _session: Session | None = None

    def __post_init__(self) -> None:
        self._suspicion = Suspicion(self.timing.unchanged)

    @property
    def session(self) -> Session:
        """The coordinator's own connection."""
        if self._session is None:
            self._session = self.store.control()
        return self._session

    def tick(self) -> None:
        """Look at the live runs once: renew and advance one's own, take those left alone."""
        try:
            live = [run for run in runs.live(self.session) if self._is_wanted(run)]
            self._note_ended({run.run_id for run in live})
            for run in self._takeable(live):
                self._take(run)
            for run in live:
                if run.run_id in self._tokens:
                    self._advance(run)
        except Exception as error:
            if not is_database_error(error):
                raise
            self._reopen()

    def hold(self, run_id: int, token: str) -> None:
        """Coordinate a run whose lease was taken at its launch."""
        self._tokens[run_id] = token
        self._renewed[run_id] = self.clock.monotonic()

    def rejoined(self, node_id: int) -> None:
        """This worker was removed and has come back as another node."""
        self.node_id = node_id

    def put_down(self) -> None:
        """Let others coordinate at once what is still live."""
        for run_id, token in self._tokens.items():
            self.session.once(runs.PUT_DOWN, {"run_id": run_id, "token": token})
        self._tokens.clear()

    def _is_wanted(self, run: RunRow) -> bool:
        return run.job_name in self.jobs and self.only_run in (None, run.run_id)

    def _note_ended(self, live: set[int]) -> None:
        """A run that is live no more was ended by whoever held it."""
        watched = set(self._tokens) | ({self.only_run} if self.only_run else set())
        for run_id in watched - live - set(self.ended):
            run = runs.get(self.session, run_id)
            self._tokens.pop(run_id, None)
            if run is not None and not run.is_live:
                self.ended[run_id] = RunState(run.state)

    def _takeable(self, live: list[RunRow]) -> list[RunRow]:
        """Runs that nobody coordinates: put down, expired, or held by a process that is dead here."""
        others = [run for run in live if run.run_id not in self._tokens]
        expired = [
            (run.run_id, run.coordination_token)
            for run in others
            if run.coordination_token and not run.is_coordinated
        ]
        ripe = self._suspicion.observe(expired, self.clock.monotonic())
        dead = self._dead_coordinators(others)
        return [
            run
            for run in others
            if run.coordinator is None or run.run_id in ripe or run.coordinator in dead
        ]

    def _dead_coordinators(self, others: list[RunRow]) -> set[int]:
        """Coordinators that certainly died on this host; asked once a sweep."""
        now = self.clock.monotonic()
        if not others or now - self._looked_at < self.timing.sweep:
            return set()
        self._looked_at = now
        found = {run.coordinator for run in others if run.coordinator is not None}
        host = self.store.host
        return {
            node for node in found if is_certainly_dead(host, nodes.identity(self.session, node))
        }

    def _take(self, run: RunRow) -> None:
        cause = "launched" if run.coordinator is None else f"node {run.coordinator} fell silent"
        token = runs.coordinate(self.session, run, self.node_id, self.timing.lease, cause)
        if token is not None:
            self.hold(run.run_id, token)
            self.bus.publish(Event("run.coordinated", run_id=run.run_id, detail=cause))

    def _advance(self, run: RunRow) -> None:
        if not self._keep(run):
            return
        act = Advance(
            session=self.session,
            job=self.jobs[run.job_name],
            run=run,
            token=self._tokens[run.run_id],
            actor=f"node {self.node_id}",
            slots=self._live_slots(),
        )
        try:
            ended = act.tick()
        except Exception as error:
            if is_database_error(error) and self.store.kind_of(error) == "TRANSIENT":
                raise
            self._reopen()
            act.session = self.session
            text = (
                error.message
                if isinstance(error, RetomaError)
                else f"{type(error).__name__}: {error}"
            )
            ended = act.fail(text)
        if ended is not None:
            self._tokens.pop(run.run_id, None)
            self.ended[run.run_id] = ended
            self.bus.publish(Event("run.ended", run_id=run.run_id, detail=ended))

    def _live_slots(self) -> int:
        return max(nodes.live_slots(self.session), self.slots)

    def _keep(self, run: RunRow) -> bool:
        """Renew the coordination lease when due; False: another has taken the run."""
        now = self.clock.monotonic()
        if now - self._renewed.get(run.run_id, 0.0) < self.timing.renew:
            return True
        values = {
            "run_id": run.run_id,
            "token": self._tokens[run.run_id],
            "lease_seconds": self.timing.lease,
        }
        if self.session.once(runs.RENEW_COORDINATION, values):
            self._renewed[run.run_id] = now
            return True
        del self._tokens[run.run_id]
        return False

    def _reopen(self) -> None:
        self._suspicion.forget()
        if self._session is not None:
            self._session.discard()
            self._session = None
