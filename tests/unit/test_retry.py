"""Retries are bounded in number and in time, and spread."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from retoma.resilience.retry import RetryPolicy


@given(st.integers(1, 200), st.integers(0, 2**32), st.integers(1, 200))
def test_each_wait_lies_between_nothing_and_its_ceiling(failed: int, seed: int, tries: int) -> None:
    policy = RetryPolicy(tries=tries, first_seconds=0.1, longest_seconds=5.0)
    wait = policy.wait_seconds(failed, random.Random(seed))
    assert (wait is None) is (failed >= tries)
    if wait is not None:
        assert 0.0 <= wait <= min(5.0, 0.1 * 2 ** (failed - 1))


def test_waits_are_spread_over_their_whole_range() -> None:
    source = random.Random(7)
    policy = RetryPolicy(tries=10, first_seconds=1.0, longest_seconds=4.0)
    for failed, ceiling in ((1, 1.0), (2, 2.0), (3, 4.0), (9, 4.0)):
        waits = [policy.wait_seconds(failed, source) or 0.0 for _ in range(2_000)]
        assert min(waits) < 0.05 * ceiling
        assert 0.95 * ceiling < max(waits) <= ceiling
        assert abs(sum(waits) / len(waits) - ceiling / 2) < 0.05 * ceiling


def test_the_tries_of_the_default_policy_end_within_seconds() -> None:
    policy = RetryPolicy()
    waits = [policy.wait_seconds(failed, random.Random(1)) for failed in range(1, 6)]
    assert waits[-1] is None
    assert sum(wait for wait in waits if wait is not None) < 5
