"""The mark of a production store: no process that could run into a fault ever opens it."""

from __future__ import annotations

from collections.abc import Mapping

from sqlalchemy import select

from retoma import faults
from retoma.errors import NotPermitted
from retoma.store import tables
from retoma.store.dialects.contract import Guarded
from retoma.store.store import Store

SINCE = "0002"
"""The first revision of the control tables that has the mark."""

_MARK = Guarded(
    name="store.mark",
    guard="UPDATE batch_store SET is_production = :after WHERE id = 1 AND is_production <> :after",
    then=(
        "INSERT INTO batch_event (noun, noun_id, before_state, after_state, actor, at)"
        " SELECT 'store', 1, :before_state, :after_state, :actor, {now} {dual} WHERE {guarded}",
    ),
)
_STATES = ("ORDINARY", "PRODUCTION")


def is_production(store: Store) -> bool:
    """Whether the store is marked; control tables of this release must be there."""
    with store.engine.connect() as connection:
        found = connection.execute(select(tables.store_identity.c.is_production)).scalar()
    return bool(found)


def mark(store: Store, *, is_production: bool, actor: str) -> bool:
    """Set or take away the mark, with a history row; False if it was so already."""
    session = store.control()
    try:
        values = {
            "after": int(is_production),
            "before_state": _STATES[not is_production],
            "after_state": _STATES[is_production],
            "actor": actor,
        }
        return session.once(_MARK, values)
    finally:
        session.close()


def refuse_faults(store: Store, environment: Mapping[str, str]) -> None:
    """Raise ``NotPermitted`` if faults are allowed in this process and the store is marked."""
    if faults.are_allowed(environment) and is_production(store):
        raise refusal(store, f"{faults.FLAG} is set for this process")


def refusal(store: Store, reason: str) -> NotPermitted:
    """Why a marked store is not opened, in words."""
    return NotPermitted(
        f"{store.shown_url} is marked as production, and {reason}",
        safe="Nothing was started or changed.",
        next_step=f"unset {faults.FLAG}, or use another database; the mark is set and taken away"
        " by 'retoma db mark'",
    )
