"""The files of a reconciliation: checked before anything is stored, and pinned by their hash."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from retoma import ExitCode, RetomaError, UsageError
from retoma.reconciliation.inspect import EXIT_USAGE, exit_code_of
from retoma.reconciliation.reading import StatementFile, open_statement
from retoma.reconciliation.statement import StatementError
from retoma.reconciliation.statement_tables import STATEMENT, TRANSACTIONS


class RefusedFile(RetomaError):
    """A file that is not read, that is another one now, or whose own totals do not hold."""

    exit_code = ExitCode.NEEDS_PERSON


@dataclass(frozen=True, slots=True)
class InputFile:
    """One file of a run: its side, its content's hash, and where it lies now."""

    side: str
    path: str
    sha256: str
    bytes: int

    @property
    def name(self) -> str:
        """The base name, as it is shown."""
        return Path(self.path).name


def check_inputs(statements: Iterable[str], transactions: Iterable[str]) -> list[InputFile]:
    """Recognise every file by its content; nothing is stored.

    Files of the same side and content count once. Raises ``UsageError`` for a path that names no
    file, ``RefusedFile`` for a file that can't be read; both say which file and where in it.
    """
    found: dict[tuple[str, str], InputFile] = {}
    given = [(STATEMENT, path) for path in statements]
    given += [(TRANSACTIONS, path) for path in transactions]
    for side, path in given:
        try:
            header = open_statement(path).report_header
        except StatementError as error:
            raise refused(path, error) from None
        one = InputFile(side, str(Path(path).absolute()), header.sha256, header.bytes)
        found.setdefault((side, header.sha256), one)
    return list(found.values())


def refused(path: str | Path, error: StatementError) -> RetomaError:
    """The error for a person: file, line, byte offset, field and reason."""
    place = "".join(
        f", {word} {value}"
        for word, value in (("line", error.line), ("byte", error.offset), ("field", error.field))
        if value not in (None, "")
    )
    kind = UsageError if exit_code_of(error) == EXIT_USAGE else RefusedFile
    return kind(f"{path}{place}: {error.message}", safe="Nothing was stored.", next_step=error.hint)


def parameters_of(files: Iterable[InputFile], reference_date: date | str) -> dict[str, Any]:
    """The job's parameters: what names the instance is the files' content, never their names."""
    ordered = sorted(files, key=lambda one: (one.side, one.sha256))
    content = "\n".join(f"{one.side} {one.sha256}" for one in ordered)
    places = [[one.side, one.path, one.sha256, one.bytes] for one in ordered]
    return {
        "reference_date": reference_date,
        "inputs": hashlib.sha256(content.encode()).hexdigest(),
        "files": json.dumps(places, separators=(",", ":")),
    }


def files_of(parameters: Mapping[str, Any]) -> list[InputFile]:
    """The files of a run, in the order of side and hash."""
    return [InputFile(*place) for place in json.loads(str(parameters["files"]))]


def open_pinned(one: InputFile) -> StatementFile:
    """Open a file of the run; raises ``RefusedFile`` if it is gone or no longer the same."""
    try:
        opened = open_statement(one.path)
    except StatementError as error:
        raise RefusedFile(f"{one.path}: {error.message} {error.hint}".rstrip()) from None
    if opened.report_header.sha256 != one.sha256:
        raise changed(one)
    return opened


def changed(one: InputFile) -> RefusedFile:
    """The error for a file that is another one now."""
    return RefusedFile(
        f"{one.path}: the file was changed after the run began (sha256 {one.sha256[:12]}… expected);"
        " restore it as it was, and repeat the same command"
    )
