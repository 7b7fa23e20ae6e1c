"""What a session does when the server has ended its connection: nothing may stay half said."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, create_engine, text
from sqlalchemy.exc import DBAPIError

from retoma.engine.launch import launch
from retoma.model.job import Job, TaskStep
from retoma.store import runs
from retoma.store.session import Session
from retoma.store.store import Store

NAME = {"postgresql": "SELECT pg_backend_pid()", "mariadb": "SELECT CONNECTION_ID()"}
END = {"postgresql": "SELECT pg_terminate_backend(:id)", "mariadb": "KILL CONNECTION :id"}
JOB = Job(name="lost", steps=(TaskStep(name="only", work=lambda _tx, _context: None),))


def end_connection(store: Store, session: Session) -> None:
    """End the session's connection from outside, as a restart of the server does."""
    number = session.fetch("t", NAME[store.dialect.name])[0][0]
    other: Engine = create_engine(store.url)
    with other.connect() as connection:
        connection.execute(text(END[store.dialect.name]), {"id": number})
    other.dispose()


def test_a_control_session_that_comes_back_commits_each_statement_again(
    server_store: Store,
) -> None:
    session = server_store.control()
    end_connection(server_store, session)
    with pytest.raises(DBAPIError):
        session.fetch("t", "SELECT 1")
    session.abandon()
    session.change("t", "DELETE FROM batch_store")
    with server_store.engine.connect() as other:
        assert other.execute(text("SELECT count(*) FROM batch_store")).scalar() == 0
    session.close()


def test_a_launch_whose_connection_breaks_is_seen_by_the_others(server_store: Store) -> None:
    broken: list[str] = []

    def point(name: str) -> None:
        if name == "run.create" and not broken:
            broken.append(name)
            end_connection(server_store, session)

    session = server_store.control()
    session._point = point
    launched = launch(session, JOB, {}, "test")
    other = server_store.control()
    assert [run.run_id for run in runs.live(other)] == [launched.run.run_id]
    other.close()
    session.close()
    assert broken


def test_a_work_session_that_comes_back_has_nothing_set(server_store: Store) -> None:
    session = server_store.work()
    session.begin("t")
    server_store.dialect.enter_work(session, "rt:test:1:1", 30.0)
    end_connection(server_store, session)
    with pytest.raises(DBAPIError):
        session.fetch("t", "SELECT 1")
    session.abandon()
    session.begin("t")
    assert session.settings == {}
    assert session.connection.get_execution_options()["retoma_work"]
    session.abandon()
    session.close()
