"""The world of one seed: a virtual clock, processes whose tasks take turns, and the faults they meet.

Tasks are greenlets in one thread. Whoever comes to a point gives the turn away; the task whose time
has come first goes on. So a run depends on nothing but its seed.
"""

from __future__ import annotations

import heapq
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from greenlet import getcurrent, greenlet

from retoma.testing.simulation.setting import Setting

_MOST_CLOCK_ERROR_SECONDS = 300.0
_WAKING_SECONDS = 4.0
_WORK = ("work.begin", "work.enter", "work.commit", "chunk.witness", "chunk.finish", "insert.")

_COORDINATION = ("step.", "run.end")


class Died(BaseException):
    """Thrown into the tasks of a dead process; no handler of errors may catch it."""


class Stuck(Exception):
    """Nothing can go on any more, or the end did not come in time."""


@dataclass(eq=False, slots=True)
class Task:
    """One thread of a process."""

    process: Process
    turn: greenlet
    name: str


@dataclass(eq=False, slots=True)
class Process:
    """A simulated process: its tasks and connections live and die with it."""

    world: World
    pid: int
    name: str
    host: str
    parent: Process | None = None
    born: float = 0.0
    is_alive: bool = True
    is_mortal: bool = True
    frozen_until: float = 0.0
    code: int | None = None
    connections: list[Any] = field(default_factory=list)
    children: list[Process] = field(default_factory=list)
    clock_error: float = 0.0
    """By how many seconds the clock of its host is wrong."""

    @property
    def is_frozen(self) -> bool:
        """Whether it stands still now."""
        return self.frozen_until > self.world.now


@dataclass(slots=True)
class World:
    """Time, turns and fate."""

    setting: Setting
    trace: Callable[[float, str, str], None] | None = None
    now: float = 0.0
    clock_offset: float = 0.0
    """By how much the database's clock is wrong."""

    processes: dict[int, Process] = field(default_factory=dict)
    fired: list[tuple[int, str, float]] = field(default_factory=list)
    decisions: int = 0
    disturbed_until: float = -1e9
    """When the last fault was over, but for those of the job's own code."""

    statements: int = 0
    counters: dict[str, int] = field(default_factory=dict)
    is_stopped: bool = False
    """Nobody gets a turn any more."""

    is_complete: bool = False
    """What was to be done is done: it ends when all have woken."""

    is_over: bool = False
    ended_by: list[Exception] = field(default_factory=list)
    """What ended tasks that were not killed."""

    on_kill: Callable[[Process], None] = lambda _process: None
    on_turn: Callable[[float], None] | None = None
    """Told the instant (with the clock's error) before somebody goes on."""

    _queue: list[tuple[float, int, Task]] = field(default_factory=list)
    _sequence: int = 0
    _limit: float = float("inf")
    _hub: greenlet = field(default_factory=getcurrent)
    _current: Task | None = None
    _random: random.Random = field(init=False)
    _script: dict[int, tuple[str, float]] | None = None

    def __post_init__(self) -> None:
        self._random = random.Random(self.setting.seed)
        if self.setting.script is not None:
            self._script = {number: (kind, size) for number, kind, size in self.setting.script}

    @property
    def current(self) -> Process | None:
        """The process whose turn it is."""
        return self._current.process if self._current else None

    @property
    def moment(self) -> int:
        """A number that is higher with each turn: what happened before what."""
        return self._sequence

    @property
    def watchman(self) -> Process:
        """A process that nothing can end, for what happens outside all the others."""
        found = self.processes.get(0)
        if found is None:
            found = self.processes[0] = Process(self, 0, "watchman", "elsewhere", is_mortal=False)
        return found

    @property
    def random(self) -> random.Random:
        """The one source of chance."""
        return self._random

    def count(self, name: str) -> None:
        """A rare branch was reached."""
        self.counters[name] = self.counters.get(name, 0) + 1

    def disturb(self, seconds: float = 0.0) -> None:
        """A fault, or a crowd, that lasts so long: a healthy owner may lose its lease by it."""
        self.disturbed_until = max(self.disturbed_until, self.now + seconds)

    def tell(self, text: str) -> None:
        """A line of the trace."""
        if self.trace is not None:
            who = self._current.process.name if self._current else "world"
            self.trace(self.now, who, text)

    # -- processes ------------------------------------------------------------------------------

    def process(self, name: str, host: str, parent: Process | None = None) -> Process:
        """A new process without tasks."""
        pid = 1000 + len(self.processes)
        found = Process(self, pid, f"{name}#{pid}", host, parent, born=self.now)
        found.clock_error = self._clock_error(host)
        self.processes[pid] = found
        if parent is not None:
            parent.children.append(found)
        return found

    def _clock_error(self, host: str) -> float:
        """Drawn apart, so that it changes nobody's turn."""
        source = random.Random(f"clock of {host} in {self.setting.seed}")
        return source.uniform(-_MOST_CLOCK_ERROR_SECONDS, _MOST_CLOCK_ERROR_SECONDS)

    def start(self, process: Process, name: str, work: Callable[[], None]) -> None:
        """Begin a task of a process; what it raises ends its process."""

        def run() -> None:
            try:
                work()
            except Died:
                return
            except Exception as error:  # noqa: BLE001 - whatever ends a task is looked at afterwards
                if self.is_over:
                    return
                self.ended_by.append(error)
                self.tell(f"{name} ended by {type(error).__name__}: {str(error)[:200]}")
                self.kill(process, code=1)

        self._push(Task(process, greenlet(run, self._hub), name), self.now)

    def kill(self, process: Process, code: int = -9) -> None:
        """End a process at once; its slots go with it, as the kernel sees to it."""
        if not process.is_alive:
            return
        process.is_alive, process.code = False, code
        self.disturb()
        self.tell(f"{process.name} dies")
        self.on_kill(process)
        for child in process.children:
            self.kill(child)

    def freeze(self, process: Process, seconds: float) -> None:
        """SIGSTOP, and SIGCONT after a while."""
        process.frozen_until = max(process.frozen_until, self.now + seconds)
        self.disturb(seconds)
        self.tell(f"{process.name} stands still for {seconds:.1f} s")

    def thaw(self) -> None:
        """SIGCONT to everybody."""
        for process in self.processes.values():
            process.frozen_until = min(process.frozen_until, self.now)

    # -- turns ----------------------------------------------------------------------------------

    def wait(self, seconds: float) -> None:
        """Let time pass for the task whose turn it is."""
        task = self._current
        if task is None:
            return
        process = task.process
        if not process.is_alive:
            raise Died
        at = self.now + seconds
        if self._is_next(at) and process.frozen_until <= at:
            self._sequence += 1
            self.now = at
            if self.on_turn is not None:
                self.on_turn(at + self.clock_offset)
            return
        self._push(task, at)
        self._hub.switch()
        if not process.is_alive:
            raise Died

    def _is_next(self, at: float) -> bool:
        """Whether nobody else would get the turn before: then giving it away changes nothing."""
        queue = self._queue
        is_running = not self.is_stopped and not self.is_complete and at <= self._limit
        return is_running and (not queue or queue[0][0] > at)

    def _all_are_awake(self) -> bool:
        """Whoever stood still at the end has woken since, and had time to do harm."""
        frozen = [one.frozen_until for one in self.processes.values() if one.is_alive]
        return max(frozen) + _WAKING_SECONDS <= self.now

    def _push(self, task: Task, at: float) -> None:
        self._sequence += 1
        heapq.heappush(self._queue, (at, self._sequence, task))

    def run(self, limit: float) -> None:
        """Give turns until it is done; raises ``Stuck`` if time runs out."""
        queue, self._limit = self._queue, limit
        while not self.is_stopped and not (self.is_complete and self._all_are_awake()):
            if not queue:
                raise Stuck("nobody is left who could go on")
            at, _, task = heapq.heappop(queue)
            process = task.process
            if process.frozen_until > at and process.is_alive:
                self._push(task, process.frozen_until)
                continue
            if at > self.now:
                self.now = at
                if at > limit:
                    raise Stuck(f"not over after {limit:.0f} s of virtual time")
            self._give_turn(task)

    def _give_turn(self, task: Task) -> None:
        if self.on_turn is not None:
            self.on_turn(self.now + self.clock_offset)
        self._current = task
        try:
            if task.process.is_alive:
                task.turn.switch()
            elif task.turn:  # it has begun: let it unwind, which reaches no database any more
                task.turn.throw(Died)
        finally:
            self._current = None

    def end(self) -> None:
        """End all that is still there."""
        self.is_over = True
        for process in self.processes.values():
            self.kill(process)
        while self._queue:
            _, _, task = heapq.heappop(self._queue)
            self._give_turn(task)

    # -- fate -----------------------------------------------------------------------------------

    def point(self, name: str) -> None:
        """What every statement passes: others may go on first, and fate may strike."""
        task = self._current
        if task is None or name.endswith(".after"):
            return
        self.statements += 1
        if self.trace is not None:
            self.trace(self.now, task.process.name, name)
        self.wait(self._latency())
        if not task.process.is_mortal:
            return
        fault = self.fate(self._rates_at(name))
        if fault is not None:
            self._strike(task.process, *fault)

    def _rates_at(self, name: str) -> tuple[tuple[str, float], ...]:
        if name.startswith(_WORK):
            return self.setting.rates_in_work
        if name.startswith(_COORDINATION) and self.setting.rates_in_coordination:
            return self.setting.rates_in_coordination
        return self.setting.rates_at_statements

    def _latency(self) -> float:
        chance = self._random.random()
        mean = self.setting.latency
        if chance > self.setting.slow_share:
            return chance * mean
        seconds = self._random.random() * self.setting.slow_seconds
        self.disturb(seconds)
        return seconds

    def fate(self, rates: tuple[tuple[str, float], ...]) -> tuple[str, float] | None:
        """Which of these faults happens now, with its size; none once the storm is over."""
        self.decisions += 1
        if self.now > self.setting.storm_seconds or not rates:
            return None
        chance = self._random.random()
        if self._script is not None:  # chance is drawn all the same: the turns must be the same
            found = self._script.get(self.decisions)
            if found is None or all(kind != found[0] for kind, _ in rates):
                return None
            self._random.random()
            self.fired.append((self.decisions, *found))
            return found
        for kind, rate in rates:
            if chance < rate:
                size = self._random.random()
                self.fired.append((self.decisions, kind, size))
                return kind, size
            chance -= rate
        return None

    def commit(
        self,
        act: Callable[[], Any],
        committed: Callable[[], None],
        lose: Callable[[str], Exception],
    ) -> Any:
        """Commit something; fate may break the connection before or after (``lose`` gives the error)."""
        fault = self.fate(self.setting.rates_at_commits)
        kind = fault[0] if fault else ""
        if kind:
            self.disturb()
            self.count(f"fault.{kind}")
            self.tell(f"fate: {kind}")
        if kind == "lost.rolled_back":
            raise lose("the connection broke before the commit arrived")
        found = act()
        committed()
        if kind == "lost.committed":
            raise lose("the connection broke before the commit's answer arrived")
        return found

    def _strike(self, process: Process, kind: str, size: float) -> None:
        self.count(f"fault.{kind}")
        victim = process
        if kind.endswith(("worker", "supervisor")):
            victim = process.parent or process
        if kind.startswith("kill"):
            self.kill(victim)
            if victim is not process and process.is_alive:
                return
            raise Died
        seconds = (0.4 + 0.6 * size) * self.setting.freeze_seconds
        self.freeze(victim, seconds)
        if kind.endswith("worker"):
            for child in victim.children:
                self.freeze(child, seconds)
        if process.is_frozen:
            self.wait(0.0)
