"""A run in the making, built by the protocol's own statements, and short ways to look at it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from sqlalchemy import insert, select, text

from retoma.model.items import Measure, PartitionPlan
from retoma.model.records import Claim, Counts, Owner, RunRow, UncutPartition
from retoma.store import chunks, progress, runs, tables
from retoma.store.session import Session
from retoma.store.store import Store, new_token

OWNER = Owner(node_id=7, slot=1, pid=4242)
LEASE = 20.0
Answer = TypeVar("Answer")


def launch_row(identity: str = "a" * 64, **more: Any) -> dict[str, Any]:
    """What a launch stores, with a token of its own."""
    row = {
        "job_name": "job",
        "identity": identity,
        "identifying": "{}",
        "parameters": "{}",
        "fingerprint": "f" * 16,
        "actor": "tester",
        "launch_token": new_token(),
    }
    return {**row, **more}


def created(session: Session, steps: Sequence[str] = ("only",), identity: str = "a" * 64) -> RunRow:
    """A new instance's run, not coordinated yet."""
    row = launch_row(identity)
    assert runs.create_instance(session, row, steps)
    run = runs.launched_by(session, row["launch_token"])
    assert run is not None
    return run


@dataclass
class Scene:
    """A coordinated run whose first step is planned."""

    store: Store
    session: Session
    run: RunRow
    step_id: int
    coordination: str

    def step(self) -> Any:
        """The step's row as it is now."""
        return row_of(self.session, tables.step, self.step_id)

    def partitions(self) -> list[UncutPartition]:
        """The partitions that can be cut now."""
        return progress.uncut_partitions(self.session, self.step_id)

    def cut(self, end: Any, partition: UncutPartition | None = None, **more: Any) -> Claim | None:
        """Cut the first partition that can be cut, up to ``end``."""
        partition = partition or self.partitions()[0]
        session = more.get("session", self.session)
        return chunks.cut(
            self.store, session, self.step_id, self.run.run_id, partition, end, 10, OWNER, LEASE
        )

    def claim(self, session: Session | None = None) -> Claim | None:
        """Claim a PENDING chunk of the step."""
        session = session or self.session
        return chunks.claim(self.store, session, self.step_id, self.run.run_id, OWNER, LEASE)

    def give_back(self, claimed: Claim, **more: Any) -> bool:
        """End the attempt; the chunk waits again."""
        values = {"to_state": "PENDING", "outcome": "GIVEN_BACK", **more}
        return chunks.release(self.session, claimed, **values)

    def finish(self, claimed: Claim, end: Any = None, is_last: bool = True) -> bool:
        """A whole work transaction without effects; False: it was refused and rolled back."""
        work = self.store.work()
        try:
            work.begin("work.begin")
            witness = chunks.witness(work, claimed, OWNER)
            reached = claimed.end if end is None else end
            is_done = chunks.finish(work, claimed, witness, Counts(3, done=3), reached, 0)
            if is_done and claimed.end is None:
                is_done = chunks.advance(work, claimed, reached, is_last=is_last)
            if is_done:
                work.commit("work.commit")
            else:
                work.abandon()
            return is_done
        finally:
            work.close()

    def close_values(self, **more: Any) -> dict[str, Any]:
        """What closing the step as COMPLETED, and the run with it, expects."""
        values = {
            "run_id": self.run.run_id,
            "instance_id": self.run.instance_id,
            "coordination": self.coordination,
            "actor": "tester",
            "run_state": "COMPLETED",
            "kind": None,
            "failure": None,
            "step_id": self.step_id,
            "to_state": "COMPLETED",
            "version": self.step().version,
            "ends_partitions": 1,
            "next_step": None,
            "ends_run": 1,
            "completes": 1,
        }
        return {**values, **more}

    def close(self, **more: Any) -> bool:
        """Close the step."""
        return self.session.once(runs.CLOSE_STEP, self.close_values(**more))

    def shut(self, session: Session | None = None) -> bool:
        """Let no more chunks of the step be claimed."""
        return (session or self.session).once(runs.SHUT_STEP, self.close_values())

    def fail(self) -> bool:
        """Close step and run as FAILED."""
        return self.close(to_state="FAILED", run_state="FAILED", kind="PERMANENT", completes=0)


def scene(
    store: Store,
    session: Session,
    *,
    plans: Sequence[PartitionPlan] = (PartitionPlan("all", 0, 100),),
    order: str = "any",
    steps: Sequence[str] = ("only",),
) -> Scene:
    """A run of a new instance, coordinated, its first step planned."""
    run = created(session, steps)
    coordination = runs.coordinate(session, run, OWNER.node_id, LEASE, "launched")
    assert coordination is not None
    step = progress.steps_of(session, run.instance_id)[0]
    made = Scene(store, session, replace(run, state="RUNNING"), step.step_id, coordination)
    assert plan(made, plans, order)
    return made


def plan(made: Scene, plans: Sequence[PartitionPlan], order: str = "any", version: int = 1) -> bool:
    """Store a plan for the scene's step."""
    return runs.plan_step(
        made.session,
        made.step_id,
        version,
        plans,
        run_order=order,
        pinned=Measure(3),
        run_id=made.run.run_id,
        coordination=made.coordination,
        actor="tester",
        was_pending=True,
    )


def add_pending(made: Scene, count: int) -> list[int]:
    """Chunks that wait to be claimed, as if others had given them back."""
    partition = made.session.fetch("t", select(tables.partition.c.id))[0][0]
    row = {
        "step_id": made.step_id,
        "partition_id": partition,
        "run_id": made.run.run_id,
        "state": "PENDING",
        "start_key": "0",
        "end_key": "1",
        "size": 1,
        "created_at": text(made.session.dialect.now),
    }
    for _ in range(count):
        made.session.change("t", insert(tables.chunk).values(**row))
    found = made.session.fetch("t", select(tables.chunk.c.id).order_by(tables.chunk.c.id))
    return [row[0] for row in found]


def row_of(session: Session, table: Any, row_id: int) -> Any:
    """One row by its id."""
    return session.fetch("t", select(table).where(table.c.id == row_id))[0]


def rows_of(session: Session, table: Any) -> list[Any]:
    """All rows in the order of their ids."""
    return session.fetch("t", select(table).order_by(table.c.id))


def history(session: Session, noun: str) -> list[tuple[str | None, str]]:
    """The transitions written for a noun, oldest first."""
    rows = rows_of(session, tables.event)
    return [(row.before_state, row.after_state) for row in rows if row.noun == noun]


def at_once(url: str, acts: Sequence[Callable[[Store, Session], Answer]]) -> list[Answer]:
    """Run each act in a thread and on a session of its own, all from the same instant on."""
    barrier = threading.Barrier(len(acts))
    answers: list[Any] = [None] * len(acts)

    def run(number: int) -> None:
        own = Store(url)
        session = own.control()
        try:
            session.fetch("t", "SELECT 1")
            barrier.wait(timeout=30)
            answers[number] = acts[number](own, session)
        except BaseException as error:  # noqa: BLE001 - carried to the test's own thread
            answers[number] = error
        finally:
            session.close()
            own.dispose()

    threads = [threading.Thread(target=run, args=(number,)) for number in range(len(acts))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)
    for answer in answers:
        if isinstance(answer, BaseException):
            raise answer
    return answers
