"""Plan once, shut, close, end: each act of the coordinator names what it expects to find."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from sqlalchemy import select

from retoma.model.items import PartitionPlan
from retoma.store import chunks, nodes, progress, requests, runs, tables
from retoma.store.session import Session
from retoma.store.store import Store
from tests.store.scene import (
    LEASE,
    Scene,
    add_pending,
    at_once,
    created,
    history,
    launch_row,
    plan,
    row_of,
    rows_of,
    scene,
)

TWO = (PartitionPlan("a", 0, 50, {"file": "x"}), PartitionPlan("b", 50, 100))


def test_one_of_eight_gets_the_coordination_of_a_run(store_url: str, session: Session) -> None:
    run = created(session)

    def act(store: Store, own: Session) -> str | None:
        return runs.coordinate(own, run, 1, LEASE, "launched")

    tokens = [token for token in at_once(store_url, [act] * 8) if token]
    assert len(tokens) == 1
    now = runs.get(session, run.run_id)
    assert now is not None
    assert (now.state, now.coordination_token, now.is_coordinated) == ("RUNNING", tokens[0], True)
    assert history(session, "run") == [(None, "CREATED"), ("CREATED", "RUNNING")]


def test_only_the_holder_renews_or_puts_down_the_coordination(session: Session) -> None:
    run = created(session)
    token = runs.coordinate(session, run, 1, LEASE, "launched")
    values = {"run_id": run.run_id, "token": token, "lease_seconds": LEASE}
    assert session.once(runs.RENEW_COORDINATION, values)
    assert not session.once(runs.RENEW_COORDINATION, {**values, "token": "other"})
    seen = runs.get(session, run.run_id)
    assert seen is not None
    taken = runs.coordinate(session, seen, 2, LEASE, "node 1 fell silent")
    assert taken not in (None, token)
    assert not session.once(runs.RENEW_COORDINATION, values)
    assert not session.once(runs.PUT_DOWN, values)
    assert session.once(runs.PUT_DOWN, {**values, "token": taken})
    put_down = runs.get(session, run.run_id)
    assert put_down is not None
    assert (put_down.coordinator, put_down.is_coordinated) == (None, False)


def test_a_lease_in_the_past_or_too_far_ahead_coordinates_nothing(session: Session) -> None:
    run = created(session)
    token = runs.coordinate(session, run, 1, -1.0, "launched")
    for lease, expected in ((-1.0, False), (LEASE, True), (3600.0, False)):
        values = {"run_id": run.run_id, "token": token, "lease_seconds": lease}
        assert session.once(runs.RENEW_COORDINATION, values)
        now = runs.get(session, run.run_id)
        assert now is not None
        assert now.is_coordinated is expected


def test_a_plan_is_stored_once(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=TWO)
    assert not plan(made, (PartitionPlan("late", 0, 1),), version=2)
    assert not plan(made, (PartitionPlan("late", 0, 1),), version=1)
    stored = rows_of(session, tables.partition)
    assert [(p.number, p.name, p.low, p.high, p.cut_to, p.context) for p in stored] == [
        (0, "a", "0", "50", "0", '{"file":"x"}'),
        (1, "b", "50", "100", "50", "{}"),
    ]
    assert (made.step().pinned_count, made.step().accepting) == (3, 1)
    assert history(session, "step") == [("PENDING", "RUNNING")]


def test_a_plan_of_many_hundred_slices_is_stored_whole(store: Store) -> None:
    session = store.control()
    many = [PartitionPlan(f"{n}", n, n + 1) for n in range(450)]
    scene(store, session, plans=many)
    number = tables.partition.c.number
    stored = session.fetch("t", select(number, tables.partition.c.low).order_by(number))
    assert [tuple(row) for row in stored] == [(n, str(n)) for n in range(450)]


def test_a_shut_step_gives_no_more_chunks(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=TWO)
    add_pending(made, 1)
    assert made.shut()
    assert made.claim() is None
    assert made.cut(50) is None
    assert not made.shut()
    assert progress.open_steps(session, ["job"]) == []


ACTS: dict[str, Callable[[Scene], bool]] = {
    "plan": lambda made: plan(made, TWO),
    "shut": lambda made: made.shut(),
    "close": lambda made: made.close(),
}


@pytest.mark.parametrize("act", ACTS)
def test_who_has_lost_the_run_does_nothing_for_it(store: Store, act: str) -> None:
    session = store.control()
    made = scene(store, session, plans=TWO if act == "shut" else ())
    if act == "plan":
        unplan(made)
    made.coordination = "lost to another"
    assert not ACTS[act](made)


@pytest.mark.parametrize("act", ACTS)
def test_who_is_losing_the_run_waits_and_then_does_nothing_for_it(
    server_store: Store, act: str
) -> None:
    session = server_store.control()
    made = scene(server_store, session, plans=TWO if act == "shut" else ())
    if act == "plan":
        unplan(made)
    taker = server_store.work()
    taker.begin("work.begin")
    taken = "UPDATE batch_run SET coordination_token = 'other' WHERE id = :id"
    taker.change("t", taken, {"id": made.run.run_id})
    answers: list[bool] = []
    loser = threading.Thread(target=lambda: answers.append(ACTS[act](made)))
    loser.start()
    loser.join(timeout=0.3)
    assert loser.is_alive()
    taker.commit("work.commit")
    loser.join(timeout=10)
    assert answers == [False]


def unplan(made: Scene) -> None:
    """The step as it was before its plan was stored."""
    made.session.change(
        "t",
        "UPDATE batch_step SET is_planned = 0, accepting = 0, version = 1 WHERE id = :id",
        {"id": made.step_id},
    )


def test_nothing_is_claimed_or_cut_for_a_run_that_has_ended(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=TWO)
    add_pending(made, 1)
    partition = made.partitions()[0]
    assert made.close(to_state="STOPPED", run_state="STOPPED", completes=0, ends_partitions=0)
    assert runs.relaunch(session, launch_row(instance_id=made.run.instance_id))
    assert made.claim() is None
    assert made.cut(50, partition) is None


@pytest.mark.parametrize("backend_waits", ["shut", "close"])
def test_shut_and_close_wait_for_a_claim_that_is_under_way(
    server_store: Store, backend_waits: str
) -> None:
    session = server_store.control()
    made = scene(server_store, session, plans=())
    claimer = server_store.work()
    claimer.begin("work.begin")
    share = "FOR SHARE" if server_store.dialect.name == "postgresql" else "LOCK IN SHARE MODE"
    where = "SELECT id FROM batch_step WHERE id = :id "
    claimer.fetch("t", where + share, {"id": made.step_id})
    answers: list[bool] = []
    values = made.close_values()
    operation = runs.SHUT_STEP if backend_waits == "shut" else runs.CLOSE_STEP
    waiter = threading.Thread(target=lambda: answers.append(session.once(operation, values)))
    waiter.start()
    waiter.join(timeout=0.3)
    assert waiter.is_alive()
    assert answers == []
    claimer.commit("work.commit")
    waiter.join(timeout=10)
    assert answers == [True]


@pytest.mark.parametrize("act", ["claim", "cut", "cut strictly", "exhaust"])
def test_whoever_takes_work_waits_for_a_stop_that_is_under_way(
    server_store: Store, act: str
) -> None:
    session = server_store.control()
    made = scene(server_store, session, order="strict" if act == "cut strictly" else "any")
    partition = made.partitions()[0]
    if act == "claim":
        add_pending(made, 1)
    acts: dict[str, Callable[[], Any]] = {
        "claim": made.claim,
        "cut": lambda: made.cut(50, partition),
        "cut strictly": lambda: made.cut(None, partition),
        "exhaust": lambda: (
            chunks.exhaust(session, made.step_id, made.run.run_id, partition, "tester") or None
        ),
    }
    stopper = server_store.work()
    stopper.begin("work.begin")
    stopper.change("t", "UPDATE batch_step SET accepting = 0")
    answers: list[Any] = []
    taker = threading.Thread(target=lambda: answers.append(acts[act]()))
    taker.start()
    taker.join(timeout=0.3)
    assert taker.is_alive()
    stopper.commit("work.commit")
    taker.join(timeout=10)
    assert answers == [None]
    assert made.partitions() == [partition]


def test_a_step_is_not_closed_while_a_chunk_is_running(store: Store) -> None:
    session = store.control()
    made = scene(store, session)
    claimed = made.cut(100)
    assert claimed is not None
    assert not made.close()
    assert (made.step().state, history(session, "run")[-1]) == ("RUNNING", ("CREATED", "RUNNING"))
    assert made.finish(claimed)
    assert made.close()


def test_a_step_is_not_closed_if_it_moved_or_another_coordinates(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=())
    assert not made.close(version=made.step().version - 1)
    assert not made.close(coordination="other")
    assert made.step().state == "RUNNING"
    assert made.close()
    assert not made.close()


def test_closing_the_last_step_ends_run_and_instance_and_answers_requests(store: Store) -> None:
    session = store.control()
    made = scene(store, session)
    claimed = made.cut(100)
    assert claimed is not None
    assert made.finish(claimed)
    requests.ask_to_stop(session, made.run.run_id, "tester", "why not")
    assert made.close()
    run = runs.get(session, made.run.run_id)
    assert run is not None
    assert (run.state, run.is_live, run.instance_state) == ("COMPLETED", False, "COMPLETED")
    assert (run.coordinator, run.coordination_token, run.stop_requested) == (None, None, False)
    assert history(session, "run")[-1] == ("RUNNING", "COMPLETED")
    assert history(session, "step") == [("PENDING", "RUNNING"), ("RUNNING", "COMPLETED")]
    assert history(session, "partition") == [("PENDING", "CLAIMED"), ("CLAIMED", "COMPLETED")]


def test_closing_a_step_opens_the_next_in_the_same_transaction(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=(), steps=("first", "second"))
    second = progress.steps_of(session, made.run.instance_id)[1]
    assert made.close(next_step=second.step_id, ends_run=0, completes=0)
    now = row_of(session, tables.step, second.step_id)
    assert (now.state, now.accepting, now.is_planned) == ("RUNNING", 0, 0)
    run = runs.get(session, made.run.run_id)
    assert run is not None
    assert (run.state, run.is_live, run.instance_state) == ("RUNNING", True, "OPEN")
    # Within one transaction PostgreSQL is free in the order of ids.
    assert set(history(session, "step")[-2:]) == {("RUNNING", "COMPLETED"), ("PENDING", "RUNNING")}


def test_a_partition_with_a_failed_chunk_fails_and_the_others_complete(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=TWO)
    good, bad = made.cut(50), made.cut(100)
    assert good is not None
    assert bad is not None
    assert made.finish(good)
    made.give_back(bad, to_state="FAILED", outcome="FAILED")
    assert made.fail()
    assert [p.state for p in rows_of(session, tables.partition)] == ["COMPLETED", "FAILED"]
    assert sorted(history(session, "partition")[-2:]) == [
        ("CLAIMED", "COMPLETED"),
        ("CLAIMED", "FAILED"),
    ]
    run = runs.get(session, made.run.run_id)
    assert run is not None
    assert (run.state, run.failure_kind, run.instance_state) == ("FAILED", "PERMANENT", "OPEN")


def test_a_run_ends_once_and_only_by_its_coordinator(store: Store) -> None:
    session = store.control()
    made = scene(store, session)
    values = made.close_values(run_state="STOPPED", completes=0)
    assert not session.once(runs.END_RUN, {**values, "coordination": "other"})
    assert session.once(runs.END_RUN, values)
    assert not session.once(runs.END_RUN, values)
    assert history(session, "run") == [
        (None, "CREATED"),
        ("CREATED", "RUNNING"),
        ("RUNNING", "STOPPED"),
    ]
    assert row_of(session, tables.instance, made.run.instance_id).state == "OPEN"
    assert runs.live(session) == []


def test_a_stop_request_is_seen_with_the_run_until_it_is_answered(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=())
    other = created(session, identity="b" * 64)
    requests.ask_to_stop(session, made.run.run_id, "ana", "maintenance")
    seen = {run.run_id: run.stop_requested for run in runs.live(session)}
    assert seen == {made.run.run_id: True, other.run_id: False}
    stored = rows_of(session, tables.request)[0]
    assert (stored.verb, stored.actor, stored.reason) == ("stop", "ana", "maintenance")
    assert stored.handled_at is None
    assert made.close()
    assert rows_of(session, tables.request)[0].handled_at is not None


def test_a_coordination_seen_long_ago_takes_nothing(session: Session) -> None:
    run = created(session)
    assert runs.coordinate(session, run, 1, LEASE, "launched")
    assert runs.coordinate(session, run, 2, LEASE, "stale view") is None
    stale = replace(run, state="RUNNING")
    assert runs.coordinate(session, stale, 2, LEASE, "stale view") is None
    assert nodes.live_slots(session) == 0
