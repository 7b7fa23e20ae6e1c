"""The synthetic files of these tests, and how tests read a file."""

from __future__ import annotations

from pathlib import Path

from retoma.reconciliation.reading import iterate
from retoma.reconciliation.statement import BadRecord, Record, StatementLine

FIXTURES = Path(__file__).parent / "fixtures"
TWO_ACCOUNTS = FIXTURES / "two_accounts_and_a_card.ofx"
ONE_LINE = FIXTURES / "one_line.ofx"
PROVEN = FIXTURES / "proven.ofx"
RUNNING = FIXTURES / "running_balance.csv"
TRANSACTIONS = FIXTURES / "transactions.csv"
ALL = (TWO_ACCOUNTS, ONE_LINE, PROVEN, RUNNING, TRANSACTIONS)


def records(path: Path) -> list[Record]:
    return [record for record, _ in iterate(path)]


def lines(path: Path) -> list[StatementLine]:
    return [record for record in records(path) if isinstance(record, StatementLine)]


def bad(path: Path) -> list[BadRecord]:
    return [record for record in records(path) if isinstance(record, BadRecord)]


def write(folder: Path, content: bytes | str, name: str = "file") -> Path:
    path = folder / name
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def ofx(transactions: str, *, currency: str = "BRL", after: str = "") -> str:
    """A small OFX of one account around the given transactions."""
    return (
        "OFXHEADER:100\n\n<OFX><BANKMSGSRSV1><STMTTRNRS><STMTRS>"
        f"<CURDEF>{currency}<BANKACCTFROM><BANKID>0999<ACCTID>60006</BANKACCTFROM>"
        f"<BANKTRANLIST>{transactions}</BANKTRANLIST>{after}"
        "</STMTRS></STMTTRNRS></BANKMSGSRSV1></OFX>\n"
    )


def trn(amount: str = "-1.00", day: str = "20260801", fitid: str = "1", memo: str = "X") -> str:
    return (
        f"<STMTTRN><TRNTYPE>OTHER<DTPOSTED>{day}<TRNAMT>{amount}"
        f"<FITID>{fitid}<MEMO>{memo}</STMTTRN>\n"
    )
