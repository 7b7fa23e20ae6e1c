"""Which cells the matrix has: every point, with each action, on each victim, less what makes no sense.

What is left out, by rule:

1. A point is hit only on the databases where it is passed.
2. After a read nothing has changed: it is hit before it only.
3. A slot is a victim only at the points that a slot passes.
4. Before a worker has slots, supervisor and worker are the same: only the supervisor is hit.
"""

from __future__ import annotations

import difflib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from retoma.crash_points import CATALOGUE, CrashPoint, Passer
from retoma.errors import UsageError


class Action(StrEnum):
    """What is done to the victim."""

    KILL = "kill"  # SIGKILL
    STOP = "stop"  # SIGSTOP, past the lease, then SIGCONT


class Victim(StrEnum):
    """Who is hit: the process at the point stands still until then."""

    SLOT = "slot"
    SUPERVISOR = "supervisor"
    WORKER = "worker"  # the supervisor and all its slots


class Scene(StrEnum):
    """What happens before the point is passed; most points need nothing."""

    PLAIN = "plain"
    SLOW = "slow"  # the first chunks take longer than the time between two renewals
    DEATH = "death"  # a slot has died with a chunk in hand
    LOST = "lost"  # a worker has died with its chunks in hand
    WAITING = "waiting"  # a dead worker's chunks wait to be claimed again
    SPLIT = "split"  # a chunk was lost twice and is held by a third dead worker
    OVERTAKEN = "overtaken"  # the worker was frozen until another took its chunks
    STOPPED = "stopped"  # an operator asks for a stop
    LEAVING = "leaving"  # a worker is told to leave while the run is live
    BROKEN_PLAN = "broken plan"  # the plan fails
    AGAIN = "again"  # the run before this one has failed


_SCENES: dict[str, tuple[Scene, ...]] = {
    "run.relaunch": (Scene.AGAIN,),
    "chunk.renew": (Scene.SLOW,),
    "run.renew": (Scene.SLOW,),
    "node.silent": (Scene.SLOW,),
    "sweep.running": (Scene.LOST,),
    "node.identity": (Scene.LOST,),
    "zombie.find": (Scene.LOST,),
    "zombie.end": (Scene.LOST,),
    "chunk.release": (Scene.DEATH, Scene.LOST),
    "chunk.split": (Scene.SPLIT,),
    "run.put_down": (Scene.LEAVING,),
    "step.shut": (Scene.STOPPED,),
    "run.end": (Scene.BROKEN_PLAN,),
    "chunk.claim": (Scene.WAITING,),
    "writer.existing": (Scene.WAITING,),
    "slot.walked_away": (Scene.OVERTAKEN,),
}


@dataclass(frozen=True, slots=True)
class Cell:
    """One square of the matrix."""

    point: str
    passer: Passer
    scene: Scene
    action: Action
    victim: Victim

    @property
    def is_hit_by_itself(self) -> bool:
        """Whether the victim is just the process that passes the point."""
        if self.passer is Passer.SLOT:
            return self.victim is Victim.SLOT
        return self.victim is Victim.SUPERVISOR


def _victims(point: CrashPoint) -> tuple[Victim, ...]:
    if point.passer is Passer.LAUNCHER:
        return (Victim.SUPERVISOR,)
    if point.passer is Passer.SUPERVISOR:
        return (Victim.SUPERVISOR, Victim.WORKER)
    return tuple(Victim)


def all_cells(database: str) -> list[Cell]:
    """Every cell of the matrix on a database, in the order of the catalogue."""
    return [
        Cell(name, point.passer, scene, action, victim)
        for point in CATALOGUE
        for name in point.names(database)
        for scene in _SCENES.get(point.name, (Scene.PLAIN,))
        for action in Action
        for victim in _victims(point)
    ]


def chosen(
    database: str, points: Sequence[str] = (), sample: int | None = None, seed: int = 0
) -> list[Cell]:
    """The cells of the named points (all if none is named), or so many of them, drawn by ``seed``.

    A point's base name stands for all its names. Raises ``UsageError`` for a name that is not passed
    on this database.
    """
    cells = all_cells(database)
    if points:
        names = {name for point in points for name in _names(database, point)}
        cells = [cell for cell in cells if cell.point in names]
    if sample is not None and sample < len(cells):
        kept = set(random.Random(seed).sample(range(len(cells)), sample))
        cells = [cell for place, cell in enumerate(cells) if place in kept]
    return cells


def _names(database: str, wanted: str) -> tuple[str, ...]:
    known = {point.name: point.names(database) for point in CATALOGUE}
    if known.get(wanted):
        return known[wanted]
    every = sorted(name for names in known.values() for name in names)
    if wanted in every:
        return (wanted,)
    near = difflib.get_close_matches(wanted, every, n=3, cutoff=0.6)
    raise UsageError(
        f"{wanted!r} is no crash point on {database}",
        safe="Nothing was started.",
        next_step=f"did you mean {', '.join(near)}?" if near else "see docs/reference/chaos.md",
    )
