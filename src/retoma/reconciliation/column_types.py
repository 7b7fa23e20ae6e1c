"""Column types of the application's tables: the same text and numbers on every database."""

from __future__ import annotations

from sqlalchemy import BigInteger, DateTime, Integer, String, Text
from sqlalchemy.dialects import mysql
from sqlalchemy.types import TypeEngine

_EXACT = {"charset": "utf8mb4", "collation": "utf8mb4_nopad_bin"}

Id = BigInteger().with_variant(Integer, "sqlite")
Body = Text().with_variant(mysql.MEDIUMTEXT(**_EXACT), "mysql", "mariadb")
Instant = DateTime(timezone=True).with_variant(mysql.DATETIME(fsp=6), "mysql", "mariadb")


def exact_text(length: int) -> TypeEngine[str]:
    """Text compared byte by byte; MariaDB's default would fold case, accents and trailing blanks."""
    exact = mysql.VARCHAR(length, **_EXACT)
    return String(length).with_variant(exact, "mysql", "mariadb").with_variant(Text(), "postgresql")
