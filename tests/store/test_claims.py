"""Claim and cut: each chunk has at most one owner, and its fence only rises."""

from __future__ import annotations

from sqlalchemy import text

from retoma.model.items import PartitionPlan
from retoma.model.records import Claim
from retoma.store import chunks, tables
from retoma.store.session import Session
from retoma.store.store import Store
from tests.store.scene import LEASE, OWNER, Scene, add_pending, at_once, history, rows_of, scene


def test_eight_threads_claim_each_waiting_chunk_exactly_once(store_url: str, store: Store) -> None:
    made = scene(store, store.control())
    waiting = add_pending(made, 40)

    def act(own_store: Store, own: Session) -> list[Claim]:
        mine = []
        while claimed := chunks.claim(own_store, own, made.step_id, made.run.run_id, OWNER, LEASE):
            mine.append(claimed)
        return mine

    claims = [claimed for mine in at_once(store_url, [act] * 8) for claimed in mine]
    # A thread stops when all that waits is locked by others, so the rest is claimed afterwards.
    claims += act(store, made.session)
    assert sorted(claimed.chunk_id for claimed in claims) == waiting
    assert len({claimed.token for claimed in claims}) == 40
    assert {claimed.fence for claimed in claims} == {1}


def test_fences_strictly_rise_while_eight_threads_claim_and_give_back(
    store_url: str, store: Store
) -> None:
    made = scene(store, store.control())
    waiting = add_pending(made, 3)

    def act(own_store: Store, own: Session) -> list[tuple[int, int]]:
        seen = []
        for _ in range(10):
            claimed = chunks.claim(own_store, own, made.step_id, made.run.run_id, OWNER, LEASE)
            if claimed is not None:
                seen.append((claimed.chunk_id, claimed.fence))
                assert chunks.release(own, claimed, to_state="PENDING", outcome="GIVEN_BACK")
        return seen

    seen = [pair for pairs in at_once(store_url, [act] * 8) for pair in pairs]
    assert len(seen) > 8
    for chunk_id in waiting:
        fences = sorted(fence for number, fence in seen if number == chunk_id)
        assert fences == list(range(1, len(fences) + 1))
    written = {(row.chunk_id, row.fence) for row in rows_of(made.session, tables.attempt)}
    assert written == set(seen)


def test_a_claim_says_who_owns_the_chunk_and_until_when(store: Store) -> None:
    made = scene(store, store.control())
    add_pending(made, 1)
    claimed = made.claim()
    assert claimed is not None
    row = rows_of(made.session, tables.chunk)[0]
    assert (row.state, row.token, row.fence) == ("RUNNING", claimed.token, 1)
    assert (row.owner_node, row.owner_slot, row.owner_pid) == (7, 1, 4242)
    assert LEASE - 5 < (row.lease_until - row.started_at).total_seconds() <= LEASE + 1
    assert claimed.session_name == f"rt:{store.name(made.session)}:{claimed.chunk_id}:1"
    assert len(claimed.session_name) < 64  # the longest name that a database keeps whole


def test_a_chunk_that_waits_for_its_retry_is_not_claimed_before(store: Store) -> None:
    made = scene(store, store.control())
    add_pending(made, 1)
    claimed = made.claim()
    assert claimed is not None
    assert made.give_back(claimed, delay_seconds=60.0, tries=1)
    assert made.claim() is None
    made.session.change("t", "UPDATE batch_chunk SET retry_at = {delay}", {"delay_seconds": -1})
    again = made.claim()
    assert again is not None
    assert (again.tries, again.fence) == (1, 2)


def test_a_chunk_of_a_step_that_is_not_running_is_not_claimed(store: Store) -> None:
    made = scene(store, store.control())
    add_pending(made, 1)
    for change in ("state = 'STOPPED'", "accepting = 0"):
        made.session.change("t", f"UPDATE batch_step SET {change}")
        assert made.claim() is None
        made.session.change("t", text("UPDATE batch_step SET state = 'RUNNING', accepting = 1"))
    assert made.claim() is not None


def test_one_of_eight_cuts_from_the_same_cursor(store_url: str, store: Store) -> None:
    made = scene(store, store.control())
    partition = made.partitions()[0]

    def act(own_store: Store, own: Session) -> Claim | None:
        return made.cut(10, partition, session=own)

    cuts = [claimed for claimed in at_once(store_url, [act] * 8) if claimed]
    assert [(claimed.start, claimed.end, claimed.fence) for claimed in cuts] == [(0, 10, 1)]
    assert len(rows_of(made.session, tables.chunk)) == 1
    assert made.partitions()[0].cut_to == 10


def test_cuts_adjoin_and_the_last_one_ends_the_partition(store: Store) -> None:
    made = scene(store, store.control(), plans=(PartitionPlan("all", 0, 25),))
    ends = (10, 20, 25)
    cuts = [made.cut(end) for end in ends]
    assert [(c.start, c.end) for c in cuts if c] == [(0, 10), (10, 20), (20, 25)]
    assert made.partitions() == []
    assert history(made.session, "partition") == [("PENDING", "CLAIMED")]


def test_a_cursor_that_is_no_number_is_compared_as_canonical_json(store: Store) -> None:
    low, high = {"offset": 0, "account": "ã"}, {"account": "ã", "offset": 9}
    made = scene(store, store.control(), plans=(PartitionPlan("file", low, high),))
    claimed = made.cut({"offset": 9, "account": "ã"})
    assert claimed is not None
    assert (claimed.start, claimed.end) == (low, high)
    assert made.partitions() == []


def test_a_partition_with_nothing_left_is_exhausted_once(store: Store) -> None:
    made = scene(store, store.control())
    seen = made.partitions()[0]
    values = (made.session, made.step_id, made.run.run_id, seen, "tester")
    assert chunks.exhaust(*values)
    assert not chunks.exhaust(*values)
    assert made.cut(10, seen) is None
    assert made.partitions() == []
    assert rows_of(made.session, tables.partition)[0].cut_to == "100"
    assert history(made.session, "partition") == [("PENDING", "CLAIMED")]


def strict(store: Store) -> Scene:
    return scene(store, store.control(), order="strict")


def test_a_strict_partition_has_one_live_chunk_at_a_time(store: Store) -> None:
    made = strict(store)
    partition = made.partitions()[0]
    first = made.cut(None)
    assert first is not None
    assert (first.start, first.end) == (0, None)
    assert made.partitions() == []
    assert made.cut(None, partition) is None
    assert rows_of(made.session, tables.partition)[0].cut_to == "0"


def test_a_strict_partition_stays_blocked_while_its_chunk_waits_or_failed(store: Store) -> None:
    made = strict(store)
    partition = made.partitions()[0]
    first = made.cut(None)
    assert first is not None
    assert made.give_back(first)
    assert made.cut(None, partition) is None
    again = made.claim()
    assert again is not None
    assert (again.chunk_id, again.fence, again.end) == (first.chunk_id, 2, None)
    assert made.give_back(again, to_state="FAILED", outcome="FAILED")
    assert made.cut(None, partition) is None
    assert made.partitions() == []


def test_the_cursor_of_a_strict_partition_moves_with_the_finish(store: Store) -> None:
    made = strict(store)
    first = made.cut(None)
    assert first is not None
    assert made.finish(first, end=30, is_last=False)
    after = rows_of(made.session, tables.partition)[0]
    assert (after.cut_to, after.is_cut, after.live_token) == ("30", 0, None)
    second = made.cut(None)
    assert second is not None
    assert second.start == 30
    assert made.finish(second, end=100, is_last=True)
    assert rows_of(made.session, tables.partition)[0].is_cut == 1
    assert history(made.session, "partition") == [("PENDING", "CLAIMED")]


def test_one_of_eight_cuts_a_strict_partition(store_url: str, store: Store) -> None:
    made = strict(store)
    partition = made.partitions()[0]

    def act(own_store: Store, own: Session) -> Claim | None:
        return made.cut(None, partition, session=own)

    assert len([claimed for claimed in at_once(store_url, [act] * 8) if claimed]) == 1
    assert len(rows_of(made.session, tables.chunk)) == 1
