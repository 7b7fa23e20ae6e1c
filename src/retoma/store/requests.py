"""What operators ask of a run: rows that the coordinator reads. Nobody else writes a run's state."""

from __future__ import annotations

from sqlalchemy import insert, text

from retoma.store import tables
from retoma.store.session import Session


def ask_to_stop(session: Session, run_id: int, actor: str, reason: str) -> None:
    """Store a request to stop the run at its chunk borders, with who asked and why."""
    statement = insert(tables.request).values(
        verb="stop",
        run_id=run_id,
        actor=actor,
        reason=reason,
        created_at=text(session.dialect.now),
    )
    session.change("request.stop", statement)
