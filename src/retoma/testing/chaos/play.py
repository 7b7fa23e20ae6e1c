"""One cell: set the scene, pass the point, hit the victim, take the run up again, prove it."""

from __future__ import annotations

import signal
from dataclasses import dataclass

from retoma.crash_points import Passer
from retoma.errors import ExitCode
from retoma.testing.chaos.cells import Action, Cell, Scene, Victim
from retoma.testing.chaos.programs import CellFailed, Program, send, until
from retoma.testing.chaos.proof import prove
from retoma.testing.chaos.stage import SLOTS, Stage

_SLOW = {"RETOMA_CHAOS_SLOW": "1.0"}
_SETTINGS = {
    Scene.SLOW: _SLOW,
    Scene.STOPPED: _SLOW,
    Scene.LEAVING: _SLOW,
    Scene.BROKEN_PLAN: {"RETOMA_CHAOS_BROKEN_PLAN": "1"},
}
_LOSSES_BEFORE_SPLIT = 2
_ROUNDS = 6
_DONE = (ExitCode.COMPLETED, ExitCode.SET_ASIDE)
# How a command may end that was hit, or that met one that was: each of them says "repeat me".
_LEFT = (-signal.SIGKILL, ExitCode.RESTARTABLE, ExitCode.RUNNING_ELSEWHERE, ExitCode.STOPPED)


@dataclass(slots=True)
class _Play:
    stage: Stage
    cell: Cell
    hit_slots: int = 0
    """How many slots were hit so far: no more chunks may have been worked on twice."""

    def whole(self) -> int:
        """Play the cell; how many chunks were repeated. Raises ``CellFailed`` if it is not clean."""
        self._before()
        program = self._begin()
        pid = self._arrive(program)
        self._strike(program, pid)
        self._take_up()
        return prove(self.stage, self.hit_slots)

    def _before(self) -> None:
        """What others did before the program starts that will pass the point."""
        scene = self.cell.scene
        if scene in (Scene.LOST, Scene.WAITING):
            self._lose_worker("before", SLOTS)
        if scene is Scene.WAITING:
            self.stage.take_back()
        if scene is Scene.SPLIT:
            self._lose_again_and_again()
        if scene is Scene.AGAIN:
            code = self.stage.run(settings=_SETTINGS[Scene.BROKEN_PLAN]).code()
            if code != ExitCode.NEEDS_PERSON:
                raise CellFailed(f"a run whose plan fails ended with exit code {code}")

    def _lose_worker(self, name: str, slots: int) -> None:
        marker = self.stage.marker(name)
        program = self.stage.run(f"chunk.processed=stop@{marker}", slots=slots)
        self.stage.reached(program, marker)
        program.kill()
        self.hit_slots += slots

    def _lose_again_and_again(self) -> None:
        for number in range(_ROUNDS):
            self._lose_worker(f"before-{number}", 1)
            if any(losses >= _LOSSES_BEFORE_SPLIT for _, losses in self.stage.running()):
                return
        raise CellFailed("the scene could not be set: no chunk was lost twice")

    def _begin(self) -> Program:
        """The program that will pass the point, with the fault armed."""
        cell, stage = self.cell, self.stage
        verb = "kill" if cell.action is Action.KILL and cell.is_hit_by_itself else "stop"
        faults = f"{cell.point}={verb}@{stage.marker('point')}"
        if cell.scene is Scene.DEATH:
            faults += f",chunk.processed=kill@{stage.marker('death')}"
            self.hit_slots += 1
        if cell.scene is Scene.OVERTAKEN:
            faults += f",chunk.processed=stop@{stage.marker('held')}"
        settings = _SETTINGS.get(cell.scene, {})
        start = stage.worker if cell.scene is Scene.LEAVING else stage.run
        return start(faults, settings)

    def _arrive(self, program: Program) -> int:
        """The process at the point, after what has to happen while the program runs."""
        stage = self.stage
        if self.cell.scene in (Scene.STOPPED, Scene.LEAVING):
            until("it works", lambda: stage.seen() or not program.is_alive, 30.0)
            send(program.pid, signal.SIGTERM)
        if self.cell.scene is Scene.OVERTAKEN:
            stage.reached(program, stage.marker("held"))
            program.signal_all(signal.SIGSTOP)
            stage.run(slots=1)
            stage.hold()
            program.signal_all(signal.SIGCONT)
            self.hit_slots += SLOTS
        return stage.reached(program, stage.marker("point"))

    def _strike(self, program: Program, pid: int) -> None:
        victim = self.cell.victim
        if self.cell.passer is not Passer.LAUNCHER:
            self.hit_slots += 1 if victim is Victim.SLOT else SLOTS
        if self.cell.action is Action.KILL:
            if victim is Victim.SUPERVISOR:  # its slots must end by themselves, frozen or not
                send(program.pid, signal.SIGKILL)
                until("slots end with their supervisor", lambda: not program.family(), 10.0)
            elif victim is Victim.WORKER:
                program.kill()
            return
        if victim is Victim.WORKER:
            program.signal_all(signal.SIGSTOP)
        elif victim is Victim.SUPERVISOR:
            send(program.pid, signal.SIGSTOP)
            if self.cell.passer is Passer.SLOT:
                send(pid, signal.SIGCONT)
        if victim is not Victim.SLOT:
            self.stage.run(slots=1)
        self.stage.hold()
        program.signal_all(signal.SIGCONT)

    def _take_up(self) -> None:
        """Everything ends by itself; repeated until the run is complete."""
        for _ in range(_ROUNDS):
            for program in self.stage.programs:
                self._end(program)
            run = self.stage.latest_run()
            if run is not None and run.instance_state == "COMPLETED":
                return
            self.stage.run(slots=1)
        raise CellFailed(f"the run did not end in {_ROUNDS} rounds")

    def _end(self, program: Program) -> None:
        allowed = {*_DONE, *_LEFT}
        if self.cell.scene in (Scene.BROKEN_PLAN, Scene.AGAIN):
            allowed.add(ExitCode.NEEDS_PERSON)
        code = program.code()
        if code not in allowed:
            raise CellFailed(f"a command ended with exit code {code} ({program.log.name})")


def play(stage: Stage, cell: Cell) -> int:
    """Play the cell; how many chunks were repeated. Raises ``CellFailed`` if it is not clean."""
    try:
        return _Play(stage, cell).whole()
    finally:
        stage.close()
