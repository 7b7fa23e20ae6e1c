"""What must be true of a database before a night relies on it."""

from __future__ import annotations

from typing import Any

from retoma.store import migrate
from retoma.store.store import Store

_FACTS = {
    "postgresql": (
        ("version", "SHOW server_version_num", lambda v: int(v) >= 140000),
        ("writable", "SELECT CASE WHEN pg_is_in_recovery() THEN 'standby' ELSE 'primary' END",
         lambda v: v == "primary"),
        ("fsync", "SHOW fsync", lambda v: v == "on"),
        ("full_page_writes", "SHOW full_page_writes", lambda v: v == "on"),
        ("synchronous_commit", "SHOW synchronous_commit", lambda v: v != "off"),
        ("encoding", "SHOW server_encoding", lambda v: v == "UTF8"),
    ),
    "mariadb": (
        ("version", "SELECT VERSION()", lambda v: "MariaDB" in v),
        ("writable", "SELECT @@global.read_only", lambda v: str(v) in ("0", "OFF")),
        ("innodb_flush_log_at_trx_commit", "SELECT @@global.innodb_flush_log_at_trx_commit",
         lambda v: str(v) == "1"),
        ("strict mode", "SELECT @@session.sql_mode", lambda v: "STRICT" in v),
        ("isolation", "SELECT @@session.tx_isolation", lambda v: v == "READ-COMMITTED"),
        ("no galera", "SELECT @@global.wsrep_on", lambda v: str(v) in ("0", "OFF")),
    ),
    "sqlite": (
        ("journal", "PRAGMA journal_mode", lambda v: v == "wal"),
        ("synchronous", "PRAGMA synchronous", lambda v: int(v) >= 2),
        ("integrity", "PRAGMA quick_check", lambda v: v == "ok"),
    ),
}  # fmt: skip


def check_all(store: Store) -> list[dict[str, Any]]:
    """One finding a check: ``check``, ``ok``, ``detail``. Raises if the database does not answer."""
    version = migrate.current_version(store)
    findings: list[dict[str, Any]] = [
        {"check": "connection", "ok": True, "detail": store.shown_url},
        {
            "check": "control tables",
            "ok": version in (None, migrate.HEAD),
            "detail": f"revision {version or 'none yet: the first command creates them'}",
        },
    ]
    session = store.control()
    try:
        for name, question, is_good in _FACTS[store.dialect.name]:
            value = session.fetch("doctor", question)[0][0]
            findings.append({"check": name, "ok": bool(is_good(value)), "detail": str(value)})
    finally:
        session.close()
    return findings
