"""A commit whose answer is lost is no unknown state: the chunk's row tells what happened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from retoma.model.status import RunState
from tests.databases import Servers
from tests.engine.lossy_wire import LossyWire
from tests.engine.night import Night
from tests.engine.small_job import CountingWriter, make_job, metadata
from tests.engine.troubles import OtherSession
from tests.store.shared import SharedDatabases


@pytest.fixture(params=["postgres", "mariadb"])
def direct_url(
    request: pytest.FixtureRequest, shared_databases: SharedDatabases, tmp_path: Path
) -> Iterator[str]:
    with shared_databases.url(request.param, tmp_path, metadata) as url:
        yield url


@pytest.fixture
def wire(direct_url: str, servers: Servers) -> Iterator[LossyWire]:
    made = LossyWire(direct_url)
    yield made
    made.close()


@pytest.mark.parametrize("lost", ["answer", "request"])
def test_a_lost_message_around_the_commit_doubles_and_loses_nothing(
    wire: LossyWire, lost: str
) -> None:
    seen: list[str] = []

    def point(name: str) -> None:
        if name == "work.commit" and not seen:
            seen.append(name)
            wire.arm(lost)

    writer = CountingWriter()
    night = Night(wire.url, make_job(writer=writer), point=point)
    try:
        night.seed(["post", "aside", "post"])
        assert night.whole() is RunState.PARTIALLY_COMPLETED
        assert wire.lost.is_set()
        assert len(writer.calls) == (1 if lost == "answer" else 2)
        told = [entry.kind for entry in night.told]
        again = [] if lost == "answer" else ["fail", "invoke"]
        assert told == ["invoke", "unknown", *again, "ok"]
        assert [key for key, _, _ in night.effects()] == ["key 1", "key 3"]
        assert night.faults() == [("2", "SET_ASIDE", "ASKED")]
        assert night.counts()["done"] == 2
        assert night.attempts() == [(1, "COMPLETED")]
        night.prove_history()
    finally:
        night.close()


@pytest.mark.parametrize("when", ["work.commit", "chunk.finish", "chunk.witness.after"])
def test_a_session_that_the_server_ends_is_replaced(direct_url: str, when: str) -> None:
    killed: list[int] = []
    is_postgres = direct_url.startswith("postgres")

    def point(name: str) -> None:
        if name == when and not killed:
            ask = "SELECT pg_backend_pid()" if is_postgres else "SELECT CONNECTION_ID()"
            killed.append(night.sessions.work.connection.exec_driver_sql(ask).scalar_one())
            end = "SELECT pg_terminate_backend(%s)" if is_postgres else "KILL CONNECTION %s"
            other = OtherSession(direct_url)
            other.run(end % killed[0])
            other.close()

    night = Night(direct_url, make_job(), point=point)
    try:
        night.seed(["post"] * 3)
        assert night.whole() is RunState.COMPLETED
        assert killed
        assert len(night.effects()) == 3
        assert night.attempts() == [(1, "COMPLETED")]
        night.prove_history()
    finally:
        night.close()
