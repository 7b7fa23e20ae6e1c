"""Plays one seed on a stage."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

from retoma.engine.history import Entry, no_log
from retoma.testing.simulation import night
from retoma.testing.simulation.actors import Scene
from retoma.testing.simulation.invariants import (
    Violation,
    Watch,
    at_the_end,
    effects_are_right,
)
from retoma.testing.simulation.setting import Script, Setting
from retoma.testing.simulation.stage import Stage
from retoma.testing.simulation.world import Stuck, World

_LIVENESS_SECONDS = 400.0
_JUMP_SECONDS = 30.0
Trace = Callable[[float, str, str], None]


@dataclass(frozen=True, slots=True)
class Played:
    """How a seed went: ``violation`` names the invariant that did not hold, if any."""

    seed: int
    violation: str | None
    text: str
    fired: Script
    statements: int
    seconds: float
    counters: dict[str, int] = field(default_factory=dict)


def play(
    stage: Stage, setting: Setting, trace: Trace | None = None, *, is_watched: bool = True
) -> Played:
    """Play a world to its end, looking at the tables after every commit.

    Not ``is_watched``: only the effects count, as somebody sees who tries a demo.
    """
    stage.reset(setting)
    world = World(setting, trace)
    watch = Watch(world, stage.query)
    failed: list[Violation] = []

    def watched(look: Callable[[], None]) -> None:
        try:
            look()
        except Violation as violation:
            world.tell(f"VIOLATION {violation}")
            failed.append(violation)
            world.is_stopped = True

    def on_commit() -> None:
        watched(watch.look)

    def told(entry: Entry) -> None:
        watched(lambda: watch.hear(entry))

    scene = Scene(world, stage, night.job_of(setting), told if is_watched else no_log)

    night.FATE.begin(world)
    stage.enter(world, on_commit if is_watched else lambda: None)
    try:
        for number in range(setting.launchers):
            scene.launcher(number)
        scene.keep_manned()
        _schedule(scene)
        limit = setting.storm_seconds + _LIVENESS_SECONDS
        world.run(limit)
    except Stuck as stuck:
        errors = "; ".join(sorted({f"{type(e).__name__}: {e}"[:200] for e in world.ended_by}))
        failed.append(Violation("run_ends", f"{stuck} {errors}".strip()))
    finally:
        world.end()
        stage.leave()
    if not failed:
        try:
            if is_watched:
                at_the_end(world, stage.query, watch.last_done)
            else:
                effects_are_right(world, stage.query, watch.last_done)
        except Violation as violation:
            failed.append(violation)
    return Played(
        seed=setting.seed,
        violation=failed[0].name if failed else None,
        text=str(failed[0]) if failed else "",
        fired=tuple(world.fired),
        statements=world.statements,
        seconds=world.now,
        counters=world.counters,
    )


def _schedule(scene: Scene) -> None:
    """What happens to the world as a whole, at instants that the seed draws."""
    world = scene.world
    fate = world.process("fate", "elsewhere")
    fate.is_mortal = False

    def event(kind: str, at: float, size: float) -> Callable[[], None]:
        def happen() -> None:
            world.wait(at)
            world.count(f"fault.{kind}")
            world.disturb()
            world.tell(f"fate: {kind}")
            if kind == "clock.forward":
                world.clock_offset += size * _JUMP_SECONDS
            elif kind == "clock.back":
                world.clock_offset -= size * _JUMP_SECONDS
            elif kind == "stop":
                scene.ask_to_stop()
            elif kind == "late":
                scene.let_a_row_come_late()
            else:
                scene.stage.restart()

        return happen

    for kind, _rate in world.setting.events:
        at = world.random.uniform(0.0, world.setting.storm_seconds)
        fault = world.fate(((kind, 1.0),))
        if fault is not None:
            world.start(fate, kind, event(kind, at, fault[1]))
