"""A reconciliation desk: synthetic files, and runs driven by hand in this process."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from retoma.faults import Point, no_point
from retoma.model.items import StepContext
from retoma.model.job import Finding, ItemStep, Job
from retoma.model.parameters import from_json
from retoma.operations.commands import prepare
from retoma.reconciliation.statement_files import check_inputs, parameters_of
from retoma.reconciliation.statement_job import JOB
from retoma.reconciliation.statement_result import result_of
from retoma.reconciliation.statement_tables import recon_break, recon_entry, recon_match
from retoma.reconciliation.tables import ledger_entry
from tests.engine.night import Night
from tests.formats.samples import ofx, trn

DAY = "2026-08-31"
HEAD = "id,data,valor,moeda,historico,conta,e2e\n"


def e2e(number: int) -> str:
    """An end-to-end id of a made-up bank."""
    return f"E9999999920260801{1200:04d}{number:011d}"


def statement(folder: Path, *lines: str, name: str = "s.ofx", currency: str = "BRL") -> str:
    """An OFX of one account."""
    path = folder / name
    path.write_text(ofx("".join(lines), currency=currency), "utf-8")
    return str(path)


def transactions(folder: Path, *rows: str, name: str = "t.csv") -> str:
    """A CSV of internal transactions: id,date,amount,currency,text,account,e2e."""
    path = folder / name
    path.write_text(HEAD + "".join(row + "\n" for row in rows), "utf-8")
    return str(path)


def line(number: int, amount: str, *, day: int = 1, memo: str = "", fitid: str = "") -> str:
    """A statement's line with an id of its own."""
    return trn(amount, f"202608{day:02d}", fitid or f"BANK-{number:05d}", memo or f"LINE {number}")


def row(number: int, amount: str, *, day: int = 1, currency: str = "BRL", **more: str) -> str:
    """A transaction's row with an id of its own."""
    ident, account = more.get("ident", f"T{number}"), more.get("account", "60006")
    return f"{ident},2026-08-{day:02d},{amount},{currency},row {number},{account},{more.get('e2e', '')}"


def chunked(size: int) -> Job:
    """The statement job with small chunks."""
    steps = tuple(
        dataclasses.replace(step, chunk_size=size)
        if isinstance(step, ItemStep) and step.name in ("ingest", "post")
        else step
        for step in JOB.steps
    )
    return dataclasses.replace(JOB, steps=steps)


class Desk:
    """One database, and the runs on it."""

    def __init__(self, url: str, *, chunk_size: int = 2) -> None:
        self.url = url
        self.job = chunked(chunk_size)
        night = self.night()
        prepare(night.store, JOB)
        night.close()

    def night(self, point: Point = no_point) -> Night:
        """A process that works on this database."""
        return Night(self.url, self.job, point=point)

    def run(
        self, statements: Sequence[str], transactions: Sequence[str], day: str = DAY
    ) -> dict[str, Any]:
        """A whole run; its result."""
        parameters = parameters_of(check_inputs(statements, transactions), day)
        night = self.night()
        try:
            state = night.whole(parameters)
            return {"state": str(state), "failure": night.run().failure, **self.result(night)}
        finally:
            night.close()

    def result(self, night: Night) -> dict[str, Any]:
        """The result, the audit and the size of the tables as they are now."""
        run = night.run()
        parameters = from_json(JOB.parameters, run.parameters)
        return {
            "instance": run.instance_id,
            **result_of(night.store, run.instance_id, parameters),
            "audit": self.audit(night),
            "tables": {
                table.name: night.session.fetch("t", select(func.count()).select_from(table))[0][0]
                for table in (recon_entry, recon_match, recon_break, ledger_entry)
            },
        }

    def audit(self, night: Night) -> Finding:
        """What the job's own audit finds."""
        run = night.run()
        context = StepContext(
            JOB.name, "", run.run_id, run.instance_id, from_json(JOB.parameters, run.parameters)
        )
        assert JOB.audit is not None
        with night.store.engine.connect() as connection:
            return JOB.audit(connection, context)

    def rows(self, table: Any, *columns: Any) -> list[tuple[Any, ...]]:
        """All rows of a table, sorted."""
        night = self.night()
        try:
            found = night.session.fetch("t", select(*columns) if columns else select(table))
            return sorted(tuple(one) for one in found)
        finally:
            night.close()


def types(result: dict[str, Any]) -> dict[str, int]:
    """How many breaks of each type."""
    return {one["type"]: one["count"] for one in result["breaks"]["by_type"]}


def lines_new(result: dict[str, Any]) -> list[int]:
    """How many new entries each file gave, statements first."""
    return [one["lines"]["new"] for one in result["files"]]
