"""Cut, claim, renew, release, finish: the protocol's statements about chunks."""

from __future__ import annotations

import json
from typing import Any

from sqlalchemy import insert, text
from sqlalchemy.exc import DBAPIError

from retoma.errors import FailureKind, LostClaim
from retoma.model.items import Key
from retoma.model.masking import mask_text, storable
from retoma.model.records import Claim, Counts, Owner, UncutPartition
from retoma.store import tables
from retoma.store.dialects.contract import Guarded
from retoma.store.session import Session
from retoma.store.store import Store, new_token

# The run as well: whoever stood still across a stop and a new run must not claim for the old one.
_OPEN_STEP = (
    "FROM batch_step WHERE id = :step_id AND state = 'RUNNING' AND accepting = 1"
    " AND EXISTS (SELECT 1 FROM batch_run WHERE id = :run_id AND live = 1)"
)
_OWNED = (
    "state = 'RUNNING', token = :token, owner_node = :node, owner_slot = :slot, owner_pid = :pid,"
    " run_id = :run_id, lease_until = {lease}, started_at = {now}, retry_at = NULL"
)

CLAIM = Guarded(
    name="chunk.claim",
    hold=_OPEN_STEP,
    pick=(
        "FROM batch_chunk WHERE step_id = :step_id AND state = 'PENDING'"
        " AND (retry_at IS NULL OR retry_at <= {now}) ORDER BY id"
    ),
    guard=(
        f"UPDATE batch_chunk SET fence = fence + 1, {_OWNED}"
        " WHERE id = {picked} AND state = 'PENDING' AND {held}"
    ),
)

_NEW_CHUNK = (
    "INSERT INTO batch_chunk (step_id, partition_id, run_id, state, start_key, end_key, size, fence,"
    " token, owner_node, owner_slot, owner_pid, lease_until, created_at, started_at)"
    " SELECT :step_id, :partition_id, :run_id, 'RUNNING', :start_key, :end_key, :size, 1,"
    " :token, :node, :slot, :pid, {lease}, {now}, {now} {dual} WHERE {guarded}"
)
_FIRST_CUT = (
    "INSERT INTO batch_event (noun, noun_id, run_id, before_state, after_state, actor, at)"
    " SELECT 'partition', :partition_id, :run_id, 'PENDING', 'CLAIMED', :actor, {now} {dual}"
    " WHERE :is_first = 1 AND {guarded}"
)

CUT = Guarded(
    name="chunk.cut",
    hold=_OPEN_STEP,
    guard=(
        "UPDATE batch_partition SET cut_to = :end_key, is_cut = :is_cut, state = 'CLAIMED'"
        " WHERE id = :partition_id AND cut_to = :seen AND is_cut = 0 AND {held}"
    ),
    then=(_NEW_CHUNK, _FIRST_CUT),
)

CUT_STRICT = Guarded(
    name="chunk.cut_strict",
    hold=_OPEN_STEP,
    guard=(
        "UPDATE batch_partition SET live_token = :token, state = 'CLAIMED'"
        " WHERE id = :partition_id AND cut_to = :seen AND is_cut = 0 AND live_token IS NULL AND {held}"
    ),
    then=(_NEW_CHUNK, _FIRST_CUT),
)

CLOSE_EMPTY = Guarded(
    name="partition.exhaust",
    hold=_OPEN_STEP,
    guard=(
        "UPDATE batch_partition SET cut_to = high, is_cut = 1, state = 'CLAIMED'"
        " WHERE id = :partition_id AND cut_to = :seen AND is_cut = 0 AND {held}"
    ),
    then=(_FIRST_CUT,),
)

RENEW = Guarded(
    name="chunk.renew",
    pick="FROM batch_chunk WHERE token = :token AND state = 'RUNNING'",
    guard=(
        "UPDATE batch_chunk SET lease_until = {lease}"
        " WHERE id = {picked} AND token = :token AND state = 'RUNNING'"
    ),
)

RELEASE = Guarded(
    name="chunk.release",
    lock_timeout_seconds=3,
    guard=(
        "UPDATE batch_chunk SET state = :to_state, token = NULL, owner_node = NULL,"
        " owner_slot = NULL, owner_pid = NULL, lease_until = NULL, tries = tries + :tries,"
        " losses = losses + :losses, retry_at = {delay}, failure_kind = :kind, failure = :failure"
        " WHERE id = :chunk_id AND fence = :fence AND token = :token AND state = 'RUNNING'"
    ),
    then=(
        "INSERT INTO batch_attempt (chunk_id, run_id, fence, outcome, failure_kind, failure,"
        " owner_node, owner_slot, ended_at) SELECT :chunk_id, :run_id, :fence, :outcome, :kind,"
        " :failure, :node, :slot, {now} {dual} WHERE {guarded}",
    ),
)

_HALF = (
    "INSERT INTO batch_chunk (step_id, partition_id, run_id, state, start_key, end_key, size,"
    " created_at) SELECT step_id, partition_id, run_id, 'PENDING', {ends}, size, {now}"
    " FROM batch_chunk WHERE id = :chunk_id AND {guarded}"
)

SPLIT = Guarded(
    name="chunk.split",
    lock_timeout_seconds=3,
    hold="FROM batch_step WHERE id = :step_id AND state = 'RUNNING'",
    hold_exclusively=True,
    guard=(
        "UPDATE batch_chunk SET state = 'SPLIT', token = NULL, owner_node = NULL,"
        " owner_slot = NULL, owner_pid = NULL, lease_until = NULL, losses = losses + 1,"
        " failure_kind = :kind, failure = :failure, finished_at = {now}"
        " WHERE id = :chunk_id AND fence = :fence AND token = :token AND state = 'RUNNING'"
        " AND {held}"
    ),
    then=(
        *RELEASE.then,
        _HALF.replace("{ends}", "start_key, :middle"),
        _HALF.replace("{ends}", ":middle, end_key"),
        "UPDATE batch_step SET version = version + 1 WHERE id = :step_id AND {guarded}",
    ),
)

_FINISH = (
    "UPDATE batch_chunk SET state = 'COMPLETED', end_key = :end_key, lease_until = NULL,"
    " first_reads = :first_reads, done = :done, already_done = :already_done, filtered = :filtered,"
    " set_aside = :set_aside, deferred = :deferred, version_sum = :version_sum, finished_at = {now},"
    " failure_kind = NULL, failure = NULL"
    " WHERE id = :chunk_id AND fence = :fence AND token = :token AND state = 'RUNNING'"
    " AND EXISTS (SELECT 1 FROM batch_attempt WHERE id = :witness AND chunk_id = :chunk_id)"
)
_ADVANCE = (
    "UPDATE batch_partition SET cut_to = :end_key, is_cut = :is_cut, live_token = NULL"
    " WHERE id = :partition_id AND cut_to = :start_key AND live_token IS NOT NULL"
)
_CLAIMED = (
    "SELECT id, step_id, partition_id, run_id, fence, token, start_key, end_key, size, tries, losses"
    " FROM batch_chunk WHERE token = :token"
)


def _owned(owner: Owner, lease_seconds: float, token: str) -> dict[str, Any]:
    return {
        "token": token,
        "node": owner.node_id,
        "slot": owner.slot,
        "pid": owner.pid,
        "lease_seconds": lease_seconds,
        "actor": f"node {owner.node_id} slot {owner.slot}",
    }


def _read_claim(store: Store, session: Session, token: str) -> Claim | None:
    rows = session.fetch("chunk.claimed", _CLAIMED, {"token": token})
    if not rows:
        return None
    row = rows[0]
    return Claim(
        chunk_id=row[0],
        step_id=row[1],
        partition_id=row[2],
        run_id=row[3],
        fence=row[4],
        token=row[5],
        start=json.loads(row[6]),
        end=None if row[7] is None else json.loads(row[7]),
        size=row[8],
        tries=row[9],
        losses=row[10],
        session_name=store.session_name(session, row[0], row[4]),
    )


def claim(
    store: Store, session: Session, step_id: int, run_id: int, owner: Owner, lease_seconds: float
) -> Claim | None:
    """Claim a PENDING chunk of the step; at most one caller wins each, with a higher fence."""
    token = new_token()
    values = {**_owned(owner, lease_seconds, token), "step_id": step_id, "run_id": run_id}
    return _read_claim(store, session, token) if session.once(CLAIM, values) else None


def cut(
    store: Store,
    session: Session,
    step_id: int,
    run_id: int,
    partition: UncutPartition,
    end: Key | None,
    size: int,
    owner: Owner,
    lease_seconds: float,
) -> Claim | None:
    """Cut the partition's next chunk for the caller; None if another was faster.

    ``end`` None: strict order, where the finish stores the end and moves the cursor.
    """
    token = new_token()
    end_key = None if end is None else key_text(end)
    values = {
        **_owned(owner, lease_seconds, token),
        "step_id": step_id,
        "run_id": run_id,
        "partition_id": partition.partition_id,
        "seen": key_text(partition.cut_to),
        "start_key": key_text(partition.cut_to),
        "end_key": end_key,
        "size": size,
        "is_first": int(partition.is_untouched),
    }
    if end is not None:
        values["is_cut"] = int(end_key == key_text(partition.high))
    operation = CUT_STRICT if end is None else CUT
    return _read_claim(store, session, token) if session.once(operation, values) else None


def exhaust(
    session: Session, step_id: int, run_id: int, partition: UncutPartition, actor: str
) -> bool:
    """Nothing is left above the cursor: the partition counts as cut."""
    values = {
        "step_id": step_id,
        "run_id": run_id,
        "partition_id": partition.partition_id,
        "seen": key_text(partition.cut_to),
        "is_first": int(partition.is_untouched),
        "actor": actor,
    }
    return session.once(CLOSE_EMPTY, values)


def renew(session: Session, token: str, lease_seconds: float) -> bool:
    """Push the lease of a claim that nobody has taken; False if it is finished, taken or locked."""
    return session.once(RENEW, {"token": token, "lease_seconds": lease_seconds})


def release(
    session: Session,
    claimed: Claim,
    *,
    to_state: str,
    outcome: str,
    kind: str | None = None,
    failure: str | None = None,
    tries: int = 0,
    losses: int = 0,
    delay_seconds: float = 0.0,
    owner: Owner | None = None,
) -> bool:
    """End an attempt without its effects and write its history row; False if it had ended already."""
    values = {
        "chunk_id": claimed.chunk_id,
        "run_id": claimed.run_id,
        "fence": claimed.fence,
        "token": claimed.token,
        "to_state": to_state,
        "outcome": outcome,
        "kind": kind,
        "failure": None if failure is None else storable(mask_text(failure)),
        "tries": tries,
        "losses": losses,
        "delay_seconds": delay_seconds,
        "node": owner.node_id if owner else None,
        "slot": owner.slot if owner else None,
    }
    return session.once(RELEASE, values)


def split(session: Session, claimed: Claim, middle: Key, failure: str, owner: Owner) -> bool:
    """Replace a chunk that was lost again and again by two halves, in one transaction."""
    values = {
        "step_id": claimed.step_id,
        "chunk_id": claimed.chunk_id,
        "run_id": claimed.run_id,
        "fence": claimed.fence,
        "token": claimed.token,
        "middle": key_text(middle),
        "outcome": "LOST",
        "kind": "CRASH",
        "failure": storable(mask_text(failure)),
        "node": owner.node_id,
        "slot": owner.slot,
    }
    return session.once(SPLIT, values)


def witness(session: Session, claimed: Claim, owner: Owner) -> int:
    """The first row of a work transaction; the guarded finish demands that it is still there.

    Raises ``LostClaim`` if whoever ended the attempt has written its history row already.
    """
    session.at("chunk.witness")
    statement = insert(tables.attempt).values(
        chunk_id=claimed.chunk_id,
        run_id=claimed.run_id,
        fence=claimed.fence,
        committed=1,
        outcome="COMPLETED",
        owner_node=owner.node_id,
        owner_slot=owner.slot,
        ended_at=_now(session),
    )
    try:
        key = session.connection.execute(statement).inserted_primary_key
    except DBAPIError as error:
        if session.dialect.classify(error) is not FailureKind.DUPLICATE:
            raise
        raise LostClaim(
            f"chunk {claimed.chunk_id}: the attempt with fence {claimed.fence} was ended by others"
        ) from error
    session.at("chunk.witness.after")
    assert key is not None
    return int(key[0])


def finish(
    session: Session,
    claimed: Claim,
    witness_id: int,
    counts: Counts,
    end: Key,
    version_sum: int,
) -> bool:
    """The guarded finish, inside the work transaction; False: roll back and walk away."""
    values = {
        "chunk_id": claimed.chunk_id,
        "fence": claimed.fence,
        "token": claimed.token,
        "witness": witness_id,
        "end_key": key_text(end),
        "version_sum": version_sum,
        **{name: getattr(counts, name) for name in tables.COUNTS},
    }
    return session.change("chunk.finish", _FINISH, values) == 1


def advance(session: Session, claimed: Claim, end: Key, *, is_last: bool) -> bool:
    """Strict order: move the partition's cursor to the chunk's end, in the same transaction."""
    values = {
        "partition_id": claimed.partition_id,
        "start_key": key_text(claimed.start),
        "end_key": key_text(end),
        "is_cut": int(is_last),
    }
    return session.change("partition.advance", _ADVANCE, values) == 1


def did_commit(session: Session, claimed: Claim) -> bool:
    """After a doubtful commit, its session ended: whether the chunk is COMPLETED with our token."""
    rows = session.fetch(
        "chunk.doubt",
        "SELECT state, token FROM batch_chunk WHERE id = :id" + session.dialect.row_lock,
        {"id": claimed.chunk_id},
    )
    return bool(rows) and tuple(rows[0]) == ("COMPLETED", claimed.token)


def key_text(key: Key) -> str:
    """A key as it is stored and compared: canonical JSON."""
    return json.dumps(key, sort_keys=True, separators=(",", ":"), ensure_ascii=True)


def _now(session: Session) -> Any:
    return text(session.dialect.now)
