"""What a mutant is, and how it is put on and taken off again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from sqlalchemy import Engine, MetaData, Table, UniqueConstraint, text

from retoma.store.dialects.contract import Guarded

Patch = Callable[[Any, str, Any], None]
Change = Callable[[Engine], None]


def no_change(_engine: Engine) -> None:
    """The tables stay as they are."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """What is left out, and how."""

    name: str
    words: str
    apply: Callable[[Patch], None]
    database: str = "sqlite"
    """Where it lives: elsewhere there is no such thing, or it does no harm."""

    prepare: Change = no_change
    """Changes the tables of a fresh database, where a second lock must be off as well."""

    undo: Change = no_change
    """Takes that back, on a database that serves again."""

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """The code with the mutation."""
        with contextmanager_of_patches() as patch:
            self.apply(patch)
            yield


@contextmanager
def contextmanager_of_patches() -> Iterator[Patch]:
    """Replaces attributes, and puts all of them back."""
    before: list[tuple[Any, str, Any]] = []

    def patch(target: Any, name: str, value: Any) -> None:
        before.append((target, name, getattr(target, name)))
        setattr(target, name, value)

    try:
        yield patch
    finally:
        for target, name, value in reversed(before):
            setattr(target, name, value)


def loosen(table: Table, *keys: str) -> Change:
    """Takes unique keys from an empty table."""

    def change(engine: Engine) -> None:
        loose = table.to_metadata(MetaData())
        for constraint in list(loose.constraints):
            if isinstance(constraint, UniqueConstraint) and constraint.name in keys:
                loose.constraints.remove(constraint)
        with engine.begin() as connection:
            connection.execute(text(f"DROP TABLE {table.name}"))
            loose.create(connection)

    return change


def without(operation: Guarded, *parts: str) -> Guarded:
    """A control transaction whose guard does not ask for these parts."""
    return replace(operation, guard=cut_from(operation.guard, *parts))


def cut_from(statement: str, *parts: str) -> str:
    """A statement without these parts."""
    for part in parts:
        assert part in statement, part
        statement = statement.replace(part, "")
    return statement
