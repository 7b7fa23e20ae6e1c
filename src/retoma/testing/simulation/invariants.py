"""What must hold after every commit, and what must hold at the end; each has a name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from retoma.engine.history import Entry, Kind
from retoma.testing.simulation.night import FATE, expected, items_of
from retoma.testing.simulation.setting import TIMING
from retoma.testing.simulation.virtual import VirtualClock
from retoma.testing.simulation.world import World

Query = Callable[[str], list[Any]]

_CHUNKS = (
    "SELECT id, step_id, partition_id, state, fence, token, owner_pid, lease_until, start_key,"
    " end_key, first_reads, done, already_done, filtered, set_aside, deferred, tries, losses"
    " FROM batch_chunk ORDER BY id"
)
_ATTEMPTS = "SELECT id, chunk_id, fence, outcome FROM batch_attempt ORDER BY id"
_EFFECTS = "SELECT step, item FROM {table}"
_STEPS = "SELECT id, name, state, version FROM batch_step ORDER BY id"
_RUNS = "SELECT id, state, live FROM batch_run ORDER BY id"
_WATCHED = ("batch_chunk", "batch_attempt", "batch_step", "sim_effect", "sim_keyed")
_TERMINAL = ("COMPLETED", "SPLIT")
_MAY_FOLLOW = {
    "PENDING": ("PENDING", "RUNNING"),
    "RUNNING": ("RUNNING", "PENDING", "COMPLETED", "FAILED", "SPLIT"),
    "FAILED": ("FAILED", "PENDING"),
    "COMPLETED": ("COMPLETED",),
    "SPLIT": ("SPLIT",),
}
_TRIES_AND_LOSSES = {"FAILED": (1, 0), "LOST": (0, 1), "GIVEN_BACK": (0, 0), "COMPLETED": (0, 0)}
_ENDED = ("COMPLETED", "PARTIALLY_COMPLETED", "FAILED", "STOPPED")


def touches_watched(statement: str) -> bool:
    """Whether a statement may change a table that is looked at after every commit."""
    return not statement.startswith("SELECT") and any(name in statement for name in _WATCHED)


class Violation(AssertionError):
    """A named invariant does not hold."""

    def __init__(self, name: str, text: str) -> None:
        super().__init__(f"{name}: {text}")
        self.name = name


@dataclass(slots=True)
class _Seen:
    """What the last look at a chunk saw."""

    row: Any
    lease: str | None
    lease_since: float
    claimed_at: float
    gap: float = 0.0
    """How long the lease before this one had stood."""

    ran_out: bool = False
    """A lease of this claim had run out before it was renewed."""


@dataclass(slots=True)
class Watch:
    """Looks at the real tables after every commit."""

    world: World
    query: Query
    last_done: dict[int, int] = field(default_factory=dict)
    """At which moment of the world a step's last chunk was completed, by the step's id."""

    _chunks: dict[int, _Seen] = field(default_factory=dict)
    _attempts: set[int] = field(default_factory=set)
    _outcomes: dict[tuple[int, int], str] = field(default_factory=dict)
    _told: dict[tuple[int, int], Kind] = field(default_factory=dict)
    _in_doubt: set[tuple[int, int]] = field(default_factory=set)

    def look(self) -> None:
        """Raise ``Violation`` for the first invariant that is broken."""
        chunks = self.query(_CHUNKS)
        attempts = self.query(_ATTEMPTS)
        table = "sim_keyed" if self.world.setting.has_key else "sim_effect"
        effects = self.query(_EFFECTS.format(table=table))
        steps = {row[0]: row for row in self.query(_STEPS)}
        self._attempts_hold(chunks, attempts)
        self._chunks_hold(chunks)
        self._effects_hold(chunks, effects, steps)
        self._ends_hold(chunks, steps)

    def _chunks_hold(self, chunks: list[Any]) -> None:
        ranges: dict[int, int] = {}
        for row in chunks:
            before = self._chunks.get(row[0])
            if before is not None:
                self._step_holds(before.row, row)
            mark = f"{row[4]} {row[7]}"
            if before is None or before.lease != mark:
                self._chunks[row[0]] = self._renewed(before, row, mark)
            else:
                before.row = row
        for row in sorted(chunks, key=lambda r: (r[2], int(r[8]))):
            if row[3] == "SPLIT" or row[9] is None:
                continue
            start, end = int(row[8]), int(row[9])
            if start < ranges.get(row[2], start):
                raise Violation("chunks_overlap", f"chunk {row[0]} begins before {ranges[row[2]]}")
            ranges[row[2]] = end

    def _renewed(self, before: _Seen | None, row: Any, mark: str) -> _Seen:
        now = self.world.now
        if before is None or before.row[4] != row[4]:
            gap = now - before.lease_since if before is not None else 0.0
            return _Seen(row, mark, now, now, gap)
        ran_out = before.ran_out or self._has_run_out(before.row[7])
        return _Seen(row, mark, now, before.claimed_at, now - before.lease_since, ran_out)

    def _has_run_out(self, lease: Any) -> bool:
        """By the database's clock."""
        if lease is None:
            return True
        until = datetime.fromisoformat(str(lease))
        until = until if until.tzinfo else until.replace(tzinfo=UTC)
        return until <= VirtualClock(self.world).utc()

    def _step_holds(self, old: Any, new: Any) -> None:
        if new[4] < old[4] or (new[3] == "RUNNING" and new[5] != old[5] and new[4] <= old[4]):
            raise Violation("fence_rises", f"chunk {new[0]}: fence {old[4]} -> {new[4]}")
        if new[3] not in _MAY_FOLLOW[old[3]]:
            raise Violation("transition_allowed", f"chunk {new[0]}: {old[3]} -> {new[3]}")
        if new[3] == "SPLIT" and old[3] != "SPLIT":
            self.world.count("chunk.split")
        if new[3] == "COMPLETED" and old[3] != "COMPLETED":
            self.last_done[new[1]] = self.world.moment
        if old[3] in _TERMINAL and tuple(old[:7]) != tuple(new[:7]):
            raise Violation("terminal_stays", f"chunk {new[0]}: {old[3]} -> {new[3]}")
        if old[3] in _TERMINAL and tuple(old[8:16]) != tuple(new[8:16]):
            raise Violation("terminal_stays", f"chunk {new[0]}: its counts changed")
        if old[3] == "RUNNING" and new[3] != "RUNNING" and old[4] == new[4]:
            wanted = _TRIES_AND_LOSSES.get(self._outcomes.get((new[0], new[4]), ""))
            found = (new[16] - old[16], new[17] - old[17])
            if wanted is not None and found != wanted and min(found) >= 0:
                raise Violation(
                    "tries_add_up", f"chunk {new[0]}: {found} tries and losses, not {wanted}"
                )

    def _attempts_hold(self, chunks: list[Any], attempts: list[Any]) -> None:
        by_id = {row[0]: row for row in chunks}
        committed: Counter[int] = Counter()
        for number, chunk_id, fence, outcome in attempts:
            if outcome == "COMPLETED":
                committed[chunk_id] += 1
                chunk = by_id.get(chunk_id)
                if chunk is None or chunk[3] != "COMPLETED" or chunk[4] != fence:
                    raise Violation("witness_of_completed", f"attempt {number} of {chunk_id}")
            if number not in self._attempts:
                self._attempts.add(number)
                self._outcomes[chunk_id, fence] = outcome
                self._telling_holds((chunk_id, fence))
                if outcome == "LOST":
                    self.world.count("chunk.taken_over")
                    if self.world.setting.is_strict:
                        self.world.count("strict.taken_over")
                    self._loss_holds(chunk_id, fence)
        for chunk_id, row in by_id.items():
            if row[3] == "COMPLETED" and committed[chunk_id] != 1:
                raise Violation(
                    "one_committed_attempt", f"chunk {chunk_id} has {committed[chunk_id]}"
                )

    def _loss_holds(self, chunk_id: int, fence: int) -> None:
        """Nobody healthy is robbed: an owner that lives keeps what it renews in time.

        A renewal that comes between a taker's look and its act is too late: hence the lease before.
        """
        seen = self._chunks.get(chunk_id)
        if seen is None or seen.row[4] != fence or seen.row[6] is None:
            return
        owner = self.world.processes.get(seen.row[6])
        if owner is None or not owner.is_alive:
            return
        if max(self.world.now - seen.lease_since, seen.gap) < TIMING.unchanged:
            raise Violation("healthy_keeps", f"chunk {chunk_id}, fence {fence}: renewed just now")
        if self.world.disturbed_until < seen.claimed_at:
            raise Violation("healthy_keeps", f"chunk {chunk_id}, fence {fence}: nothing ailed it")
        is_jumpy = any(f"fault.clock.{way}" in self.world.counters for way in ("forward", "back"))
        if not is_jumpy and not seen.ran_out and not self._has_run_out(seen.row[7]):
            raise Violation("healthy_keeps", f"chunk {chunk_id}, fence {fence}: not run out")

    def hear(self, entry: Entry) -> None:
        """What an attempt tells of itself; raise ``Violation`` if it is not so."""
        key = (entry.chunk_id, entry.fence)
        if entry.kind is Kind.INVOKE and self._told.get(key) is Kind.UNKNOWN:
            self._in_doubt.add(key)  # it could not find out, and tries again
        self._told[key] = entry.kind
        is_committed = self._outcomes.get(key) == "COMPLETED"
        if entry.kind is Kind.OK and not is_committed:
            raise Violation("told_truly", f"chunk {key[0]}, fence {key[1]} did not commit")
        self._telling_holds(key)

    def _telling_holds(self, key: tuple[int, int]) -> None:
        has_failed = self._told.get(key) is Kind.FAIL and key not in self._in_doubt
        if has_failed and self._outcomes.get(key) == "COMPLETED":
            raise Violation("told_truly", f"chunk {key[0]}, fence {key[1]} committed")

    def _effects_hold(self, chunks: list[Any], effects: list[Any], steps: dict[int, Any]) -> None:
        found = Counter((row[0], row[1]) for row in effects)
        if found and max(found.values()) > 1:
            twice = [key for key, count in found.items() if count > 1]
            raise Violation("effect_once", f"twice: {twice}")
        done: set[tuple[str, int]] = set()
        for row in chunks:
            if row[3] == "COMPLETED":
                name = steps[row[1]][1]
                done.update((name, item) for item in range(int(row[8]) + 1, int(row[9]) + 1))
        alone = set(found) - done
        if alone:
            raise Violation("effect_with_checkpoint", f"no completed chunk has {sorted(alone)}")

    def _ends_hold(self, chunks: list[Any], steps: dict[int, Any]) -> None:
        for row in chunks:
            state = steps[row[1]][2]
            if state in _ENDED and row[3] == "RUNNING":
                raise Violation("closed_with_running", f"step {row[1]} is {state}")
            if state in ("COMPLETED", "PARTIALLY_COMPLETED") and row[3] == "PENDING":
                raise Violation("closed_with_waiting", f"step {row[1]} is {state}")


def effects_are_right(world: World, query: Query, last_done: dict[int, int]) -> None:
    """Each item has just the effects that it should; raises ``Violation``."""
    setting = world.setting
    table = "sim_keyed" if setting.has_key else "sim_effect"
    effects = query(_EFFECTS.format(table=table))
    for step_id, name, _state, _version in query(_STEPS):
        with_late = FATE.is_late_in(name, last_done.get(step_id, 0))
        items = items_of(setting, with_late=with_late)
        wanted = [number for number, verdict in items if verdict == "do"]
        found = sorted(row[1] for row in effects if row[0] == name)
        if found != wanted:
            raise Violation("nothing_lost", f"step {name}: {found} instead of {wanted}")


def at_the_end(world: World, query: Query, last_done: dict[int, int]) -> None:
    """Nothing lost, counts add up, history is whole; raises ``Violation``."""
    effects_are_right(world, query, last_done)
    for step_id, name, state, _version in query(_STEPS):
        with_late = FATE.is_late_in(name, last_done.get(step_id, 0))
        _counts_hold(world, query, step_id, name, state, with_late=with_late)
    _one_run_was_live(query)
    for row in query(_RUNS):
        if row[2] is not None:
            raise Violation("run_ends", f"run {row[0]} is {row[1]}")
    _history_holds(query)
    for error in world.ended_by:
        if type(error).__module__.split(".")[0] not in ("sqlalchemy", "retoma"):
            raise Violation("no_internal_error", f"{type(error).__name__}: {error}")


def _counts_hold(
    world: World, query: Query, step_id: int, name: str, state: str, *, with_late: bool
) -> None:
    setting = world.setting
    sums = query(
        "SELECT COALESCE(SUM(first_reads), 0), COALESCE(SUM(done + already_done), 0),"
        " COALESCE(SUM(filtered), 0), COALESCE(SUM(set_aside), 0), COALESCE(SUM(deferred), 0)"
        f" FROM batch_chunk WHERE step_id = {step_id}"
    )[0]
    want = expected(setting, with_late=with_late)
    whole = (
        sum(want.values()),
        want["done"],
        want["filtered"],
        want["set_aside"],
        want["deferred"],
    )
    if tuple(int(value) for value in sums) != whole:
        raise Violation("counts_add_up", f"step {name}: {tuple(sums)} instead of {whole}")
    errors = query(f"SELECT count(*) FROM batch_item_error WHERE step_name = '{name}'")[0][0]
    if errors != want["set_aside"] + want["deferred"]:
        raise Violation("counts_add_up", f"step {name}: {errors} item errors")
    right = "PARTIALLY_COMPLETED" if want["set_aside"] else "COMPLETED"
    if state != right:
        raise Violation("step_ends", f"step {name} is {state}")
    attempts = query(
        "SELECT count(*) FROM batch_attempt a JOIN batch_chunk c ON c.id = a.chunk_id"
        f" WHERE c.step_id = {step_id}"
    )[0][0]
    again = sum(FATE.computed[name, item] for item in range(1, setting.items + 1))
    tries = 5  # one attempt tries a technical failure again so often
    if again > attempts * tries * setting.items:
        raise Violation("rework_bounded", f"step {name}: {again} items computed")


def _one_run_was_live(query: Query) -> None:
    """The next run of an instance begins when the last one has ended."""
    live: set[int] = set()
    rows = query("SELECT noun_id, after_state FROM batch_event WHERE noun = 'run' ORDER BY id")
    for run_id, state in rows:
        if state in _ENDED:
            live.discard(run_id)
        else:
            live.add(run_id)
        if len(live) > 1:
            raise Violation("one_live_run", f"runs {sorted(live)} were live at once")


def _history_holds(query: Query) -> None:
    """Each transition of a run, step and partition begins where the last one ended."""
    last: dict[tuple[str, int], str | None] = {}
    rows = query("SELECT noun, noun_id, before_state, after_state FROM batch_event ORDER BY id")
    for noun, noun_id, before, after in rows:
        known = last.get((noun, noun_id))
        if known is not None and before != known:
            raise Violation("history_whole", f"{noun} {noun_id}: {known}, then {before}->{after}")
        last[noun, noun_id] = after
    for table, noun in (("batch_run", "run"), ("batch_step", "step"), ("batch_node", "node")):
        for number, state in query(f"SELECT id, state FROM {table}"):
            known = last.get((noun, number))
            if known != state and not (known is None and state == "PENDING"):
                raise Violation("history_whole", f"{noun} {number} is {state}, told {known}")
