"""What is unsound in a job's definition, found before its first night. Looks, and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import date
from typing import Any

import sqlalchemy as sa
from sqlalchemy.exc import NoSuchTableError

from retoma.errors import UsageError
from retoma.model.items import StepContext, Value
from retoma.model.job import ItemStep, Job
from retoma.readers.table import TableReader
from retoma.store.store import Store
from retoma.writers.table import TableWriter

_LARGE_CHUNK = 20_000
_SAMPLES: Mapping[type, Value] = {date: date(2000, 1, 3), int: 1, bool: True, str: "x"}


@dataclass(frozen=True, slots=True)
class Weakness:
    """One thing that is unsound: where, what follows from it, and the cure.

    ``is_fatal``: exactly once does not hold with it. Otherwise it is advice.
    """

    code: str
    where: str
    message: str
    cure: str
    is_fatal: bool


def check_job(store: Store | None, job: Job) -> list[Weakness]:
    """The weaknesses of a job, the fatal ones first.

    Tables are judged as they are in the database, and as the code declares them where they are not
    there yet; with no ``store`` all are judged as declared. Raises ``UsageError`` if a step's query
    can't be made from well-formed parameters.
    """
    found: list[Weakness] = []
    for step in job.steps:
        if not isinstance(step, ItemStep):
            continue
        where = f"step {step.name}"
        if step.chunk_size > _LARGE_CHUNK:
            found.append(_large_chunk(where, step.chunk_size))
        if isinstance(step.reader, TableReader):
            found += _of_reader(store, step.reader, _sample(job, step), where)
        if isinstance(step.writer, TableWriter):
            found += _of_writer(store, step.writer, where)
    if job.audit is None:
        found.append(
            Weakness(
                "NO_AUDIT",
                f"job {job.name}",
                "without an audit `retoma verify` proves the control tables, not the effects",
                "give the job an `audit` that counts source and effects by other means",
                is_fatal=False,
            )
        )
    return sorted(found, key=lambda weakness: not weakness.is_fatal)


def _sample(job: Job, step: ItemStep) -> StepContext:
    """A context with well-formed parameters: the shape of a query depends on no value."""
    values = {
        parameter.name: parameter.default
        if parameter.default is not None
        else _SAMPLES[parameter.kind]
        for parameter in job.parameters
    }
    return StepContext(job=job.name, step=step.name, run_id=0, instance_id=0, parameters=values)


def _large_chunk(where: str, size: int) -> Weakness:
    return Weakness(
        "LARGE_CHUNK",
        where,
        f"a chunk of {size:,} items is one transaction, and what a kill costs",
        f"chunk_size of at most {_LARGE_CHUNK:,}",
        is_fatal=False,
    )


def _as_it_is(store: Store | None, table: sa.Table) -> sa.Table:
    """The table as the database has it; as declared if it is not there."""
    if store is None:
        return table
    try:
        return sa.Table(table.name, sa.MetaData(), schema=table.schema, autoload_with=store.engine)
    except NoSuchTableError:
        return table


def _unique_sets(table: sa.Table) -> Iterator[frozenset[str]]:
    """The sets of columns of which no two rows have the same values."""
    if table.primary_key.columns:
        yield frozenset(table.primary_key.columns.keys())
    for constraint in table.constraints:
        if isinstance(constraint, sa.UniqueConstraint):
            yield frozenset(constraint.columns.keys())
    for index in table.indexes:
        is_partial = any(index.dialect_kwargs.get(f"{name}_where") is not None
                         for name in ("postgresql", "sqlite"))  # fmt: skip
        if index.unique and not is_partial:
            yield frozenset(column.name for column in index.columns)


def _is_float(column: sa.ColumnElement[Any]) -> bool:
    return isinstance(column.type, sa.Float)  # binary in the database, whatever Python sees


def _float(where: str, name: str) -> Weakness:
    return Weakness(
        "FLOAT",
        where,
        f"column {name} is a floating-point number: sums of money drift",
        "NUMERIC, or whole minor units (cents)",
        is_fatal=True,
    )


def _inexact(store: Store | None, table: sa.Table, name: str, where: str) -> Iterator[Weakness]:
    """Fractions that the column would keep as floating-point numbers."""
    kind = table.columns[name].type
    if isinstance(kind, sa.Float):
        yield _float(where, name)
    elif isinstance(kind, sa.Numeric) and store and store.dialect.name == "sqlite":
        yield Weakness(
            "NUMERIC_ON_SQLITE",
            where,
            f"SQLite keeps the fractions of {table.name}.{name} as floating-point numbers",
            "whole minor units (cents) in a BIGINT",
            is_fatal=True,
        )


def _of_reader(
    store: Store | None, reader: TableReader, context: StepContext, where: str
) -> Iterator[Weakness]:
    try:
        query = reader.query(context)
    except Exception as error:
        raise UsageError(
            f"{where}: its query can't be made: {type(error).__name__}: {error}",
            safe="Nothing was started.",
            next_step="call it by hand with parameters such as a run has",
        ) from error
    key = reader.key
    table = getattr(key, "table", None)
    if not isinstance(key.type, sa.Integer):
        yield Weakness(
            "KEY_NOT_INTEGER",
            where,
            f"the key {key.key} is {key.type}, and ranges are cut of whole numbers",
            "read by an integer column that is unique and never changes",
            is_fatal=True,
        )
    if isinstance(table, sa.Table):
        actual = _as_it_is(store, table)
        if not any(columns <= {str(key.key)} for columns in _unique_sets(actual)):
            yield Weakness(
                "ORDER_NOT_UNIQUE",
                where,
                f"nothing keeps {table.name}.{key.key} unique: rows of one key at a chunk's border"
                " would be read together or not at all",
                f"a primary key or unique index on {table.name}.{key.key}, or another key",
                is_fatal=True,
            )
    yield from (_float(where, str(c.key)) for c in query.selected_columns if _is_float(c))
    if query.whereclause is None:
        yield Weakness(
            "UNBOUNDED_QUERY",
            where,
            "the query has no condition: every run reads the whole table, today's rows with the old",
            "bound it by a parameter: .where(table.c.day == context.parameters['day'])",
            is_fatal=False,
        )
    if reader.version is None:
        yield Weakness(
            "NO_VERSION",
            where,
            "a row that is changed while the step runs is not noticed; the number of rows is",
            "name a column that grows with each change as `version`, if rows can change",
            is_fatal=False,
        )


def _of_writer(store: Store | None, writer: TableWriter, where: str) -> Iterator[Weakness]:
    table = _as_it_is(store, writer.table)
    names = set(table.columns.keys())
    absent = [n for n in dict.fromkeys((*writer.columns, writer.digest)) if n not in names]
    if absent:
        yield Weakness(
            "NO_SUCH_COLUMN",
            where,
            f"the table {table.name} has no column {', '.join(absent)}",
            "create the column, or take it out of the writer",
            is_fatal=True,
        )
    unique = list(_unique_sets(table))
    for key in writer.keys:
        shown = ", ".join(key)
        if not any(columns <= set(key) for columns in unique):
            yield Weakness(
                "NO_UNIQUE_INDEX",
                where,
                f"no unique index of {table.name} keeps ({shown}) from being there twice",
                f"CREATE UNIQUE INDEX ON {table.name} ({shown})",
                is_fatal=True,
            )
        for name in key:
            if name in names and table.columns[name].nullable:
                yield Weakness(
                    "NULLABLE_KEY",
                    where,
                    f"{table.name}.{name} may be NULL, and a unique index lets NULLs be there twice",
                    f"make {name} NOT NULL",
                    is_fatal=True,
                )
    for name in writer.columns:
        if name in names:
            yield from _inexact(store, table, name, where)
