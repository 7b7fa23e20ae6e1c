"""A control transaction is one round trip, and leaves all of itself behind or nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import event

from retoma.model.items import PartitionPlan
from retoma.store import chunks, nodes, runs, tables
from retoma.store.dialects.contract import Guarded
from retoma.store.dialects.mariadb import MariaDb
from retoma.store.dialects.postgres import Postgres
from retoma.store.session import Session
from retoma.store.store import Store
from tests.store.scene import (
    LEASE,
    OWNER,
    Scene,
    add_pending,
    created,
    launch_row,
    plan,
    rows_of,
    scene,
)
from tests.store.test_nodes import NODE

TWO = (PartitionPlan("a", 0, 50), PartitionPlan("b", 50, 100))


class Counting(Session):
    """A session that notes how many statements each control transaction sends."""

    def __init__(self, store: Store) -> None:
        plain = store.control()
        super().__init__(plain.connection, store.dialect)
        self.sent: list[str] = []
        self.trips: list[tuple[str, int]] = []

        @event.listens_for(plain.connection, "before_cursor_execute")
        def note(connection: Any, cursor: Any, statement: str, *rest: Any) -> None:
            self.sent.append(statement)

    def once(self, operation: Guarded, parameters: Any) -> bool:
        before = len(self.sent)
        try:
            return super().once(operation, parameters)
        finally:
            self.trips.append((operation.name, len(self.sent) - before))


def all_operations() -> set[str]:
    fixed = [
        value
        for module in (chunks, runs, nodes)
        for value in vars(module).values()
        if isinstance(value, Guarded)
    ]
    return {operation.name for operation in fixed} | {"run.create", "step.plan"}


def do_everything(store: Store, session: Session) -> None:
    """Every control transaction of the protocol, at least once."""
    made = scene(store, session, plans=TWO)
    first = made.cut(25)
    assert first is not None
    assert chunks.renew(session, first.token, LEASE)
    assert made.give_back(first, to_state="FAILED", outcome="FAILED")
    rest = made.partitions()[0]
    assert chunks.exhaust(session, made.step_id, made.run.run_id, rest, "tester")
    add_pending(made, 2)
    claimed, lost = made.claim(), made.claim()
    assert claimed is not None
    assert lost is not None
    assert made.finish(claimed)
    assert chunks.split(session, lost, 0, "lost", OWNER)
    values = {"run_id": made.run.run_id, "token": made.coordination, "lease_seconds": LEASE}
    assert session.once(runs.RENEW_COORDINATION, values)
    assert session.once(runs.PUT_DOWN, values)
    assert made.shut()
    assert made.fail()
    assert runs.relaunch(session, launch_row(instance_id=made.run.instance_id))
    other = created(session, identity="b" * 64)
    token = runs.coordinate(session, other, 1, LEASE, "launched")
    ends = made.close_values(run_id=other.run_id, instance_id=other.instance_id, coordination=token)
    assert session.once(runs.END_RUN, ends)
    node = nodes.register(session, NODE)
    assert nodes.beat(session, node)
    assert nodes.change(session, node, "ACTIVE", "LEFT", "tester", "left")


def cut_strictly(store: Store, session: Session) -> None:
    run = created(session, identity="c" * 64)
    token = runs.coordinate(session, run, 1, LEASE, "launched")
    step = session.fetch(
        "t", "SELECT id FROM batch_step WHERE instance_id = :id", {"id": run.instance_id}
    )
    made = Scene(store, session, run, step[0][0], str(token))
    assert plan(made, TWO, "strict")
    assert made.cut(None) is not None


def test_each_control_transaction_is_one_statement(server_store: Store) -> None:
    session = Counting(server_store)
    do_everything(server_store, session)
    cut_strictly(server_store, session)
    assert {name for name, _ in session.trips} == all_operations()
    assert [(name, count) for name, count in session.trips if count != 1] == []


def test_on_sqlite_each_one_holds_the_write_lock_from_begin_to_end(
    shared_databases: Any, tmp_path: Any
) -> None:
    with shared_databases.url("sqlite", tmp_path) as url:
        store = Store(url)
        session = Counting(store)
        do_everything(store, session)
        cut_strictly(store, session)
        assert {name for name, _ in session.trips} == all_operations()
        words = [text.split()[0] + text.partition("BEGIN")[2] for text in session.sent]
        begins = [n for n, word in enumerate(words) if word.startswith("BEGIN")]
        assert len(begins) == len(session.trips)
        assert {words[n] for n in begins} == {"BEGIN IMMEDIATE"}
        assert sum(word in ("COMMIT", "ROLLBACK") for word in words) == len(begins)
        session.close()
        store.dispose()


def coordinate(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    values = {"run_id": made.run.run_id, "before": "RUNNING", "seen": made.coordination}
    values |= {"token": "t" * 32, "node": 9, "lease_seconds": LEASE, "cause": "x", "actor": None}
    return runs.COORDINATE, values


def cut(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    partition = made.partitions()[0]
    values = {"token": "t" * 32, "node": 1, "slot": 1, "pid": 1, "lease_seconds": LEASE}
    values |= {"step_id": made.step_id, "run_id": made.run.run_id, "size": 1, "is_cut": 0}
    values |= {"partition_id": partition.partition_id, "seen": "0", "start_key": "0"}
    return chunks.CUT, {**values, "end_key": "10", "is_first": 1, "actor": None}


def release(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    add_pending(made, 1)
    claimed = made.claim()
    assert claimed is not None
    values = {"chunk_id": claimed.chunk_id, "run_id": 1, "fence": 1, "token": claimed.token}
    values |= {"to_state": "PENDING", "outcome": None, "kind": None, "failure": None, "tries": 1}
    return chunks.RELEASE, {**values, "losses": 0, "delay_seconds": 1.0, "node": 1, "slot": 1}


def split(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    _, values = release(made)
    return chunks.SPLIT, {**values, "step_id": made.step_id, "middle": "1"}


def close(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    return runs.CLOSE_STEP, made.close_values(actor=None)


def end(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    return runs.END_RUN, made.close_values(actor=None)


def relaunch(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    assert made.fail()
    row = launch_row(instance_id=made.run.instance_id, actor=None, cause="x")
    return runs.RELAUNCH, row


def node(made: Scene) -> tuple[Guarded, dict[str, Any]]:
    number = nodes.register(made.session, NODE)
    values = {"node": number, "before": "ACTIVE", "after": "LEFT", "actor": None, "cause": "x"}
    return nodes.CHANGE, values


@pytest.mark.parametrize(
    "made_ready", [coordinate, cut, release, split, close, end, relaunch, node]
)
def test_a_control_transaction_that_fails_half_way_leaves_nothing(
    store: Store, made_ready: Callable[[Scene], tuple[Guarded, dict[str, Any]]]
) -> None:
    session = store.control()
    made = scene(store, session)
    operation, values = made_ready(made)  # its history row has no actor, which is refused
    before = {table.name: rows_of(session, table) for table in tables.metadata.sorted_tables}
    with pytest.raises(Exception) as caught:
        session.once(operation, values)
    assert store.kind_of(caught.value) == "INVALID_ITEM"
    fresh = store.control()
    after = {table.name: rows_of(fresh, table) for table in tables.metadata.sorted_tables}
    assert after == before
    good = {name: "tester" if name in ("actor", "outcome") else v for name, v in values.items()}
    assert fresh.once(operation, good)


def test_a_claim_skips_what_others_have_locked_and_shares_the_step() -> None:
    for dialect, shared in ((Postgres(), "FOR SHARE"), (MariaDb(), "LOCK IN SHARE MODE")):
        text = dialect._fold(chunks.CLAIM)
        assert "FOR UPDATE SKIP LOCKED" in text
        assert shared in text
        assert "FOR UPDATE SKIP LOCKED" in dialect._fold(chunks.RENEW)
        assert shared in dialect._fold(chunks.CUT)


def test_a_claim_takes_the_next_chunk_when_another_session_holds_the_first(
    server_store: Store,
) -> None:
    made = scene(server_store, server_store.control())
    first, second = add_pending(made, 2)
    holder = server_store.work()
    holder.begin("work.begin")
    holder.fetch("t", "SELECT id FROM batch_chunk WHERE id = :id FOR UPDATE", {"id": first})
    claimed = made.claim()
    assert claimed is not None
    assert claimed.chunk_id == second
    assert made.claim() is None
    holder.abandon()
    freed = made.claim()
    assert freed is not None
    assert freed.chunk_id == first


def test_rows_of_a_work_transaction_reference_nothing() -> None:
    assert not tables.attempt.foreign_keys
    assert not tables.item_error.foreign_keys


def test_committing_work_waits_for_nobody_who_looks_at_run_or_step(server_store: Store) -> None:
    made = scene(server_store, server_store.control())
    claimed = made.cut(100)
    assert claimed is not None
    holder = server_store.work()
    holder.begin("work.begin")
    for table, key in (("batch_run", made.run.run_id), ("batch_step", made.step_id)):
        holder.fetch("t", f"SELECT id FROM {table} WHERE id = :id FOR UPDATE", {"id": key})
    assert made.finish(claimed)  # it would meet the lock timeout if it needed one of them
    holder.abandon()
    assert OWNER.node_id == rows_of(made.session, tables.attempt)[0].owner_node
