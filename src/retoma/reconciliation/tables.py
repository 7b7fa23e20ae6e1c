"""The posting job's own tables: the source as received, the ledger, and the generator's labels.

The source keeps what came in, however hostile: amounts and payloads are text here, and nothing but
the posting rules decides what they mean. Text is compared byte by byte on every database.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    Connection,
    Date,
    Engine,
    Index,
    MetaData,
    Table,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.exc import IntegrityError
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.schema import CreateIndex, CreateTable
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement

from retoma.reconciliation.column_types import Body, Id, Instant, exact_text

metadata = MetaData()

SUSPENSE = "9.9.01 suspense"
"""The account of both lines of an entry whose type has no template."""


class _UtcNow(FunctionElement[Any]):
    """The database's instant in UTC, whatever zone the session that inserts is in."""

    inherit_cache = True


_UTC_NOW = {
    "postgresql": "CURRENT_TIMESTAMP",  # an instant with its zone
    "sqlite": "(strftime('%Y-%m-%d %H:%M:%f000', 'now'))",
    "mysql": "(UTC_TIMESTAMP(6))",
    "mariadb": "(UTC_TIMESTAMP(6))",
}


@compiles(_UtcNow)
def _utc_now(_element: _UtcNow, compiler: SQLCompiler, **_options: Any) -> str:
    return _UTC_NOW[compiler.dialect.name]


financial_transaction = Table(
    "financial_transaction",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=False),
    Column("external_id", exact_text(100)),
    Column("business_date", Date, nullable=False),
    Column("amount", exact_text(200)),
    Column("currency", exact_text(20)),
    Column("document", exact_text(100)),
    Column("status", exact_text(100)),
    Column("entry_type", exact_text(100)),
    Column("payload", Body),
    Column("version", BigInteger, nullable=False, server_default="1"),
    Index("ix_financial_transaction_date", "business_date", "id"),
    Index("ix_financial_transaction_external", "external_id", "id"),
)

ledger_entry = Table(
    "ledger_entry",
    metadata,
    Column("id", Id, primary_key=True, autoincrement=True),
    Column("job", exact_text(100), nullable=False),
    Column("idempotency_key", exact_text(100), nullable=False),
    Column("transaction_id", BigInteger, nullable=False),
    Column("reference_date", Date, nullable=False),
    Column("amount_minor", BigInteger, nullable=False),
    Column("currency", exact_text(20), nullable=False),
    Column("entry_type", exact_text(100), nullable=False),
    Column("digest", exact_text(32), nullable=False),
    Column("created_at", Instant, nullable=False, server_default=_UtcNow()),
    Index("ux_ledger_entry_key", "idempotency_key", unique=True),
    # An item deferred on one day and read again on the next has two keys; this one it has once.
    Index("ux_ledger_entry_transaction", "transaction_id", "job", unique=True),
    Index("ix_ledger_entry_date", "reference_date"),
)

posting_template = Table(
    "posting_template",
    metadata,
    Column("entry_type", exact_text(100), primary_key=True),
    Column("debit_account", exact_text(100), nullable=False),
    Column("credit_account", exact_text(100), nullable=False),
    Column("description", exact_text(200), nullable=False),
)

synthetic_truth = Table(
    "synthetic_truth",
    metadata,
    Column("transaction_id", Id, primary_key=True, autoincrement=False),
    Column("outcome", exact_text(60), nullable=False),
    Column("amount_minor", BigInteger),
)

_LINE = """
SELECT e.id AS entry_id, {number} AS line_no, COALESCE(p.{account}, '{suspense}') AS account,
       CASE WHEN {sign}e.amount_minor > 0 THEN {sign}e.amount_minor ELSE 0 END AS debit_minor,
       CASE WHEN {sign}e.amount_minor < 0 THEN {opposite}e.amount_minor ELSE 0 END AS credit_minor,
       e.currency AS currency
  FROM ledger_entry e LEFT JOIN posting_template p ON p.entry_type = e.entry_type"""

# Two lines an entry, always balanced; a negative amount changes the sides.
_LINES = " UNION ALL ".join(
    (
        _LINE.format(number=1, account="debit_account", suspense=SUSPENSE, sign="", opposite="-"),
        _LINE.format(number=2, account="credit_account", suspense=SUSPENSE, sign="-", opposite=""),
    )
)

_TEMPLATES = (
    ("PIX_IN", "1.1.01 settlement account", "2.1.01 customer deposits", "Pix received"),
    ("PIX_OUT", "2.1.01 customer deposits", "1.1.01 settlement account", "Pix sent"),
    ("TED_IN", "1.1.02 reserve account", "2.1.01 customer deposits", "Wire received"),
    ("TED_OUT", "2.1.01 customer deposits", "1.1.02 reserve account", "Wire sent"),
    ("CARD", "1.2.01 card receivables", "2.1.02 merchants payable", "Card sale"),
    ("BOLETO", "1.1.01 settlement account", "2.1.03 slips payable", "Payment slip settled"),
    ("FEE", "2.1.01 customer deposits", "4.1.01 fee income", "Service fee"),
    ("REFUND", "2.1.02 merchants payable", "1.2.01 card receivables", "Card refund"),
)
ENTRY_TYPES = tuple(template[0] for template in _TEMPLATES)
"""The entry types that have a template from the start."""

_ONE_AT_A_TIME = 5_721_604_417_331_902
"""The advisory lock's number: PostgreSQL lets two CREATE … IF NOT EXISTS collide."""


def create_tables(engine: Engine) -> None:
    """Create what is missing: tables, indexes, the view ``ledger_line`` and the templates.

    Idempotent, and safe if several processes do it at once; what exists is left as it is.
    """
    with engine.begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(text(f"SELECT pg_advisory_xact_lock({_ONE_AT_A_TIME})"))
        for table in metadata.sorted_tables:
            connection.execute(CreateTable(table, if_not_exists=True))
            for index in sorted(table.indexes, key=lambda index: str(index.name)):
                connection.execute(CreateIndex(index, if_not_exists=True))
        _create_view(connection)
    _add_templates(engine)


def _create_view(connection: Connection) -> None:
    if connection.dialect.name != "postgresql":
        connection.exec_driver_sql(f"CREATE VIEW IF NOT EXISTS ledger_line AS {_LINES}")
    elif not inspect(connection).has_table("ledger_line"):
        connection.exec_driver_sql(f"CREATE VIEW ledger_line AS {_LINES}")


def _add_templates(engine: Engine) -> None:
    with engine.connect() as connection:
        known = set(connection.execute(select(posting_template.c.entry_type)).scalars())
    names = [column.name for column in posting_template.columns]
    for template in _TEMPLATES:
        if template[0] in known:
            continue
        try:
            with engine.begin() as connection:
                connection.execute(
                    insert(posting_template), dict(zip(names, template, strict=True))
                )
        except IntegrityError:
            continue  # another process was faster
