"""Look into one file without storing anything: what it is, what it holds, whether it proves."""

from pathlib import Path
from typing import Final

from retoma.reconciliation.money import format_amount
from retoma.reconciliation.reading import open_statement, read_records
from retoma.reconciliation.report import ReportBuilder
from retoma.reconciliation.statement import (
    AccountReport,
    FileReport,
    StatementError,
    WarningCount,
)

EXIT_READ: Final = 0
EXIT_USAGE: Final = 2
EXIT_REFUSED: Final = 4
EXIT_READ_WITH_WARNINGS: Final = 5

_USAGE: Final = frozenset(("NO_SUCH_FILE", "IS_DIRECTORY", "NOT_A_FILE"))


def inspect_file(path: Path | str) -> dict[str, object]:
    """Read a whole file and return the report on it, as JSON values.

    `exit_code` in it is 0 for a file read, 5 with warnings or bad records, 4 if its proof fails.
    `lines` counts every record found: those read, by kind, and those that could not be read.
    Money is written as text with its decimals ('-12.34'), by currency. Raises StatementError if
    the file is refused.
    """
    return report_as_json(read_report(path))


def read_report(path: Path | str) -> FileReport:
    """Read a whole file and return the report on it; raises StatementError."""
    opened = open_statement(path)
    builder = ReportBuilder(opened.report_header)
    for record, _ in read_records(path, opened.start, builder.note):
        builder.record(record)
    return builder.finish()


def exit_code_of(error: StatementError) -> int:
    """Return 2 for a path that names no file, else 4: refused."""
    return EXIT_USAGE if error.code in _USAGE else EXIT_REFUSED


def report_as_json(report: FileReport) -> dict[str, object]:
    """Return the report as JSON values; account numbers are masked."""
    read = report.movements + report.balances + report.empty_records
    return {
        "format": report.header.format,
        "bytes": report.header.bytes,
        "sha256": report.header.sha256,
        "encoding": report.header.encoding,
        "statements": report.statements,
        "lines": {
            "count": read + report.bad_records,
            "read": read,
            "set_aside": report.bad_records,
            "empty": report.empty_records,
            "by_kind": {"MOVEMENT": report.movements, "BALANCE": report.balances},
        },
        "bad_records": {
            "count": report.bad_records,
            "examples": [
                {"line": bad.line_no, "offset": bad.offset, "code": bad.code,
                 "field": bad.field, "message": bad.message}
                for bad in report.bad_examples
            ],
        },
        "sums": {code: format_amount(total, code) for code, total in report.sums.items()},
        "accounts": [_account(one) for one in report.accounts],
        "accounts_left_out": report.accounts_left_out,
        "warnings": {one.code: _warning(one) for one in report.warnings},
        "proof": report.proof,
        "proof_reason": report.reason,
        "exit_code": _exit_code(report),
    }  # fmt: skip


def error_as_json(error: StatementError) -> dict[str, object]:
    """Return a refusal as JSON values."""
    return {
        "code": error.code,
        "message": error.message,
        "line": error.line,
        "offset": error.offset,
        "field": error.field,
        "hint": error.hint,
        "exit_code": exit_code_of(error),
    }


def _exit_code(report: FileReport) -> int:
    if report.proof == "FAILED":
        return EXIT_REFUSED
    return EXIT_READ_WITH_WARNINGS if report.warnings or report.bad_records else EXIT_READ


def _account(one: AccountReport) -> dict[str, object]:
    def money(minor: int | None) -> str | None:
        return None if minor is None else format_amount(minor, one.currency)

    return {
        "statement": one.statement,
        "account": one.account,
        "currency": one.currency,
        "movements": one.movements,
        "balances": one.balances,
        "sum": money(one.sum_minor),
        "declared_opening": money(one.opening_minor),
        "declared_closing": money(one.closing_minor),
        "computed_closing": money(one.computed_closing_minor),
        "proof": one.proof,
        "proof_reason": one.reason,
    }


def _warning(one: WarningCount) -> dict[str, object]:
    return {
        "count": one.count,
        "message": one.examples[0].message,
        "examples": [
            {"line": example.line, "offset": example.offset, "field": example.field}
            for example in one.examples
        ],
    }
