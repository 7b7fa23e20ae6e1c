"""Power gone in the middle: the same command goes on from what is committed."""

from __future__ import annotations

import random
import signal
import time

import pytest

from tests.cluster.programs import Program
from tests.cluster.proof import prove
from tests.cluster.scene import Scene

SEEDS = [pytest.param(seed, marks=() if seed < 2 else pytest.mark.campaign) for seed in range(20)]
SLOTS = 2


def freeze_half_done(scene: Scene, program: Program, source: random.Random) -> None:
    """Freeze everything at a random moment at which a chunk is half done."""
    for _ in range(100):
        time.sleep(source.uniform(0.0, 0.05))
        program.signal_all(signal.SIGSTOP)
        time.sleep(0.05)  # a commit that was on its way arrives meanwhile
        if scene.is_half_done():
            return
        program.signal_all(signal.SIGCONT)
    pytest.fail(f"no such moment came:\n{program.said()}")


@pytest.mark.parametrize("seed", SEEDS)
def test_everything_is_killed_and_the_same_command_goes_on(scene: Scene, seed: int) -> None:
    source = random.Random(seed)
    scene.settings |= {"RETOMA_TEST_ITEM_SECONDS": "0.02"}
    first = scene.run(slots=SLOTS)
    scene.wait_for_items(source.randint(1, scene.items // 2))
    freeze_half_done(scene, first, source)
    killed = len(first.slots())
    first.kill()
    calls = len(scene.seen())
    again = scene.run(slots=SLOTS)
    scene.wait_for_items(calls + 1)
    assert again.code() == 5, again.said()
    assert 1 <= sum(scene.repeated().values()) <= killed
    assert scene.one("SELECT count(*) FROM batch_run") == 1  # the same run was continued
    causes = [row[0] for row in scene.rows("SELECT failure FROM batch_attempt WHERE fence = 1")]
    assert "its worker is dead on this host" in causes
    prove(scene)
