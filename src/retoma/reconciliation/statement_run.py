"""Start or take up a reconciliation, and tell how it stands."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import date
from typing import Any

import retoma
from retoma import Store, UsageError
from retoma.reconciliation.statement_files import check_inputs, parameters_of
from retoma.reconciliation.statement_job import JOB
from retoma.reconciliation.statement_result import result_of

_MODULE = "retoma.reconciliation.statement_job"


def reconcile(
    database: str,
    statements: Iterable[str],
    transactions: Iterable[str],
    reference_date: str | date,
    *,
    slots: int = 1,
    stop: threading.Event | None = None,
) -> tuple[Store, dict[str, Any]]:
    """Check every file, then start or take up the run, until it has ended.

    The outcome is a plain dict with ``exit_code``; the store is returned for whoever wants the
    lists. Raises ``UsageError`` or ``RefusedFile`` before anything is stored, and the errors of
    ``retoma.run``.
    """
    day = JOB.parameters[0].parse(reference_date)
    files = check_inputs(statements, transactions)
    if not files:
        raise UsageError("no file is given", next_step="--statement FILE --transactions FILE.csv")
    store = Store(database)
    parameters = parameters_of(files, str(day))
    ended = retoma.run(store, JOB, parameters, slots=slots, apps=(_MODULE,), stop=stop)
    found = retoma.status(store, ended.run_id)
    outcome = {
        "run": ended.run_id,
        "instance": found["instance"],
        "state": str(ended.state),
        "exit_code": ended.exit_code,
        "was_complete": ended.was_complete,
        "failure": ended.failure,
        "reference_date": str(day),
        "counts": _counts(found),
        **result_of(store, found["instance"], found["parameters"]),
        "set_aside": _set_aside(store, ended.run_id),
    }
    return store, outcome


def _counts(found: Mapping[str, Any]) -> dict[str, Any]:
    """The equation of each step: read = done + already done + filtered + set aside + deferred."""
    names = ("first_reads", "done", "already_done", "filtered", "set_aside", "deferred")
    return {step["step"]: {name: step[name] for name in names} for step in found["steps"]}


def _set_aside(store: Store, run_id: int) -> dict[str, Any]:
    reasons = Counter(error["reason"] for error in retoma.item_errors(store, run_id))
    return {"count": sum(reasons.values()), "by_reason": dict(sorted(reasons.items()))}
