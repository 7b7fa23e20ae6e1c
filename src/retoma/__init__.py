"""Batch jobs that can be killed at any instant and take up again where they stopped.

No item lost, no effect twice, on nothing but the relational database that you already run.
Everything public is reachable from here and is loaded when it is first used.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

from retoma import release

if TYPE_CHECKING:
    from retoma.cli.signals import stop_on_signal as stop_on_signal
    from retoma.embedded import EmbeddedPostgres as EmbeddedPostgres
    from retoma.errors import ExitCode as ExitCode
    from retoma.errors import InvalidItem as InvalidItem
    from retoma.errors import ItemNotReady as ItemNotReady
    from retoma.errors import RetomaError as RetomaError
    from retoma.errors import TransientFailure as TransientFailure
    from retoma.errors import UsageError as UsageError
    from retoma.model.items import Measure as Measure
    from retoma.model.items import NotReady as NotReady
    from retoma.model.items import Page as Page
    from retoma.model.items import PartitionPlan as PartitionPlan
    from retoma.model.items import SetAside as SetAside
    from retoma.model.items import StepContext as StepContext
    from retoma.model.items import Transaction as Transaction
    from retoma.model.items import Written as Written
    from retoma.model.job import Finding as Finding
    from retoma.model.job import ItemStep as ItemStep
    from retoma.model.job import Job as Job
    from retoma.model.job import TaskStep as TaskStep
    from retoma.model.masking import mask_text as mask_text
    from retoma.model.parameters import Parameter as Parameter
    from retoma.operations.commands import run as run
    from retoma.operations.commands import stop as stop
    from retoma.operations.commands import submit as submit
    from retoma.operations.queries import item_errors as item_errors
    from retoma.operations.queries import status as status
    from retoma.operations.verify import verify as verify
    from retoma.readers.csv_file import CsvReader as CsvReader
    from retoma.readers.fixed_width import FixedWidthReader as FixedWidthReader
    from retoma.readers.iterable import IterableReader as IterableReader
    from retoma.readers.json_lines import JsonLinesReader as JsonLinesReader
    from retoma.readers.record import BadRecord as BadRecord
    from retoma.readers.record import Record as Record
    from retoma.readers.table import TableReader as TableReader
    from retoma.store.store import Store as Store
    from retoma.writers.csv_file import CsvWriter as CsvWriter
    from retoma.writers.json_lines import JsonLinesWriter as JsonLinesWriter
    from retoma.writers.lines import LinesWriter as LinesWriter
    from retoma.writers.table import TableWriter as TableWriter

_HOMES = {
    "BadRecord": "retoma.readers.record",
    "CsvReader": "retoma.readers.csv_file",
    "CsvWriter": "retoma.writers.csv_file",
    "EmbeddedPostgres": "retoma.embedded",
    "ExitCode": "retoma.errors",
    "Finding": "retoma.model.job",
    "FixedWidthReader": "retoma.readers.fixed_width",
    "InvalidItem": "retoma.errors",
    "ItemNotReady": "retoma.errors",
    "ItemStep": "retoma.model.job",
    "IterableReader": "retoma.readers.iterable",
    "Job": "retoma.model.job",
    "JsonLinesReader": "retoma.readers.json_lines",
    "JsonLinesWriter": "retoma.writers.json_lines",
    "LinesWriter": "retoma.writers.lines",
    "Measure": "retoma.model.items",
    "NotReady": "retoma.model.items",
    "Page": "retoma.model.items",
    "Parameter": "retoma.model.parameters",
    "PartitionPlan": "retoma.model.items",
    "Record": "retoma.readers.record",
    "RetomaError": "retoma.errors",
    "SetAside": "retoma.model.items",
    "StepContext": "retoma.model.items",
    "Store": "retoma.store.store",
    "TableReader": "retoma.readers.table",
    "TableWriter": "retoma.writers.table",
    "TaskStep": "retoma.model.job",
    "Transaction": "retoma.model.items",
    "TransientFailure": "retoma.errors",
    "UsageError": "retoma.errors",
    "Written": "retoma.model.items",
    "item_errors": "retoma.operations.queries",
    "mask_text": "retoma.model.masking",
    "run": "retoma.operations.commands",
    "status": "retoma.operations.queries",
    "stop": "retoma.operations.commands",
    "stop_on_signal": "retoma.cli.signals",
    "submit": "retoma.operations.commands",
    "verify": "retoma.operations.verify",
}

__all__ = list(_HOMES)
__version__ = release.VERSION


def __getattr__(name: str) -> Any:
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'retoma' has no attribute {name!r}")
