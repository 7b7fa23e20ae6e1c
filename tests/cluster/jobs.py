"""The job that the fault tests run: its items leave a trace outside the database, and can misbehave.

Each call of the item function appends ``ITEM PID`` to the side file named in ``RETOMA_TEST_TRACE``.
So what was done twice is known from the work itself, not from the tables that are under test.
"""

from __future__ import annotations

import functools
import hashlib
import os
import signal
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Integer,
    MetaData,
    String,
    Table,
    UniqueConstraint,
    func,
    insert,
    select,
)

from retoma import (
    Finding,
    ItemStep,
    Job,
    NotReady,
    Parameter,
    SetAside,
    StepContext,
    TableReader,
    TableWriter,
)

metadata = MetaData()
SOURCE = Table(
    "source_item",
    metadata,
    Column("id", Integer, primary_key=True),
    Column("amount", BigInteger, nullable=False),
    Column("version", Integer, nullable=False),
)
EFFECT = Table(
    "effect",
    metadata,
    Column("effect_key", String(60), nullable=False),
    Column("item_id", Integer, nullable=False),
    Column("amount", BigInteger, nullable=False),
    Column("digest", String(64), nullable=False),
    UniqueConstraint("effect_key", name="ux_effect_key"),
)
COLUMNS = ("effect_key", "item_id", "amount", "digest")


def amount_of(item: int) -> int:
    """Some amount in minor units; the same item has always the same."""
    return item * 7919 % 100_003


def outcome_of(item: int) -> str:
    """What becomes of an item, by its number alone."""
    return {7: "set_aside", 9: "filtered", 11: "deferred"}.get(item % 20, "done")


def expected_counts(items: int) -> dict[str, int]:
    """The counts of an undisturbed run over the items 1 to ``items``."""
    found = {"first_reads": items, "done": 0, "already_done": 0}
    found |= {"filtered": 0, "set_aside": 0, "deferred": 0}
    for item in range(1, items + 1):
        found[outcome_of(item)] += 1
    return found


def expected_effects(items: int, day: str) -> dict[str, tuple[int, int, str]]:
    """Key → (item, amount, digest) of an undisturbed run."""
    rows = [_row(item, amount_of(item), day) for item in range(1, items + 1)]
    return {key: tuple(rest) for (item, (key, *rest)) in enumerate(rows, 1) if _is_done(item)}


def _is_done(item: int) -> bool:
    return outcome_of(item) == "done"


def _row(item: int, amount: int, day: str) -> tuple[str, int, int, str]:
    return (f"{day}:{item}", item, amount, hashlib.sha256(f"{item}:{amount}".encode()).hexdigest())


def fill(engine: Engine, items: int) -> None:
    """The tables of the job, with the items 1 to ``items`` in the source."""
    metadata.create_all(engine)
    rows = [{"id": n, "amount": amount_of(n), "version": n % 5} for n in range(1, items + 1)]
    with engine.begin() as connection:
        connection.execute(insert(SOURCE), rows)


@functools.cache
def _trace() -> int:
    path = os.environ["RETOMA_TEST_TRACE"]
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)


@functools.cache
def _troubles() -> Mapping[int, str]:
    """``RETOMA_TEST_TROUBLE`` is ``ITEM=KIND`` pairs with commas between them."""
    pairs = os.environ.get("RETOMA_TEST_TROUBLE", "")
    parts = (part.partition("=") for part in pairs.split(",") if part)
    return {int(item): kind for item, _, kind in parts}


def _misbehave(kind: str) -> None:
    if kind == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)
    gate = Path(os.environ["RETOMA_TEST_TRACE"] + ".gate")
    if kind == "gate":  # wait while the file is there
        while gate.exists():
            time.sleep(0.01)
    once = gate.with_suffix(f".{kind}")
    if kind in ("sleep_once", "spin_once"):
        try:
            os.close(os.open(once, os.O_CREAT | os.O_EXCL))
        except FileExistsError:
            return
        while kind == "spin_once":
            sum(range(10**9))  # holds the interpreter's lock for seconds on end
        while True:
            time.sleep(60)


def work(item: Any, context: StepContext) -> Any:
    """Leave a trace, take some time, misbehave where the test wants it, then decide."""
    os.write(_trace(), f"{item.id} {os.getpid()}\n".encode())
    time.sleep(float(os.environ.get("RETOMA_TEST_ITEM_SECONDS", "0.005")))
    if item.id in _troubles():
        _misbehave(_troubles()[item.id])
    outcome = outcome_of(item.id)
    if outcome == "set_aside":
        return SetAside("BAD", f"item {item.id} is bad", "amount")
    if outcome == "deferred":
        return NotReady("LATER", f"item {item.id} is not ready")
    if outcome == "filtered":
        return None
    return _row(item.id, item.amount, str(context.parameters["day"]))


def audit(connection: Any, context: StepContext) -> Finding:
    """Compares the effects with the source, row by row, in plain Python."""
    items = int(connection.execute(select(func.count()).select_from(SOURCE)).scalar_one())
    rows = connection.execute(select(*(EFFECT.c[name] for name in COLUMNS))).all()
    day = str(context.parameters["day"])
    wanted = expected_effects(items, day)
    found = [tuple(row) for row in rows if row[0].startswith(f"{day}:")]
    keys = {row[0] for row in found}
    difference = sum(row[2] for row in found) - sum(row[1] for row in wanted.values())
    return Finding(
        expected=len(wanted),
        found=len(found),
        missing=len(wanted.keys() - keys),
        duplicate=len(found) - len(keys),
        unexpected=sum(1 for key, *rest in found if wanted.get(key) != tuple(rest)),
        sum_difference=f"{difference / 100:.2f}",
    )


JOB = Job(
    name="faulty",
    parameters=(Parameter(name="day"),),
    steps=(
        ItemStep(
            name="work",
            reader=TableReader(
                query=lambda context: select(SOURCE), key=SOURCE.c.id, version=SOURCE.c.version
            ),
            process=work,
            writer=TableWriter(
                table=EFFECT, columns=COLUMNS, keys=(("effect_key",),), digest="digest"
            ),
            chunk_size=int(os.environ.get("RETOMA_TEST_CHUNK", "10")),
            partitions=4,
            attempt_deadline_seconds=float(os.environ.get("RETOMA_TEST_DEADLINE", "60")),
        ),
    ),
    audit=audit,
    prepare=metadata.create_all,
)
