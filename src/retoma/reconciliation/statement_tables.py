"""The statement job's own tables: files, sightings of lines, entries, matches and breaks.

`recon_entry` is the one place that keeps an account number in full; everything shown comes from
`account_masked`. A line is stored once an entry (side, natural key, occurrence), and once a sighting
(file, byte offset). Text is compared byte by byte on every database.
"""

from __future__ import annotations

from typing import Final

from sqlalchemy import (
    BigInteger,
    Column,
    Date,
    Engine,
    Index,
    Integer,
    MetaData,
    Table,
    insert,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.schema import CreateIndex, CreateTable

from retoma.reconciliation.column_types import Body, Id, exact_text
from retoma.reconciliation.tables import create_tables, posting_template

STATEMENT: Final = "STATEMENT"
TRANSACTIONS: Final = "TRANSACTIONS"
ENTRY_TYPE: Final = "RECONCILED"
"""The type of the ledger entries that this job makes; a negative amount changes the sides."""

metadata = MetaData()

recon_file = Table(
    "recon_file",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("side", exact_text(12), nullable=False),
    Column("sha256", exact_text(64), nullable=False),
    Column("name", exact_text(255), nullable=False),
    Column("bytes", BigInteger, nullable=False),
    Column("format", exact_text(20), nullable=False),
    Column("movements", BigInteger, nullable=False),
    Column("balances", BigInteger, nullable=False),
    Column("bad_records", BigInteger, nullable=False),
    Column("accounts", Body, nullable=False),  # JSON: declared and computed balances, masked
    Column("warnings", Body, nullable=False),  # JSON: how often each code
    Column("proof", exact_text(20), nullable=False),
    Column("proof_reason", Body, nullable=False),
    Column("state", exact_text(12), nullable=False),  # ACCEPTED, REFUSED (its proof failed)
    Column("first_seen_instance", BigInteger, nullable=False),
    Index("ux_recon_file_sha256", "sha256", "side", unique=True),
)

recon_line = Table(
    "recon_line",
    metadata,
    Column("file_id", BigInteger, primary_key=True, autoincrement=False),
    Column("byte_offset", BigInteger, primary_key=True, autoincrement=False),
    Column("natural_key", exact_text(80), nullable=False),
    Column("occurrence", Integer, nullable=False),
    Column("is_conflict", Integer, nullable=False),
    Index("ix_recon_line_key", "natural_key", "occurrence", "file_id"),
    Index("ix_recon_line_file", "file_id", "natural_key", "byte_offset"),
)

recon_entry = Table(
    "recon_entry",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("side", exact_text(12), nullable=False),
    Column("natural_key", exact_text(80), nullable=False),
    Column("occurrence", Integer, nullable=False),
    Column("account", Body, nullable=False),
    Column("account_masked", exact_text(20), nullable=False),
    Column("match_account", Body),  # the statement's account that `account` stands for
    Column("booking_date", Date, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", exact_text(20), nullable=False),
    Column("match_currency", exact_text(20)),  # what an unnamed currency stands for
    Column("kind", exact_text(12), nullable=False),
    Column("e2e_id", exact_text(100), nullable=False),
    Column("fitid", exact_text(300), nullable=False),
    Column("document_no", exact_text(300), nullable=False),
    Column("description", Body, nullable=False),
    Column("digest", exact_text(32), nullable=False),
    Column("file_id", BigInteger, nullable=False),
    Column("state", exact_text(12), nullable=False),  # OPEN, MATCHED, LINKED, BREAK, IGNORED
    Column("match_id", exact_text(64)),
    Column("first_seen_instance", BigInteger, nullable=False),
    Column("judged_by", BigInteger),  # the instance that last looked for its partner
    Index("ux_recon_entry_key", "natural_key", "occurrence", "side", unique=True),
    Index("ix_recon_entry_e2e", "judged_by", "e2e_id"),
    Index("ix_recon_entry_fitid", "judged_by", "fitid"),
    Index("ix_recon_entry_content", "judged_by", "booking_date", "amount_minor"),
)

recon_match = Table(
    "recon_match",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("match_id", exact_text(64), nullable=False),
    Column("rule", exact_text(30), nullable=False),
    Column("statement_entry_id", BigInteger, nullable=False),
    Column("transaction_entry_id", BigInteger, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", exact_text(20), nullable=False),
    Column("instance_id", BigInteger, nullable=False),
    Index("ux_recon_match_id", "match_id", unique=True),
    Index("ux_recon_match_statement", "statement_entry_id", unique=True),
    Index("ux_recon_match_transaction", "transaction_entry_id", unique=True),
    Index("ix_recon_match_instance", "instance_id", "id"),
)

recon_break = Table(
    "recon_break",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("break_id", exact_text(64), nullable=False),
    Column("type", exact_text(30), nullable=False),
    Column("entry_id", BigInteger, nullable=False),
    Column(
        "other_entry_id", BigInteger
    ),  # the transaction, if it is linked to the statement's line
    Column("side", exact_text(12), nullable=False),
    Column("amount_at_risk_minor", BigInteger, nullable=False),
    Column("currency", exact_text(20), nullable=False),
    Column("booking_date", Date, nullable=False),
    Column("first_seen_instance", BigInteger, nullable=False),
    Column("last_seen_instance", BigInteger, nullable=False),
    Column("state", exact_text(12), nullable=False),  # OPEN, RESOLVED
    Index("ux_recon_break_id", "break_id", unique=True),
    Index("ix_recon_break_entry", "entry_id"),
    Index("ix_recon_break_other", "other_entry_id"),
    Index("ix_recon_break_state", "state", "id"),
)

recon_break_sighting = Table(
    "recon_break_sighting",
    metadata,
    Column("instance_id", BigInteger, primary_key=True, autoincrement=False),
    Column("break_id", exact_text(64), primary_key=True),
)

_TEMPLATE = {
    "entry_type": ENTRY_TYPE,
    "debit_account": "1.1.01 settlement account",
    "credit_account": "1.1.09 items in transit",
    "description": "Statement line reconciled",
}
_ONE_AT_A_TIME = 5_721_604_417_331_903
"""The advisory lock's number: PostgreSQL lets two CREATE … IF NOT EXISTS collide."""


def create_statement_tables(engine: Engine) -> None:
    """Create what is missing: these tables, and the ledger's. Idempotent; what exists stays."""
    create_tables(engine)
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME})"))
        for table in metadata.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                connection.execute(CreateIndex(index, if_not_exists=True))
    known = select(posting_template.c.entry_type).where(posting_template.c.entry_type == ENTRY_TYPE)
    with engine.connect() as connection:
        if connection.execute(known).first() is not None:
            return
    try:
        with engine.begin() as connection:
            connection.execute(insert(posting_template), _TEMPLATE)
    except IntegrityError:
        return  # another process was faster
