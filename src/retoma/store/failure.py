"""Driver errors that reach a person, in words."""

from __future__ import annotations

from sqlalchemy.exc import DBAPIError

from retoma.errors import NeedsPerson, RetomaError, TransientFailure


def explained(error: Exception) -> RetomaError | None:
    """An error for people if this is the database's; None otherwise."""
    if not isinstance(error, DBAPIError):
        return None
    lines = str(error.orig or error).strip().splitlines()
    reason = lines[0] if lines else type(error).__name__
    if "no such table" in reason or "does not exist" in reason or "doesn't exist" in reason:
        return NeedsPerson(
            f"a table is missing in the database: {reason}",
            safe="Nothing was changed.",
            next_step="retoma db migrate",
        )
    if any(word in reason.lower() for word in ("readonly", "read-only", "denied", "permission")):
        return NeedsPerson(
            f"the database does not permit it: {reason}",
            safe="Committed chunks stay.",
            next_step="give the user the rights that 'retoma doctor' asks for, then repeat",
        )
    return TransientFailure(
        f"the database refused: {reason}",
        safe="Committed chunks stay.",
        next_step="cure the cause, then repeat the same command: it takes up from there",
    )
