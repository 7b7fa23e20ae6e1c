"""What a database must be able to do for the control store, and the shape of a control transaction."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from sqlalchemy import Connection, Engine, text
from sqlalchemy.engine.interfaces import Dialect as DriverDialect

from retoma.errors import FailureKind

T = TypeVar("T")
_KEPT: dict[tuple[str, str, str, Any], str] = {}
_MOST_KEPT = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Guarded:
    """A control transaction: one guarded change, and what follows if it hit exactly one row.

    Written once in portable SQL; each dialect folds it into a single round trip, so that a process
    frozen in the middle of it holds nothing. Placeholders:

    ``{now}``      the database's instant
    ``{lease}``    ``{now}`` plus ``:lease_seconds``
    ``{delay}``    ``{now}`` plus ``:delay_seconds``
    ``{held}``     true if ``hold`` found its row (use it in the WHERE of ``guard``)
    ``{picked}``   the id that ``pick`` found
    ``{guarded}``  true if ``guard`` changed its row (use it in each WHERE of ``then``)
    ``{guard_id}`` the id of the row that ``guard`` changed or inserted
    ``{then0_id}`` the id of the row that the first of ``then`` inserted
    ``{dual}``     what a SELECT of values alone needs before its WHERE

    ``hold`` and ``pick`` are given from FROM on; ``hold`` takes a shared lock (``hold_exclusively``:
    an exclusive one), ``pick`` an exclusive one that skips what others have locked.
    """

    name: str
    guard: str
    then: tuple[str, ...] = ()
    hold: str | None = None
    hold_exclusively: bool = False
    pick: str | None = None
    lock_timeout_seconds: int | None = None


class Statements(Protocol):
    """What a dialect needs of a session: statements that pass the scheduling point."""

    connection: Connection
    settings: dict[str, Any]

    def at(self, name: str) -> None:
        """The scheduling point."""

    def pause(self, seconds: float) -> None:
        """Wait between two statements."""

    def fetch(
        self, name: str, statement: Any, parameters: Mapping[str, Any] | None = None
    ) -> list[Any]:
        """All rows of one statement."""

    def change(self, name: str, statement: Any, parameters: Mapping[str, Any] | None = None) -> int:
        """Run one statement; the number of rows that it matched."""

    def abandon(self) -> None:
        """Roll back whatever is open."""


class Dialect(ABC):
    """One database's way to do what the protocol needs."""

    name: str
    now: str
    row_lock: str = " FOR UPDATE"
    mark: str = "%s"

    @abstractmethod
    def make_engine(self, url: str) -> Engine:
        """An engine with the settings that the protocol needs; nothing is connected yet."""

    @abstractmethod
    def parameter_style(self) -> DriverDialect:
        """An SQLAlchemy dialect that writes parameters by name, as the driver takes them."""

    @abstractmethod
    def after(self, parameter: str) -> str:
        """SQL for the database's instant plus the seconds in the bound ``parameter``."""

    @abstractmethod
    def once(self, session: Statements, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        """Run a control transaction in one round trip; whether its guard changed one row."""

    @abstractmethod
    def enter_work(self, session: Statements, name: str, deadline_seconds: float) -> None:
        """Right after BEGIN: local timeouts, and the session's ``name`` for a successor to find."""

    def leave_work(self, session: Statements) -> None:
        """Right after COMMIT or ROLLBACK."""
        return

    @abstractmethod
    def end_session(self, session: Statements, name: str, owner_pid: int | None) -> None:
        """End the work session of that name and see it gone; raises ``ZombieRemains`` if it stays."""

    def insert_rows(
        self, session: Statements, table: Any, columns: tuple[str, ...], rows: list[Any]
    ) -> None:
        """Insert rows in bulk within the open transaction; raises the driver's own error."""
        session.at("insert.rows")
        target, names = self.insert_target(session, table, columns)
        marks = ", ".join([self.mark] * len(columns))
        driver = session.connection.connection.driver_connection
        assert driver is not None
        cursor = driver.cursor()
        try:
            cursor.executemany(f"INSERT INTO {target} ({names}) VALUES ({marks})", rows)
        finally:
            cursor.close()

    @staticmethod
    def insert_target(session: Statements, table: Any, columns: tuple[str, ...]) -> tuple[str, str]:
        """The quoted table and its quoted columns."""
        preparer = session.connection.dialect.identifier_preparer
        return preparer.format_table(table), ", ".join(preparer.quote(name) for name in columns)

    @abstractmethod
    def classify(self, error: BaseException) -> FailureKind:
        """The kind of a driver's error (INVALID_ITEM for classes 22 and 23, DUPLICATE for a key)."""

    def has_rolled_back(self, session: Statements) -> bool:
        """Whether the driver knows that the open transaction has ended without having been told."""
        return False

    def is_connection_lost(self, error: BaseException) -> bool:
        """Whether the connection broke: what the server did last is open, and nobody is to blame."""
        return False

    def prepared(self, template: str) -> str:
        """The template as the driver takes it: rendered and translated once, not with every chunk."""
        return self.kept("", template, self._translate)

    def kept(self, kind: str, source: T, make: Callable[[T], str]) -> str:
        """A text that depends on nothing but this database and its source, made once a process."""
        key = (self.name, self.now, kind, source)
        found = _KEPT.get(key)
        if found is None:
            if len(_KEPT) > _MOST_KEPT:
                _KEPT.clear()
            found = _KEPT[key] = make(source)
        return found

    def _translate(self, template: str) -> str:
        return str(text(self.render(template, {})).compile(dialect=self.parameter_style()))

    def render(self, template: str, extra: Mapping[str, str]) -> str:
        """The template with this dialect's expressions in place of the placeholders."""
        values = {
            "now": self.now,
            "dual": "",
            "lease": self.after("lease_seconds"),
            "delay": self.after("delay_seconds"),
            **extra,
        }
        for key, value in values.items():
            template = template.replace("{" + key + "}", value)
        return template


class ZombieRemains(Exception):
    """The old session could not be ended: waiting for a zombie."""
