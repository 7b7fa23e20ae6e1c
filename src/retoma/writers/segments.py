"""A file that holds exactly what was committed: written in segments, put together at the end.

A transaction can't take back what was written to a file. So no chunk writes to a file that another
one writes to: each attempt writes a *segment*, a new file under a random name, and brings it to the
disk before its row is inserted in the chunk's own transaction. What has no row was never written:
the rest of an attempt that died, or of a frozen one that came back too late, which can't harm
anybody. Several slots write side by side. At the end a task step puts the segments together in the
order of the input and gives the whole its name by one rename.
"""

from __future__ import annotations

import hashlib
import os
import secrets
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from sqlalchemy import (
    BigInteger,
    Column,
    Engine,
    Index,
    Integer,
    MetaData,
    String,
    Table,
    Text,
    select,
    text,
)
from sqlalchemy.schema import CreateIndex, CreateTable

from retoma.errors import NeedsPerson, TransientFailure, UsageError, WitnessGone
from retoma.model.items import StepContext, Transaction

_ONE_AT_A_TIME = 7_362_519_406

metadata = MetaData()
segment = Table(
    "file_segment",
    metadata,
    Column("token", String(32), primary_key=True),
    Column("instance_id", BigInteger, nullable=False),
    Column("step_name", String(100), nullable=False),
    Column("path", Text, nullable=False),
    Column("part", Integer, nullable=False),  # the partition's number
    Column("place", BigInteger, nullable=False),  # of the chunk within its partition
    Column("row_count", BigInteger, nullable=False),
    Column("size_bytes", BigInteger, nullable=False),
    Column("sha256", String(64), nullable=False),
    Index("ix_file_segment_instance", "instance_id"),
)
_COLUMNS = tuple(segment.c.keys())

# The chunk whose transaction this is: the witness stands, and the finish is still to come. Of every
# other chunk the two become true together.
_CHUNK = (
    "SELECT c.id, p.number, c.start_key FROM batch_chunk c"
    " JOIN batch_step s ON s.id = c.step_id JOIN batch_partition p ON p.id = c.partition_id"
    " JOIN batch_attempt a ON a.chunk_id = c.id AND a.fence = c.fence AND a.committed = 1"
    " WHERE s.instance_id = :instance_id AND s.name = :step_name AND c.state = 'RUNNING'"
)


@dataclass(frozen=True, slots=True)
class Segment:
    """A committed segment: its file's name, and what is in it."""

    token: str
    step_name: str
    row_count: int
    size_bytes: int
    sha256: str


def prepare(engine: Engine) -> None:
    """Create the table ``file_segment`` where it is missing; several processes may do it at once."""
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME})"))
        connection.execute(CreateTable(segment, if_not_exists=True))
        for index in segment.indexes:
            connection.execute(CreateIndex(index, if_not_exists=True))


def target(path: str | os.PathLike[str]) -> Path:
    """The path, if every process means the same by it and its folder is there.

    Raises ``UsageError`` or ``NeedsPerson``.
    """
    found = Path(path)
    if not found.is_absolute():
        raise UsageError(
            f"the file {str(path)!r} would lie elsewhere for each process: name it by its whole path"
        )
    if not found.parent.is_dir():
        raise NeedsPerson(f"{found}: its folder is not there; make it, and repeat the same command")
    return found


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Trouble with the disk as an error with its kind: ``NeedsPerson`` or ``TransientFailure``."""
    try:
        yield
    except PermissionError as error:
        raise NeedsPerson(f"{error.filename or path}: {error.strerror}") from error
    except OSError as error:
        raise TransientFailure(f"{error.filename or path}: {error.strerror}") from error


def folder_of(tx: Transaction, context: StepContext, path: Path) -> Path:
    """Where the segments of this instance lie: beside the file, by the store's name and the instance."""
    store = tx.fetch("writer.store", "SELECT name FROM batch_store")[0][0]
    return path.with_name(f".{path.name}.{store}-{context.instance_id}.parts")


def write_segment(
    tx: Transaction, context: StepContext, path: Path, content: bytes, row_count: int
) -> None:
    """Write one chunk's bytes to the disk, and their row within its transaction."""
    values = {"instance_id": context.instance_id, "step_name": context.step}
    found = tx.fetch("writer.chunk", _CHUNK, values)
    if len(found) != 1:
        raise WitnessGone(f"step {context.step}: the transaction has lost its first row")
    chunk_id, part, start_key = found[0]
    token = secrets.token_hex(16)
    folder = folder_of(tx, context, path)
    folder.mkdir(exist_ok=True)
    write_file(folder / token, [content])
    sync_folder(folder)
    sync_folder(path.parent)
    # A chunk that was split has halves with later ids: where keys are integers, they tell the order.
    place = int(start_key) if start_key.lstrip("-").isdigit() else chunk_id
    digest = hashlib.sha256(content).hexdigest()
    row = (token, *values.values(), str(path), part, place, row_count, len(content), digest)
    tx.insert(segment, _COLUMNS, [row])


def committed(tx: Transaction, context: StepContext, path: Path) -> list[Segment]:
    """The segments of a file in the order of the input."""
    c = segment.c
    statement = (
        select(c.token, c.step_name, c.row_count, c.size_bytes, c.sha256)
        .where(c.instance_id == context.instance_id, c.path == str(path))
        .order_by(c.part, c.place)
    )
    return [Segment(*row) for row in tx.fetch("writer.segments", statement)]


def write_file(path: Path, blocks: Iterable[bytes]) -> None:
    """A new file, on the disk when this returns."""
    try:
        with path.open("xb") as file:
            file.writelines(blocks)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        path.unlink(missing_ok=True)
        raise


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
