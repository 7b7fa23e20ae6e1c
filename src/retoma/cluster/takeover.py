"""Ending someone else's work: end the old session, see it gone, then one guarded change.

Giving back a dead slot's chunk and taking over a dead worker's are the same act.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from retoma.errors import FailureKind
from retoma.model.keyspace import halve
from retoma.model.records import Claim, Owner
from retoma.store import chunks
from retoma.store.session import Session
from retoma.store.store import Store

_TRIES = 5
_LOSSES_BEFORE_SPLIT = 3
_LOSSES_OF_WHOLE_CHUNK = 9


@dataclass(frozen=True, slots=True)
class Running:
    """A RUNNING chunk as a sweep sees it."""

    claim: Claim
    owner: Owner
    lease_mark: str
    is_expired: bool


def running_from(store: Store, session: Session, row: Any) -> Running:
    """The record of one row of ``progress.running_chunks``."""
    claim = Claim(
        chunk_id=row.id,
        step_id=row.step_id,
        partition_id=row.partition_id,
        run_id=row.run_id,
        fence=row.fence,
        token=row.token,
        start=json.loads(row.start_key),
        end=None if row.end_key is None else json.loads(row.end_key),
        size=row.size,
        tries=row.tries,
        losses=row.losses,
        session_name=store.session_name(session, row.id, row.fence),
    )
    owner = Owner(row.owner_node, row.owner_slot, row.owner_pid)
    return Running(claim, owner, str(row.lease_until), bool(row.is_expired))


def end_lost(store: Store, session: Session, chunk: Running, cause: str) -> bool:
    """Take a lost worker's chunk back to PENDING; False: it had ended meanwhile."""
    store.dialect.end_session(session, chunk.claim.session_name, chunk.owner.pid)
    losses = chunk.claim.losses + 1
    if losses >= _LOSSES_BEFORE_SPLIT:
        middle = halve(chunk.claim.start, chunk.claim.end)
        if middle is not None:
            return chunks.split(session, chunk.claim, middle, cause, chunk.owner)
    # What can't be cut further is failed only when the whole cluster has met it often enough.
    most = _LOSSES_BEFORE_SPLIT if _is_one_item(chunk.claim) else _LOSSES_OF_WHOLE_CHUNK
    is_final = losses >= most
    return chunks.release(
        session,
        chunk.claim,
        to_state="FAILED" if is_final else "PENDING",
        outcome="LOST",
        kind=FailureKind.CRASH,
        failure=cause,
        losses=1,
        owner=chunk.owner,
    )


def _is_one_item(claim: Claim) -> bool:
    if isinstance(claim.start, int) and isinstance(claim.end, int):
        return claim.end - claim.start == 1
    return claim.size == 1


def end_crashed(store: Store, session: Session, chunk: Running, cause: str) -> bool:
    """Give a dead slot's chunk back; it counts as a try. False: it had ended meanwhile."""
    store.dialect.end_session(session, chunk.claim.session_name, chunk.owner.pid)
    is_final = chunk.claim.tries + 1 >= _TRIES
    return chunks.release(
        session,
        chunk.claim,
        to_state="FAILED" if is_final else "PENDING",
        outcome="FAILED",
        kind=FailureKind.CRASH,
        failure=cause,
        tries=1,
        owner=chunk.owner,
    )


def give_back(store: Store, session: Session, chunk: Running, cause: str) -> bool:
    """Give a chunk back on request: it never counts against the chunk."""
    store.dialect.end_session(session, chunk.claim.session_name, chunk.owner.pid)
    return chunks.release(
        session,
        chunk.claim,
        to_state="PENDING",
        outcome="GIVEN_BACK",
        failure=cause,
        owner=chunk.owner,
    )
