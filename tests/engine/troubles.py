"""Writers that meet real trouble: locks, deadlocks, full disks, code that swallows an error."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import create_engine

from retoma.model.items import StepContext, Transaction, Written
from retoma.store.store import normal_url
from tests.engine.small_job import WRITER

GATE_ROWS = 200


@dataclass
class Hooked:
    """The small job's writer with a hook before and one after it, each called with the transaction."""

    before: Callable[[Any], None] = lambda tx: None
    after: Callable[[Any], None] = lambda tx: None
    calls: int = 0

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        self.calls += 1
        self.before(tx)
        written = WRITER.write(tx, context, rows, carefully=carefully)
        self.after(tx)
        return written


@dataclass
class OtherSession:
    """A second connection with a transaction of its own."""

    url: str
    engine: Any = field(init=False)
    connection: Any = field(init=False)

    def __post_init__(self) -> None:
        self.engine = create_engine(normal_url(self.url), isolation_level="AUTOCOMMIT")
        self.connection = self.engine.connect()

    def run(self, *statements: str) -> Any:
        """Run statements; what the last one answers, if it answers."""
        answer = None
        for statement in statements:
            result = self.connection.exec_driver_sql(statement)
            answer = result.fetchall() if result.returns_rows else None
        return answer

    def close(self) -> None:
        """Roll back and leave."""
        self.connection.invalidate()
        self.connection.close()
        self.engine.dispose()


def make_gate(night: Any) -> None:
    """A table with rows to quarrel about."""
    night.change("DROP TABLE IF EXISTS gate")
    night.change("CREATE TABLE gate (id INTEGER PRIMARY KEY, n INTEGER NOT NULL)")
    values = ", ".join(f"({n}, 0)" for n in range(1, GATE_ROWS + 1))
    night.change(f"INSERT INTO gate VALUES {values}")


def lose_a_deadlock(url: str, tx: Any) -> BaseException | None:
    """Make ``tx`` the victim of a real deadlock; the error that the database raised in it.

    The other session has changed far more rows, so that ours is the cheaper one to roll back.
    """
    other = OtherSession(url)
    other.run("BEGIN", "UPDATE gate SET n = n + 1 WHERE id > 1")
    tx.change("t", "UPDATE gate SET n = n + 1 WHERE id = 1")

    def want() -> None:
        try:
            other.run("UPDATE gate SET n = n + 1 WHERE id = 1")
        finally:
            other.close()

    thread = threading.Thread(target=want)
    thread.start()
    try:
        _wait_until_blocked(url)
        tx.change("t", "UPDATE gate SET n = n + 1 WHERE id = 2")
    except Exception as error:  # noqa: BLE001 - returned to the caller
        return error
    finally:
        thread.join(timeout=20)
    return None


def _wait_until_blocked(url: str) -> None:
    watcher = OtherSession(url)
    pause = threading.Event()
    for _ in range(500):
        waiting = watcher.run(
            "SELECT count(*) FROM information_schema.innodb_trx WHERE trx_state = 'LOCK WAIT'"
        )
        if waiting[0][0]:
            break
        pause.wait(0.02)
    watcher.close()


def fill_the_disk(tx: Any) -> BaseException | None:
    """Let a real SQLite run into its size limit; the error that it raised. It rolls back by itself."""
    pages = tx.fetch("t", "PRAGMA page_count")[0][0]
    tx.fetch("t", f"PRAGMA max_page_count = {pages + 3}")
    try:
        for _ in range(50):
            tx.change("t", "INSERT INTO ballast VALUES (zeroblob(20000))")
    except Exception as error:  # noqa: BLE001 - returned to the caller
        return error
    finally:
        tx.connection.connection.driver_connection.execute("PRAGMA max_page_count = 1000000")
    return None
