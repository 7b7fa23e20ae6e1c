"""Every control table, key and index, as SQLAlchemy Core metadata.

No row that a work transaction writes (attempt, item error) has a foreign key to chunk, step or run:
the check would lock a row that others need. Instants are UTC, in microseconds, by the database's
clock. ``live`` and ``committed`` are 1 or NULL: a unique index over them is a partial unique index
that every database has.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    DateTime,
    Dialect,
    Index,
    Integer,
    MetaData,
    SmallInteger,
    String,
    Table,
    Text,
    UniqueConstraint,
)
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeDecorator, TypeEngine

metadata = MetaData()

Id = BigInteger().with_variant(Integer, "sqlite")
Body = Text().with_variant(
    mysql.MEDIUMTEXT(charset="utf8mb4", collation="utf8mb4_nopad_bin"), "mysql", "mariadb"
)


def name_of(length: int) -> TypeEngine[str]:
    """Text compared byte by byte on every database (MariaDB's default folds case and blanks).

    On PostgreSQL it is plain text: one type for all parameters of a statement.
    """
    exact = mysql.VARCHAR(length, charset="utf8mb4", collation="utf8mb4_nopad_bin")
    return String(length).with_variant(exact, "mysql", "mariadb").with_variant(Text(), "postgresql")


class Instant(TypeDecorator[datetime]):
    """A UTC instant in microseconds: timestamptz, DATETIME(6), or ISO text on SQLite."""

    impl = String(26)
    cache_ok = True

    def load_dialect_impl(self, dialect: Dialect) -> TypeEngine[Any]:
        if dialect.name == "postgresql":
            return dialect.type_descriptor(DateTime(timezone=True))
        if dialect.name in ("mysql", "mariadb"):
            return dialect.type_descriptor(mysql.DATETIME(fsp=6))
        return dialect.type_descriptor(String(26))

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> Any:
        if value is None or dialect.name == "postgresql":
            return value
        plain = value.astimezone(UTC).replace(tzinfo=None)
        return plain if dialect.name in ("mysql", "mariadb") else instant_text(plain)

    def process_result_value(self, value: Any, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        instant: datetime = datetime.fromisoformat(value) if isinstance(value, str) else value
        return instant.replace(tzinfo=UTC) if instant.tzinfo is None else instant.astimezone(UTC)


def instant_text(value: datetime) -> str:
    """An instant as SQLite stores it: fixed width, so that text order is the order of time."""
    return value.isoformat(" ", "microseconds")


def _id() -> Column[int]:
    return Column("id", Id, primary_key=True, autoincrement=True)


def _count(name: str) -> Column[int]:
    return Column(name, BigInteger, nullable=False, server_default="0")


def _flag(name: str, default: str = "0") -> Column[int]:
    return Column(name, SmallInteger, nullable=False, server_default=default)


store_identity = Table(
    "batch_store",
    metadata,
    Column("id", SmallInteger, primary_key=True, autoincrement=False),
    Column("name", name_of(16), nullable=False),
    Column("created_at", Instant, nullable=False),
    _flag("is_production"),
)

instance = Table(
    "batch_instance",
    metadata,
    _id(),
    Column("job_name", name_of(100), nullable=False),
    Column("identity", name_of(64), nullable=False),
    Column("generation", Integer, nullable=False, server_default="1"),
    Column("parameters", Body, nullable=False),
    Column("state", name_of(20), nullable=False),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Column("created_at", Instant, nullable=False),
    Column("completed_at", Instant),
    UniqueConstraint("job_name", "identity", "generation", name="ux_batch_instance_identity"),
)

run = Table(
    "batch_run",
    metadata,
    _id(),
    Column("instance_id", BigInteger, nullable=False),
    Column("job_name", name_of(100), nullable=False),
    Column("launch_token", name_of(32), nullable=False),
    Column("state", name_of(20), nullable=False),
    Column("live", SmallInteger),
    Column("parameters", Body, nullable=False),
    Column("fingerprint", name_of(16), nullable=False),
    Column("actor", name_of(100), nullable=False),
    Column("coordinator", BigInteger),
    Column("coordination_token", name_of(32)),
    Column("coordination_until", Instant),
    Column("failure_kind", name_of(20)),
    Column("failure", Body),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    UniqueConstraint("launch_token", name="ux_batch_run_launch"),
    UniqueConstraint("instance_id", "live", name="ux_batch_run_live"),
    Index("ix_batch_run_live", "live", "id"),
)

step = Table(
    "batch_step",
    metadata,
    _id(),
    Column("instance_id", BigInteger, nullable=False),
    Column("name", name_of(100), nullable=False),
    Column("position", Integer, nullable=False),
    Column("state", name_of(20), nullable=False),
    _flag("accepting"),
    Column("version", BigInteger, nullable=False, server_default="1"),
    _flag("is_planned"),
    Column("pinned_count", BigInteger),
    Column("pinned_version_sum", BigInteger),
    Column("failure_kind", name_of(20)),
    Column("failure", Body),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    UniqueConstraint("instance_id", "name", name="ux_batch_step_name"),
)

partition = Table(
    "batch_partition",
    metadata,
    _id(),
    Column("step_id", BigInteger, nullable=False),
    Column("number", Integer, nullable=False),
    Column("name", name_of(300), nullable=False),
    Column("run_order", name_of(10), nullable=False),
    _flag("is_transferable", "1"),
    Column("preferred_node", BigInteger),
    Column("state", name_of(20), nullable=False),
    Column("low", Body, nullable=False),
    Column("high", Body, nullable=False),
    Column("cut_to", Body, nullable=False),
    _flag("is_cut"),
    Column("live_token", name_of(32)),
    Column("context", Body, nullable=False),
    UniqueConstraint("step_id", "number", name="ux_batch_partition_number"),
    Index("ix_batch_partition_uncut", "step_id", "is_cut", "number"),
)

COUNTS = ("first_reads", "done", "already_done", "filtered", "set_aside", "deferred")

chunk = Table(
    "batch_chunk",
    metadata,
    _id(),
    Column("step_id", BigInteger, nullable=False),
    Column("partition_id", BigInteger, nullable=False),
    Column("run_id", BigInteger, nullable=False),
    Column("state", name_of(20), nullable=False),
    Column("start_key", Body, nullable=False),
    Column("end_key", Body),
    Column("size", Integer, nullable=False),
    Column("fence", BigInteger, nullable=False, server_default="0"),
    Column("token", name_of(32)),
    Column("owner_node", BigInteger),
    Column("owner_slot", Integer),
    Column("owner_pid", BigInteger),
    Column("lease_until", Instant),
    Column("tries", Integer, nullable=False, server_default="0"),
    Column("losses", Integer, nullable=False, server_default="0"),
    Column("retry_at", Instant),
    *(_count(name) for name in COUNTS),
    _count("version_sum"),
    Column("failure_kind", name_of(20)),
    Column("failure", Body),
    Column("created_at", Instant, nullable=False),
    Column("started_at", Instant),
    Column("finished_at", Instant),
    UniqueConstraint("token", name="ux_batch_chunk_token"),
    Index("ix_batch_chunk_state", "step_id", "state", "id"),
    Index("ix_batch_chunk_partition", "partition_id", "state"),
    Index("ix_batch_chunk_owner", "state", "owner_node"),
)

attempt = Table(
    "batch_attempt",
    metadata,
    _id(),
    Column("chunk_id", BigInteger, nullable=False),
    Column("run_id", BigInteger, nullable=False),
    Column("fence", BigInteger, nullable=False),
    Column("committed", SmallInteger),
    Column("outcome", name_of(20), nullable=False),
    Column("failure_kind", name_of(20)),
    Column("failure", Body),
    Column("owner_node", BigInteger),
    Column("owner_slot", Integer),
    Column("ended_at", Instant, nullable=False),
    UniqueConstraint("chunk_id", "fence", name="ux_batch_attempt_fence"),
    UniqueConstraint("chunk_id", "committed", name="ux_batch_attempt_committed"),
)

event = Table(
    "batch_event",
    metadata,
    _id(),
    Column("noun", name_of(20), nullable=False),
    Column("noun_id", BigInteger, nullable=False),
    Column("run_id", BigInteger),
    Column("before_state", name_of(20)),
    Column("after_state", name_of(20), nullable=False),
    Column("actor", name_of(100), nullable=False),
    Column("cause", Body),
    Column("at", Instant, nullable=False),
    Index("ix_batch_event_noun", "noun", "noun_id"),
)

item_error = Table(
    "batch_item_error",
    metadata,
    _id(),
    Column("instance_id", BigInteger, nullable=False),
    Column("run_id", BigInteger, nullable=False),
    Column("job_name", name_of(100), nullable=False),
    Column("step_name", name_of(100), nullable=False),
    Column("chunk_id", BigInteger, nullable=False),
    Column("item_key", name_of(300), nullable=False),
    Column("state", name_of(20), nullable=False),
    Column("kind", name_of(20), nullable=False),
    Column("reason", name_of(60), nullable=False),
    Column("field", name_of(100)),
    Column("message", Body, nullable=False),
    Column("payload", Body, nullable=False),
    Column("due_at", Instant),
    Column("created_at", Instant, nullable=False),
    Index("ix_batch_item_error_instance", "instance_id", "state", "reason"),
    Index("ix_batch_item_error_key", "job_name", "item_key"),
)

node = Table(
    "batch_node",
    metadata,
    _id(),
    Column("name", name_of(200), nullable=False),
    Column("incarnation", name_of(32), nullable=False),
    Column("state", name_of(20), nullable=False),
    Column("slots", Integer, nullable=False),
    Column("code_version", name_of(40), nullable=False),
    Column("host", name_of(200), nullable=False),
    Column("boot_id", name_of(64), nullable=False),
    Column("pid_namespace", name_of(64), nullable=False),
    Column("pid", BigInteger, nullable=False),
    Column("pid_started", name_of(40), nullable=False),
    Column("beat_at", Instant, nullable=False),
    Column("started_at", Instant, nullable=False),
    UniqueConstraint("incarnation", name="ux_batch_node_incarnation"),
    Index("ix_batch_node_state", "state"),
)

request = Table(
    "batch_request",
    metadata,
    _id(),
    Column("verb", name_of(20), nullable=False),
    Column("run_id", BigInteger),
    Column("actor", name_of(100), nullable=False),
    Column("reason", Body, nullable=False),
    Column("created_at", Instant, nullable=False),
    Column("handled_at", Instant),
    Index("ix_batch_request_open", "handled_at", "run_id"),
)
