"""Nobody is judged by one reading of a clock."""

from __future__ import annotations

from retoma.cluster.suspicion import Suspicion

MARK = (1, "2026-11-30 01:00:00")


def test_a_lease_is_taken_after_it_stood_still_for_long_enough() -> None:
    suspicion = Suspicion(6.0)
    assert suspicion.observe([("chunk", MARK)], 100.0) == set()
    assert suspicion.observe([("chunk", MARK)], 105.9) == set()
    assert suspicion.observe([("chunk", MARK)], 106.0) == {"chunk"}
    assert suspicion.observe([("chunk", MARK)], 120.0) == {"chunk"}


def test_a_single_look_takes_nothing_however_late_it_comes() -> None:
    assert Suspicion(6.0).observe([("chunk", MARK)], 1e9) == set()


def test_a_jump_of_the_databases_clock_takes_nothing_from_those_who_renew() -> None:
    suspicion = Suspicion(6.0)
    for second in range(60):
        mark = (1, f"renewed {second // 5}")  # every lease counts as expired, but it moves
        assert suspicion.observe([("chunk", mark)], float(second)) == set()


def test_what_no_longer_counts_as_expired_starts_anew() -> None:
    suspicion = Suspicion(6.0)
    suspicion.observe([("chunk", MARK)], 0.0)
    assert suspicion.observe([], 3.0) == set()
    assert suspicion.observe([("chunk", MARK)], 7.0) == set()
    assert suspicion.observe([("chunk", MARK)], 13.0) == {"chunk"}


def test_a_new_owner_of_the_same_chunk_starts_anew() -> None:
    suspicion = Suspicion(6.0)
    suspicion.observe([("chunk", MARK)], 0.0)
    assert suspicion.observe([("chunk", (2, MARK[1]))], 7.0) == set()


def test_a_sweep_that_failed_starts_all_waiting_anew() -> None:
    suspicion = Suspicion(6.0)
    suspicion.observe([("chunk", MARK)], 0.0)
    suspicion.forget()
    assert suspicion.observe([("chunk", MARK)], 30.0) == set()


def test_each_lease_has_its_own_time() -> None:
    suspicion = Suspicion(6.0)
    suspicion.observe([("old", MARK)], 0.0)
    suspicion.observe([("old", MARK), ("new", MARK)], 4.0)
    assert suspicion.observe([("old", MARK), ("new", MARK)], 7.0) == {"old"}
