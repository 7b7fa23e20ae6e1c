"""The control tables of the first release."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

from retoma.store import tables

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def _batch_attempt() -> None:
    op.create_table(
        "batch_attempt",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("chunk_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("fence", sa.BigInteger(), nullable=False),
        sa.Column("committed", sa.SmallInteger(), nullable=True),
        sa.Column("outcome", tables.name_of(20), nullable=False),
        sa.Column("failure_kind", tables.name_of(20), nullable=True),
        sa.Column("failure", tables.Body, nullable=True),
        sa.Column("owner_node", sa.BigInteger(), nullable=True),
        sa.Column("owner_slot", sa.Integer(), nullable=True),
        sa.Column("ended_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("chunk_id", "committed", name="ux_batch_attempt_committed"),
        sa.UniqueConstraint("chunk_id", "fence", name="ux_batch_attempt_fence"),
    )


def _batch_chunk() -> None:
    op.create_table(
        "batch_chunk",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("partition_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("start_key", tables.Body, nullable=False),
        sa.Column("end_key", tables.Body, nullable=True),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("fence", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("token", tables.name_of(32), nullable=True),
        sa.Column("owner_node", sa.BigInteger(), nullable=True),
        sa.Column("owner_slot", sa.Integer(), nullable=True),
        sa.Column("owner_pid", sa.BigInteger(), nullable=True),
        sa.Column("lease_until", tables.Instant(), nullable=True),
        sa.Column("tries", sa.Integer(), server_default="0", nullable=False),
        sa.Column("losses", sa.Integer(), server_default="0", nullable=False),
        sa.Column("retry_at", tables.Instant(), nullable=True),
        sa.Column("first_reads", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("already_done", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("filtered", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("set_aside", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("deferred", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("version_sum", sa.BigInteger(), server_default="0", nullable=False),
        sa.Column("failure_kind", tables.name_of(20), nullable=True),
        sa.Column("failure", tables.Body, nullable=True),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("started_at", tables.Instant(), nullable=True),
        sa.Column("finished_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("token", name="ux_batch_chunk_token"),
    )
    op.create_index("ix_batch_chunk_owner", "batch_chunk", ["state", "owner_node"], unique=False)
    op.create_index(
        "ix_batch_chunk_partition", "batch_chunk", ["partition_id", "state"], unique=False
    )
    op.create_index("ix_batch_chunk_state", "batch_chunk", ["step_id", "state", "id"], unique=False)


def _batch_event() -> None:
    op.create_table(
        "batch_event",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("noun", tables.name_of(20), nullable=False),
        sa.Column("noun_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("before_state", tables.name_of(20), nullable=True),
        sa.Column("after_state", tables.name_of(20), nullable=False),
        sa.Column("actor", tables.name_of(100), nullable=False),
        sa.Column("cause", tables.Body, nullable=True),
        sa.Column("at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index("ix_batch_event_noun", "batch_event", ["noun", "noun_id"], unique=False)


def _batch_instance() -> None:
    op.create_table(
        "batch_instance",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("job_name", tables.name_of(100), nullable=False),
        sa.Column("identity", tables.name_of(64), nullable=False),
        sa.Column("generation", sa.Integer(), server_default="1", nullable=False),
        sa.Column("parameters", tables.Body, nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("completed_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint(
            "job_name", "identity", "generation", name="ux_batch_instance_identity"
        ),
    )


def _batch_item_error() -> None:
    op.create_table(
        "batch_item_error",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("instance_id", sa.BigInteger(), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=False),
        sa.Column("job_name", tables.name_of(100), nullable=False),
        sa.Column("step_name", tables.name_of(100), nullable=False),
        sa.Column("chunk_id", sa.BigInteger(), nullable=False),
        sa.Column("item_key", tables.name_of(300), nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("kind", tables.name_of(20), nullable=False),
        sa.Column("reason", tables.name_of(60), nullable=False),
        sa.Column("field", tables.name_of(100), nullable=True),
        sa.Column("message", tables.Body, nullable=False),
        sa.Column("payload", tables.Body, nullable=False),
        sa.Column("due_at", tables.Instant(), nullable=True),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_batch_item_error_instance",
        "batch_item_error",
        ["instance_id", "state", "reason"],
        unique=False,
    )
    op.create_index(
        "ix_batch_item_error_key", "batch_item_error", ["job_name", "item_key"], unique=False
    )


def _batch_node() -> None:
    op.create_table(
        "batch_node",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("name", tables.name_of(200), nullable=False),
        sa.Column("incarnation", tables.name_of(32), nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("slots", sa.Integer(), nullable=False),
        sa.Column("code_version", tables.name_of(40), nullable=False),
        sa.Column("host", tables.name_of(200), nullable=False),
        sa.Column("boot_id", tables.name_of(64), nullable=False),
        sa.Column("pid_namespace", tables.name_of(64), nullable=False),
        sa.Column("pid", sa.BigInteger(), nullable=False),
        sa.Column("pid_started", tables.name_of(40), nullable=False),
        sa.Column("beat_at", tables.Instant(), nullable=False),
        sa.Column("started_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("incarnation", name="ux_batch_node_incarnation"),
    )
    op.create_index("ix_batch_node_state", "batch_node", ["state"], unique=False)


def _batch_partition() -> None:
    op.create_table(
        "batch_partition",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("step_id", sa.BigInteger(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("name", tables.name_of(300), nullable=False),
        sa.Column("run_order", tables.name_of(10), nullable=False),
        sa.Column("is_transferable", sa.SmallInteger(), server_default="1", nullable=False),
        sa.Column("preferred_node", sa.BigInteger(), nullable=True),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("low", tables.Body, nullable=False),
        sa.Column("high", tables.Body, nullable=False),
        sa.Column("cut_to", tables.Body, nullable=False),
        sa.Column("is_cut", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("live_token", tables.name_of(32), nullable=True),
        sa.Column("context", tables.Body, nullable=False),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("step_id", "number", name="ux_batch_partition_number"),
    )
    op.create_index(
        "ix_batch_partition_uncut", "batch_partition", ["step_id", "is_cut", "number"], unique=False
    )


def _batch_request() -> None:
    op.create_table(
        "batch_request",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("verb", tables.name_of(20), nullable=False),
        sa.Column("run_id", sa.BigInteger(), nullable=True),
        sa.Column("actor", tables.name_of(100), nullable=False),
        sa.Column("reason", tables.Body, nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("handled_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
    )
    op.create_index(
        "ix_batch_request_open", "batch_request", ["handled_at", "run_id"], unique=False
    )


def _batch_run() -> None:
    op.create_table(
        "batch_run",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("instance_id", sa.BigInteger(), nullable=False),
        sa.Column("job_name", tables.name_of(100), nullable=False),
        sa.Column("launch_token", tables.name_of(32), nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("live", sa.SmallInteger(), nullable=True),
        sa.Column("parameters", tables.Body, nullable=False),
        sa.Column("fingerprint", tables.name_of(16), nullable=False),
        sa.Column("actor", tables.name_of(100), nullable=False),
        sa.Column("coordinator", sa.BigInteger(), nullable=True),
        sa.Column("coordination_token", tables.name_of(32), nullable=True),
        sa.Column("coordination_until", tables.Instant(), nullable=True),
        sa.Column("failure_kind", tables.name_of(20), nullable=True),
        sa.Column("failure", tables.Body, nullable=True),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.Column("started_at", tables.Instant(), nullable=True),
        sa.Column("finished_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("instance_id", "live", name="ux_batch_run_live"),
        sa.UniqueConstraint("launch_token", name="ux_batch_run_launch"),
    )
    op.create_index("ix_batch_run_live", "batch_run", ["live", "id"], unique=False)


def _batch_step() -> None:
    op.create_table(
        "batch_step",
        sa.Column("id", tables.Id, autoincrement=True, nullable=False),
        sa.Column("instance_id", sa.BigInteger(), nullable=False),
        sa.Column("name", tables.name_of(100), nullable=False),
        sa.Column("position", sa.Integer(), nullable=False),
        sa.Column("state", tables.name_of(20), nullable=False),
        sa.Column("accepting", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("version", sa.BigInteger(), server_default="1", nullable=False),
        sa.Column("is_planned", sa.SmallInteger(), server_default="0", nullable=False),
        sa.Column("pinned_count", sa.BigInteger(), nullable=True),
        sa.Column("pinned_version_sum", sa.BigInteger(), nullable=True),
        sa.Column("failure_kind", tables.name_of(20), nullable=True),
        sa.Column("failure", tables.Body, nullable=True),
        sa.Column("started_at", tables.Instant(), nullable=True),
        sa.Column("finished_at", tables.Instant(), nullable=True),
        sa.PrimaryKeyConstraint("id"),
        sa.UniqueConstraint("instance_id", "name", name="ux_batch_step_name"),
    )


def _batch_store() -> None:
    op.create_table(
        "batch_store",
        sa.Column("id", sa.SmallInteger(), autoincrement=False, nullable=False),
        sa.Column("name", tables.name_of(16), nullable=False),
        sa.Column("created_at", tables.Instant(), nullable=False),
        sa.PrimaryKeyConstraint("id"),
    )


def upgrade() -> None:
    _batch_attempt()
    _batch_chunk()
    _batch_event()
    _batch_instance()
    _batch_item_error()
    _batch_node()
    _batch_partition()
    _batch_request()
    _batch_run()
    _batch_step()
    _batch_store()


def downgrade() -> None:
    op.drop_table("batch_store")
    op.drop_table("batch_step")
    op.drop_table("batch_run")
    op.drop_table("batch_request")
    op.drop_table("batch_partition")
    op.drop_table("batch_node")
    op.drop_table("batch_item_error")
    op.drop_table("batch_instance")
    op.drop_table("batch_event")
    op.drop_table("batch_chunk")
    op.drop_table("batch_attempt")
