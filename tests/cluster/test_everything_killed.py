"""Power gone in the middle: the same command goes on from what is committed."""

from __future__ import annotations

import random
import time

import pytest

from tests.cluster.programs import until
from tests.cluster.proof import prove
from tests.cluster.scene import Scene

SEEDS = [pytest.param(seed, marks=() if seed < 2 else pytest.mark.campaign) for seed in range(20)]
SLOTS = 2


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_killed_and_the_same_command_goes_on(scene: Scene, seed: int) -> None:
    source = random.Random(seed)
    scene.settings |= {"RETOMA_TEST_ITEM_SECONDS": "0.01"}
    first = scene.run(slots=SLOTS)
    scene.wait_for_items(source.randint(1, scene.items * 2 // 3))
    time.sleep(source.uniform(0.0, 0.1))
    until("a chunk is half done", scene.is_half_done)
    killed = len(first.slots())
    first.kill()
    began = time.monotonic()
    again = scene.run(slots=SLOTS)
    assert again.code() == 5, again.said()
    assert time.monotonic() - began < 10.0, "it waited for a lease of processes proven dead"
    assert 1 <= sum(scene.repeated().values()) <= killed
    assert scene.one("SELECT count(*) FROM batch_run") == 1  # the same run was continued
    prove(scene)
