"""An identity has one instance, an instance one live run, however many launch it at once."""

from __future__ import annotations

from sqlalchemy import update

from retoma.engine.launch import Launched, launch
from retoma.model.items import PartitionPlan
from retoma.model.job import Job, TaskStep
from retoma.model.parameters import Parameter
from retoma.store import chunks, progress, runs, tables
from retoma.store.session import Session
from retoma.store.store import Store
from tests.store.scene import at_once, created, history, launch_row, row_of, rows_of, scene

JOB = Job(
    name="job",
    steps=(TaskStep(name="first", work=lambda tx, c: None), TaskStep(name="second", work=print)),
    parameters=(Parameter(name="day"),),
)


def test_a_launch_stores_instance_run_steps_and_history(session: Session) -> None:
    run = created(session, ("first", "second"))
    assert (run.state, run.is_live, run.instance_state) == ("CREATED", True, "OPEN")
    steps = progress.steps_of(session, run.instance_id)
    assert [(s.name, s.position, s.state, s.accepting) for s in steps] == [
        ("first", 0, "PENDING", False),
        ("second", 1, "PENDING", False),
    ]
    assert history(session, "run") == [(None, "CREATED")]
    assert run.stop_requested is False


def test_an_identity_is_created_only_once(session: Session) -> None:
    created(session)
    assert not runs.create_instance(session, launch_row(), ("only",))
    assert len(rows_of(session, tables.instance)) == 1
    assert len(rows_of(session, tables.run)) == 1
    assert len(rows_of(session, tables.step)) == 1


def test_other_parameters_are_another_instance(session: Session) -> None:
    first = created(session, identity="a" * 64)
    second = created(session, identity="b" * 64)
    assert first.instance_id != second.instance_id


def test_eight_launchers_at_once_find_the_same_run(store_url: str, session: Session) -> None:
    def act(store: Store, own: Session) -> tuple[int, Launched]:
        found = launch(own, JOB, {"day": "1"}, "tester")
        return found.run.run_id, found.found

    answers = at_once(store_url, [act] * 8)
    assert len({run_id for run_id, _ in answers}) == 1
    assert sorted(found for _, found in answers) == ["CREATED"] + ["LIVE"] * 7
    assert len(rows_of(session, tables.instance)) == 1
    assert history(session, "run") == [(None, "CREATED")]


def test_eight_relaunches_at_once_make_one_live_run(store_url: str, store: Store) -> None:
    session = store.control()
    made = scene(store, session)
    assert made.fail()

    def act(own_store: Store, own: Session) -> bool:
        try:
            return runs.relaunch(own, launch_row(instance_id=made.run.instance_id))
        except Exception as error:
            if store.kind_of(error) not in ("DUPLICATE", "TRANSIENT"):
                raise
            return False

    answers = at_once(store_url, [act] * 8)
    assert answers.count(True) == 1
    found = rows_of(session, tables.run)
    assert [run.live for run in found] == [None, 1]


def test_a_relaunch_makes_failed_chunks_wait_again_with_all_their_tries(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=(PartitionPlan("a", 0, 5), PartitionPlan("b", 5, 9)))
    good, bad = made.cut(5), made.cut(9)
    assert good is not None
    assert bad is not None
    assert made.finish(good)
    assert chunks.release(
        session, bad, to_state="FAILED", outcome="FAILED", kind="PERMANENT", failure="no", tries=5
    )
    assert made.fail()
    assert [p.state for p in rows_of(session, tables.partition)] == ["COMPLETED", "FAILED"]

    assert runs.relaunch(session, launch_row(instance_id=made.run.instance_id))
    chunk = row_of(session, tables.chunk, bad.chunk_id)
    assert (chunk.state, chunk.tries, chunk.losses) == ("PENDING", 0, 0)
    assert row_of(session, tables.chunk, good.chunk_id).state == "COMPLETED"
    step = made.step()
    assert (step.state, step.accepting, step.failure) == ("RUNNING", 1, None)
    assert [p.state for p in rows_of(session, tables.partition)] == ["COMPLETED", "CLAIMED"]
    assert made.claim() is None, "for the run that has ended"
    made.run = runs.live(session)[0]
    again = made.claim()
    assert again is not None
    assert (again.chunk_id, again.fence) == (bad.chunk_id, bad.fence + 1)


def test_a_relaunch_writes_the_transition_of_run_step_and_partition(store: Store) -> None:
    session = store.control()
    made = scene(store, session)
    bad = made.cut(100)
    assert bad is not None
    made.give_back(bad, to_state="FAILED", outcome="FAILED")
    assert made.fail()
    assert runs.relaunch(session, launch_row(instance_id=made.run.instance_id))
    assert history(session, "run")[-1] == (None, "CREATED")
    assert history(session, "step")[-1] == ("FAILED", "RUNNING")
    assert history(session, "partition")[-1] == ("FAILED", "CLAIMED")


def test_a_relaunch_is_refused_while_a_run_is_live_and_after_completion(store: Store) -> None:
    session = store.control()
    made = scene(store, session, plans=())
    again = launch_row(instance_id=made.run.instance_id)
    assert not runs.relaunch(session, again)
    assert made.close()
    assert not runs.relaunch(session, again)
    session.change("t", update(tables.instance).values(state="ABANDONED"))
    assert not runs.relaunch(session, again)
    assert len(rows_of(session, tables.run)) == 1
