"""Alembic's entry: on a given connection, or offline as SQL text."""

from __future__ import annotations

from alembic import context

from retoma.store.migrate import VERSION_TABLE
from retoma.store.tables import metadata

if context.is_offline_mode():
    context.configure(
        url=context.config.get_main_option("sqlalchemy.url"),
        target_metadata=metadata,
        version_table=VERSION_TABLE,
        literal_binds=True,
        output_buffer=context.config.output_buffer,
    )
    with context.begin_transaction():
        context.run_migrations()
else:
    context.configure(
        connection=context.config.attributes["connection"],
        target_metadata=metadata,
        version_table=VERSION_TABLE,
    )
    with context.begin_transaction():
        context.run_migrations()
