"""Launch, run, stop and work: the verbs of an operator, as functions."""

from __future__ import annotations

import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from retoma.cluster.caretaker import Caretaker
from retoma.cluster.identity import is_certainly_dead, this_node
from retoma.cluster.joining import join
from retoma.cluster.supervisor import Supervisor
from retoma.cluster.suspicion import Suspicion
from retoma.cluster.timing import Timing, timing_from
from retoma.engine.launch import Launched, launch
from retoma.errors import (
    AlreadyRunning,
    ExitCode,
    FailureKind,
    TransientFailure,
    UsageError,
)
from retoma.events import EventBus
from retoma.model.job import Job
from retoma.model.parameters import parse_parameters
from retoma.model.records import RunRow
from retoma.model.status import RunState
from retoma.release import VERSION
from retoma.store import migrate, nodes, requests, runs
from retoma.store.session import Session
from retoma.store.store import Store, is_database_error


@dataclass(frozen=True, slots=True)
class RunResult:
    """How a run stands when the command ends; ``was_complete``: nothing was done."""

    run_id: int
    state: RunState
    exit_code: int
    was_complete: bool = False
    failure: str | None = None


def prepare(store: Store, job: Job | None = None) -> None:
    """Create the control tables and the job's own, where they are missing."""
    migrate.ensure(store)
    if job is not None and job.prepare is not None:
        job.prepare(store.engine)


def submit(store: Store, job: Job, parameters: Mapping[str, Any], *, actor: str = "") -> int:
    """Leave a run to the workers; its id. Asked again for the same identity: the same run."""
    parse_parameters(job.parameters, parameters)
    prepare(store, job)
    session = store.control()
    try:
        return launch(session, job, parameters, actor or default_actor()).run.run_id
    finally:
        session.close()


def run(
    store: Store,
    job: Job,
    parameters: Mapping[str, Any],
    *,
    slots: int = 1,
    apps: Sequence[str] = (),
    actor: str = "",
    bus: EventBus | None = None,
    stop: threading.Event | None = None,
    timing: Timing | None = None,
) -> RunResult:
    """Start or take up an identity, in the foreground, until its run has ended.

    Raises ``AlreadyRunning`` if a live owner holds it elsewhere. ``apps`` are the modules that the
    slots import to find the job. ``stop``: once set, the run is stopped at chunk borders.
    """
    parse_parameters(job.parameters, parameters)  # before anything is stored
    prepare(store, job)
    bus = bus or EventBus()
    timing = timing or timing_from(os.environ)
    session = store.control()
    found = launch(session, job, parameters, actor or default_actor())
    if found.found is Launched.COMPLETE:
        session.close()
        return result_of(found.run, was_complete=True)
    supervisor = Supervisor(
        store, {job.name: job}, apps, slots, only_run=found.run.run_id, timing=timing, bus=bus
    )
    token, node_id = _take(store, session, supervisor, found.run, timing)
    session.close()
    watcher = _stop_when_set(store, found.run.run_id, stop)
    try:
        supervisor.run(token, node_id)
    finally:
        if watcher is not None:
            watcher.cancel()
    return outcome(store, found.run.run_id)


def outcome(store: Store, run_id: int) -> RunResult:
    """How a run stands now."""
    session = store.control()
    try:
        row = runs.get(session, run_id)
    finally:
        session.close()
    if row is None:
        raise UsageError(f"there is no run {run_id}", next_step="retoma status lists the runs")
    return result_of(row)


def result_of(row: RunRow, *, was_complete: bool = False) -> RunResult:
    """The result with the exit code that belongs to it."""
    state = RunState(row.state)
    codes = {
        RunState.COMPLETED: ExitCode.COMPLETED,
        RunState.PARTIALLY_COMPLETED: ExitCode.SET_ASIDE,
        RunState.STOPPED: ExitCode.STOPPED,
    }
    code = codes.get(state, ExitCode.NEEDS_PERSON)
    if state is RunState.FAILED and row.failure_kind == FailureKind.TRANSIENT:
        code = ExitCode.RESTARTABLE
    return RunResult(row.run_id, state, code, was_complete, row.failure)


def _take(
    store: Store, session: Session, supervisor: Supervisor, row: RunRow, timing: Timing
) -> tuple[str, int]:
    """The run's coordination lease for this process; raises ``AlreadyRunning``."""
    watched = Suspicion(timing.unchanged)
    first = row
    while True:
        is_dead = row.coordinator is not None and is_certainly_dead(
            store.host, nodes.identity(session, row.coordinator)
        )
        ripe = watched.observe(
            [(row.run_id, row.coordination_token)] if not row.is_coordinated else [],
            store.clock.monotonic(),
        )
        if row.coordinator is None or is_dead or ripe:
            identity = this_node(store.host, "", supervisor.slots, VERSION)
            node_id = join(store, identity, timing, supervisor.bus)
            token = runs.coordinate(session, row, node_id, timing.lease, "run in the foreground")
            if token is not None:
                return token, node_id
            nodes.change(session, node_id, "ACTIVE", "LEFT", identity.name, "another was faster")
        elif _moved(first, row):
            raise AlreadyRunning(
                f"run {row.run_id} of this identity is running elsewhere (node {row.coordinator})",
                safe="Nothing was started here.",
                next_step=f"retoma status {row.run_id}",
            )
        store.clock.sleep(0.5)
        again = runs.get(session, row.run_id)
        if again is None or not again.is_live:
            raise AlreadyRunning(
                f"run {row.run_id} ended elsewhere while this command watched it",
                next_step=f"retoma status {row.run_id}",
            )
        row = again


def _moved(first: RunRow, now: RunRow) -> bool:
    """The coordination lease moved while we watched: its holder is alive."""
    return (first.coordination_until, first.coordination_token) != (
        now.coordination_until,
        now.coordination_token,
    )


class _Watcher(threading.Thread):
    """Turns a set event into a stop request in the store, where the coordinator finds it."""

    def __init__(self, store: Store, run_id: int, stop: threading.Event) -> None:
        super().__init__(daemon=True, name="stop-watcher")
        self._store, self._run_id, self._stop_event = store, run_id, stop
        self._cancelled = False

    def cancel(self) -> None:
        """The run has ended: nothing is left to stop."""
        self._cancelled = True

    def run(self) -> None:
        while not self._cancelled:
            if self._stop_event.wait(0.2) and self._is_asked():
                return

    def _is_asked(self) -> bool:
        try:
            stop_run(self._store, self._run_id, actor="signal", reason="asked by a signal")
        except Exception as error:
            if not is_database_error(error):
                raise
            self._store.clock.sleep(0.5)  # asked again as soon as the database answers
            return False
        return True


def _stop_when_set(store: Store, run_id: int, stop: threading.Event | None) -> _Watcher | None:
    if stop is None:
        return None
    watcher = _Watcher(store, run_id, stop)
    watcher.start()
    return watcher


def stop_run(store: Store, run_id: int, *, actor: str = "", reason: str) -> bool:
    """Ask a live run to stop at its chunk borders; False if it has ended. The request is stored."""
    session = store.control()
    try:
        row = runs.get(session, run_id)
        if row is None:
            raise UsageError(f"there is no run {run_id}", next_step="retoma status lists the runs")
        if not row.is_live:
            return False
        requests.ask_to_stop(session, run_id, actor or default_actor(), reason)
        return True
    finally:
        session.close()


def stop(
    store: Store,
    run_id: int,
    jobs: Mapping[str, Job],
    *,
    actor: str = "",
    reason: str = "",
    wait_seconds: float = 90.0,
) -> RunResult:
    """Ask for a stop and wait until the run has ended; a run without work left ends completed.

    If nobody alive coordinates the run, this process does, as far as stopping goes. Raises
    ``TransientFailure`` if it takes longer; the request stays stored.
    """
    stop_run(store, run_id, actor=actor, reason=reason or "asked by an operator")
    until = store.clock.monotonic() + wait_seconds
    with Caretaker(store, jobs, run_id) as caretaker:
        while True:
            now = outcome(store, run_id)
            if now.state not in (RunState.RUNNING, RunState.CREATED):
                return now
            if store.clock.monotonic() > until:
                raise TransientFailure(
                    f"run {run_id} has not stopped within {wait_seconds:g} s",
                    safe="The request stays stored and is honoured; committed chunks stay.",
                    next_step=f"retoma status {run_id}",
                )
            caretaker.tick()
            store.clock.sleep(0.2)


def default_actor() -> str:
    """Who gives the order, as far as the system tells."""
    return os.environ.get("RETOMA_ACTOR") or f"user {os.environ.get('USER', os.getuid())}"
