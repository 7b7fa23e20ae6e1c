"""Renew, finish, give back, take over: only who holds the claim may, and each attempt ends once."""

from __future__ import annotations

import json
import time
from dataclasses import replace

import pytest

from retoma.cluster import takeover
from retoma.errors import LostClaim
from retoma.model.records import Claim, Counts
from retoma.store import chunks, progress, tables
from retoma.store.session import Session
from retoma.store.store import Store
from tests.store.scene import LEASE, OWNER, Scene, add_pending, row_of, rows_of, scene


def claimed_chunk(store: Store) -> tuple[Scene, Claim]:
    made = scene(store, store.control())
    add_pending(made, 1)
    claimed = made.claim()
    assert claimed is not None
    return made, claimed


def test_a_lease_is_renewed_by_its_token_alone(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    before = rows_of(made.session, tables.chunk)[0].lease_until
    assert chunks.renew(made.session, claimed.token, 50.0)
    after = rows_of(made.session, tables.chunk)[0].lease_until
    assert (after - before).total_seconds() > 25
    assert not chunks.renew(made.session, "other", 50.0)


def test_an_expired_lease_that_nobody_took_may_be_renewed(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert chunks.renew(made.session, claimed.token, -5.0)
    assert progress.running_chunks(made.session)[0].is_expired
    assert chunks.renew(made.session, claimed.token, LEASE)
    assert not progress.running_chunks(made.session)[0].is_expired


def test_nothing_is_renewed_after_the_attempt_ended(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert made.give_back(claimed)
    assert not chunks.renew(made.session, claimed.token, LEASE)
    again = made.claim()
    assert again is not None
    assert not chunks.renew(made.session, claimed.token, LEASE)
    assert made.finish(again)
    assert not chunks.renew(made.session, again.token, LEASE)


def test_renewing_skips_a_locked_chunk_instead_of_waiting(server_store: Store) -> None:
    made, claimed = claimed_chunk(server_store)
    work = server_store.work()
    work.begin("work.begin")
    witness = chunks.witness(work, claimed, OWNER)
    assert chunks.finish(work, claimed, witness, Counts(), 1, 0)
    begun = time.monotonic()
    assert not chunks.renew(made.session, claimed.token, LEASE)
    assert time.monotonic() - begun < 1.0
    work.abandon()
    assert chunks.renew(made.session, claimed.token, LEASE)


def test_a_finish_stores_counts_end_and_the_committed_attempt(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert made.finish(claimed, end=77)
    row = row_of(made.session, tables.chunk, claimed.chunk_id)
    assert (row.state, row.end_key, row.first_reads, row.done) == ("COMPLETED", "77", 3, 3)
    attempts = rows_of(made.session, tables.attempt)
    assert [(a.chunk_id, a.fence, a.outcome, a.committed) for a in attempts] == [
        (claimed.chunk_id, 1, "COMPLETED", 1)
    ]


@pytest.mark.parametrize("wrong", ["fence", "token", "state", "witness"])
def test_a_finish_is_refused_if_one_thing_is_not_as_expected(store: Store, wrong: str) -> None:
    made, claimed = claimed_chunk(store)
    if wrong == "state":
        made.session.change("t", "UPDATE batch_chunk SET state = 'FAILED'")
    stale = {
        "fence": replace(claimed, fence=claimed.fence + 1),
        "token": replace(claimed, token="0" * 32),
    }.get(wrong, claimed)
    work = store.work()
    work.begin("work.begin")
    witness = chunks.witness(work, claimed, OWNER) + (1 if wrong == "witness" else 0)
    assert not chunks.finish(work, stale, witness, Counts(), 1, 0)
    work.abandon()
    assert rows_of(made.session, tables.chunk)[0].state != "COMPLETED"
    assert rows_of(made.session, tables.attempt) == []


def test_the_witness_of_another_chunk_does_not_count(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    other = made.cut(50)
    assert other is not None
    work = store.work()
    work.begin("work.begin")
    witness = chunks.witness(work, other, OWNER)
    assert not chunks.finish(work, claimed, witness, Counts(), 1, 0)
    work.abandon()


def test_a_chunk_commits_once(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert made.finish(claimed)
    with pytest.raises(LostClaim):
        made.finish(claimed)
    assert len(rows_of(made.session, tables.attempt)) == 1


def test_an_attempt_given_back_leaves_its_history_and_frees_the_chunk(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert made.give_back(
        claimed, outcome="FAILED", kind="TRANSIENT", failure="CPF 529.982.247-25", tries=1,
        owner=OWNER,
    )  # fmt: skip
    row = row_of(made.session, tables.chunk, claimed.chunk_id)
    assert (row.state, row.token, row.owner_pid, row.lease_until) == ("PENDING", None, None, None)
    assert (row.tries, row.losses, row.failure_kind) == (1, 0, "TRANSIENT")
    attempt = rows_of(made.session, tables.attempt)[0]
    assert (attempt.outcome, attempt.committed, attempt.fence) == ("FAILED", None, 1)
    assert (attempt.owner_node, attempt.owner_slot) == (OWNER.node_id, OWNER.slot)
    assert "982" not in row.failure + attempt.failure


def test_an_attempt_ends_only_once(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    assert made.give_back(claimed)
    assert not made.give_back(claimed)
    assert len(rows_of(made.session, tables.attempt)) == 1


@pytest.mark.parametrize("wrong", ["fence", "token"])
def test_nobody_gives_back_what_is_not_his(store: Store, wrong: str) -> None:
    made, claimed = claimed_chunk(store)
    stale = replace(claimed, **({"fence": 2} if wrong == "fence" else {"token": "0" * 32}))
    assert not made.give_back(stale)
    assert rows_of(made.session, tables.attempt) == []
    assert rows_of(made.session, tables.chunk)[0].state == "RUNNING"


def seen_running(store: Store, session: Session) -> takeover.Running:
    return takeover.running_from(store, session, progress.running_chunks(session)[0])


def test_a_takeover_writes_lost_and_the_old_owner_is_refused(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    seen = seen_running(store, made.session)
    assert (seen.claim, seen.owner) == (claimed, OWNER)
    assert takeover.end_lost(store, made.session, seen, "its lease ran out")
    row = row_of(made.session, tables.chunk, claimed.chunk_id)
    assert (row.state, row.tries, row.losses) == ("PENDING", 0, 1)
    assert [a.outcome for a in rows_of(made.session, tables.attempt)] == ["LOST"]
    again = made.claim()
    assert again is not None
    assert again.fence == claimed.fence + 1
    with pytest.raises(LostClaim):
        made.finish(claimed)  # the history row of its fence stands already
    assert made.finish(again)
    assert not takeover.end_lost(store, made.session, seen, "its lease ran out")
    assert rows_of(made.session, tables.chunk)[0].state == "COMPLETED"


def test_a_chunk_lost_three_times_is_split_and_its_halves_adjoin(store: Store) -> None:
    made = scene(store, store.control())
    claimed = made.cut(100)
    assert claimed is not None
    for losses in (1, 2, 3):
        version = made.step().version
        assert takeover.end_lost(store, made.session, seen_running(store, made.session), "lost")
        first, *halves = rows_of(made.session, tables.chunk)
        assert (first.losses, first.token) == (losses, None)
        assert first.state == ("SPLIT" if losses == 3 else "PENDING")
        if losses < 3:
            assert made.step().version == version
            assert made.claim() is not None
    ranges = sorted((json.loads(c.start_key), json.loads(c.end_key)) for c in halves)
    assert ranges == [(0, 50), (50, 100)]
    assert {(c.state, c.fence, c.losses) for c in halves} == {("PENDING", 0, 0)}
    assert made.step().version == version + 1  # a close that looked before the split is refused
    assert [a.outcome for a in rows_of(made.session, tables.attempt)] == ["LOST"] * 3


def test_only_the_owners_attempt_is_split(store: Store) -> None:
    made, claimed = claimed_chunk(store)
    for stale in (replace(claimed, fence=2), replace(claimed, token="0" * 32)):
        assert not chunks.split(made.session, stale, 0, "lost", OWNER)
    assert made.finish(claimed)
    assert not chunks.split(made.session, claimed, 0, "lost", OWNER)
    assert len(rows_of(made.session, tables.chunk)) == 1


def test_a_crashed_slot_counts_as_a_try_and_the_fifth_fails_the_chunk(store: Store) -> None:
    made, _ = claimed_chunk(store)
    for tries in range(1, 6):
        assert takeover.end_crashed(store, made.session, seen_running(store, made.session), "SEGV")
        row = rows_of(made.session, tables.chunk)[0]
        assert (row.tries, row.losses) == (tries, 0)
        assert row.state == ("FAILED" if tries == 5 else "PENDING")
        assert (made.claim() is None) is (tries == 5)


def test_what_is_given_back_on_request_counts_for_nothing(store: Store) -> None:
    made, _ = claimed_chunk(store)
    assert takeover.give_back(store, made.session, seen_running(store, made.session), "asked")
    row = rows_of(made.session, tables.chunk)[0]
    assert (row.state, row.tries, row.losses) == ("PENDING", 0, 0)
    assert [a.outcome for a in rows_of(made.session, tables.attempt)] == ["GIVEN_BACK"]


@pytest.mark.slow
def test_a_release_does_not_wait_long_for_a_locked_chunk(server_store: Store) -> None:
    made, claimed = claimed_chunk(server_store)
    work = server_store.work()
    work.begin("work.begin")
    witness = chunks.witness(work, claimed, OWNER)
    assert chunks.finish(work, claimed, witness, Counts(), 1, 0)
    begun = time.monotonic()
    with pytest.raises(Exception) as caught:
        made.give_back(claimed)
    assert server_store.kind_of(caught.value) == "TRANSIENT"
    assert time.monotonic() - begun < 6.5
    work.commit("work.commit")
    assert not made.give_back(claimed)
