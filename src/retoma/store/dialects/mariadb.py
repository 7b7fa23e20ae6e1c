"""MariaDB, direct (no proxy): a control transaction is one compound statement."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy import Engine, create_engine, event, text
from sqlalchemy.dialects.mysql import dialect as mysql_dialect
from sqlalchemy.engine.interfaces import Dialect as DriverDialect
from sqlalchemy.exc import DBAPIError

from retoma.errors import FailureKind
from retoma.store.dialects.contract import Dialect, Guarded, Statements, ZombieRemains

_BLOCK = """BEGIN NOT ATOMIC
  DECLARE held_ BIGINT DEFAULT NULL;
  DECLARE picked_ BIGINT DEFAULT NULL;
  DECLARE changed_ INT DEFAULT 0;
  DECLARE guard_id_ BIGINT DEFAULT NULL;
  DECLARE then0_id_ BIGINT DEFAULT NULL;
  DECLARE EXIT HANDLER FOR SQLEXCEPTION BEGIN ROLLBACK; RESIGNAL; END;
  START TRANSACTION;
  {body}
END"""
_SESSION = (
    "SET SESSION time_zone = '+00:00', SESSION innodb_lock_wait_timeout = 5,"
    " SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ZERO_DATE,ERROR_FOR_DIVISION_BY_ZERO,"
    "NO_ENGINE_SUBSTITUTION', SESSION tx_isolation = 'READ-COMMITTED'"
)
_ENTER_WORK = text("SELECT RELEASE_ALL_LOCKS(), GET_LOCK(:name, 0)")
_DEADLINES = text(
    "SET SESSION max_statement_time = :deadline, SESSION idle_transaction_timeout = :idle"
)
_HOLDER = text("SELECT IS_USED_LOCK(:name)")
_DUPLICATE = {1062, 1586}
_DATA = {1048, 1264, 1265, 1292, 1366, 1406, 1451, 1452, 3819, 4025}
_PERMANENT = {1044, 1045, 1049, 1054, 1064, 1142, 1143, 1146, 1227, 1370}


class MariaDb(Dialect):
    """Compound statements for control, a named lock for each work session, no proxy in between."""

    name = "mariadb"
    now = "UTC_TIMESTAMP(6)"

    def make_engine(self, url: str) -> Engine:
        engine = create_engine(
            url,
            isolation_level="READ COMMITTED",
            pool_size=4,
            max_overflow=4,
            connect_args={"charset": "utf8mb4", "connect_timeout": 10},
        )

        @event.listens_for(engine, "connect")
        def prepare(connection: Any, _record: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute(_SESSION)

        return engine

    def parameter_style(self) -> DriverDialect:
        return mysql_dialect(paramstyle="pyformat")

    def after(self, parameter: str) -> str:
        return f"DATE_ADD({self.now}, INTERVAL CAST(:{parameter} AS DECIMAL(20,6)) SECOND)"

    def _fold(self, operation: Guarded) -> str:
        extra = {
            "held": "held_ IS NOT NULL",
            "guarded": "1 = 1",
            "picked": "picked_",
            "guard_id": "guard_id_",
            "then0_id": "then0_id_",
            "dual": "FROM DUAL",
        }
        if not operation.hold:
            extra["held"] = "1 = 1"
        lines = []
        if operation.hold:
            strength = "FOR UPDATE" if operation.hold_exclusively else "LOCK IN SHARE MODE"
            held = self.render(operation.hold, extra)
            lines.append(f"SELECT id INTO held_ {held} LIMIT 1 {strength};")
        if operation.pick:
            picked = self.render(operation.pick, extra)
            lines.append(f"SELECT id INTO picked_ {picked} LIMIT 1 FOR UPDATE SKIP LOCKED;")
        lines.append(self.render(operation.guard, extra) + ";")
        lines.append("SET changed_ = ROW_COUNT(); SET guard_id_ = LAST_INSERT_ID();")
        lines.append("IF changed_ = 1 THEN")
        for number, statement in enumerate(operation.then):
            lines.append(self.render(statement, extra) + ";")
            if number == 0:
                lines.append("SET then0_id_ = LAST_INSERT_ID();")
        lines.append("COMMIT; ELSE ROLLBACK; END IF;")
        lines.append("SELECT changed_;")
        return _BLOCK.replace("{body}", "\n  ".join(lines))

    def once(self, session: Statements, operation: Guarded, parameters: Mapping[str, Any]) -> bool:
        rows = session.fetch(operation.name, self.kept("fold", operation, self._fold), parameters)
        return bool(rows[0][0] == 1)

    def enter_work(self, session: Statements, name: str, deadline_seconds: float) -> None:
        deadline = max(deadline_seconds, 1.0)
        if session.settings.get("deadline") != deadline:
            session.change(
                "work.deadlines", _DEADLINES, {"deadline": deadline, "idle": int(deadline) + 1}
            )
            session.settings["deadline"] = deadline
        row = session.fetch("work.enter", _ENTER_WORK, {"name": name})[0]
        if row[1] != 1:
            raise ZombieRemains(name)

    def end_session(self, session: Statements, name: str, owner_pid: int | None) -> None:
        for _ in range(50):
            holder = session.fetch("zombie.find", _HOLDER, {"name": name})[0][0]
            if holder is None:
                return
            try:
                session.change("zombie.end", text(f"KILL CONNECTION {int(holder)}"))
            except DBAPIError as error:
                if error.orig is None or error.orig.args[0] != 1094:  # 1094: it is gone already
                    raise
            session.pause(0.05)
        raise ZombieRemains(name)

    def classify(self, error: BaseException) -> FailureKind:
        original = error.orig if isinstance(error, DBAPIError) else error
        code = _code_of(original)
        if code in _DUPLICATE:
            return FailureKind.DUPLICATE
        if code in _DATA or isinstance(original, UnicodeEncodeError):
            return FailureKind.INVALID_ITEM
        return FailureKind.PERMANENT if code in _PERMANENT else FailureKind.TRANSIENT

    def is_connection_lost(self, error: BaseException) -> bool:
        original = error.orig if isinstance(error, DBAPIError) else error
        return (_code_of(original) or 0) in (0, 1053, 1927, 2002, 2003, 2006, 2013)


def _code_of(error: BaseException | None) -> int | None:
    """The server's or driver's number; None if the error is not the driver's."""
    if not type(error).__module__.startswith("pymysql"):
        return None
    code = error.args[0] if error is not None and error.args else None
    return code if isinstance(code, int) else None
