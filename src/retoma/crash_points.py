"""The catalogue of crash points: where a worker can be killed or frozen, one line of words each.

A statement passes its name before it is sent and ``name.after`` once it was answered. The table of
the documentation is this one; ``retoma chaos matrix`` goes through it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DATABASES = ("sqlite", "postgresql", "mariadb")
SERVERS = ("postgresql", "mariadb")


class Passer(StrEnum):
    """Which process passes a point."""

    LAUNCHER = "launcher"  # a supervisor that has no slots yet
    SUPERVISOR = "supervisor"
    SLOT = "slot"


class Kind(StrEnum):
    """What happens at a point, and so which names it has."""

    MOMENT = "moment"  # between two statements: one name
    READ = "read"  # changes nothing: after it is the same as before what follows
    CHANGE = "change"  # one statement of a transaction: before and after
    CONTROL = "control"  # a transaction of its own: before, after, and on SQLite within


@dataclass(frozen=True, slots=True)
class CrashPoint:
    """One point: its base name, who passes it, and what happens there in words."""

    name: str
    passer: Passer
    kind: Kind
    words: str
    databases: tuple[str, ...] = DATABASES

    def names(self, database: str) -> tuple[str, ...]:
        """The names under which a fault can be armed on a database; none if it is not passed there.

        On SQLite a control transaction is several statements: there ``.after`` is within it, with
        the write lock held, and ``.commit.after`` is when it is done.
        """
        if database not in self.databases:
            return ()
        if self.kind in (Kind.MOMENT, Kind.READ):
            return (self.name,)
        names = (self.name, f"{self.name}.after")
        is_long = self.kind is Kind.CONTROL and database == "sqlite"
        return (*names, f"{self.name}.commit.after") if is_long else names


def _of(passer: Passer, *rows: tuple[str, Kind, str]) -> tuple[CrashPoint, ...]:
    return tuple(CrashPoint(name, passer, kind, words) for name, kind, words in rows)


_LAUNCHER = _of(
    Passer.LAUNCHER,
    ("run.latest", Kind.READ, "the newest run of the identity is looked up"),
    ("run.create", Kind.CONTROL, "instance, run and steps are created"),
    ("run.relaunch", Kind.CONTROL, "a failed or stopped instance gets a new run"),
    ("run.launched", Kind.READ, "the run that was just created is read"),
    ("node.register", Kind.CONTROL, "the worker registers as a node"),
    ("node.id", Kind.READ, "the new node's number is read"),
    ("run.coordinate", Kind.CONTROL, "the coordination lease of a run is taken"),
)
_SUPERVISOR = _of(
    Passer.SUPERVISOR,
    ("node.beat", Kind.CONTROL, "the worker's heartbeat"),
    ("chunk.renew", Kind.CONTROL, "the lease of a slot's chunk is renewed"),
    ("sweep.running", Kind.READ, "the sweep looks at all RUNNING chunks"),
    ("node.identity", Kind.READ, "the owner of a suspicious chunk or run is looked up"),
    ("node.silent", Kind.READ, "the sweep looks for nodes that fell silent"),
    ("node.change", Kind.CONTROL, "a node's state changes: it fell silent, or it leaves"),
)
_TAKEOVER = (
    CrashPoint(
        "zombie.find",
        Passer.SUPERVISOR,
        Kind.READ,
        "the old owner's database session is looked for",
        ("mariadb",),
    ),
    CrashPoint(
        "zombie.end",
        Passer.SUPERVISOR,
        Kind.CHANGE,
        "the old owner's database session is ended",
        ("postgresql",),
    ),
    *_of(
        Passer.SUPERVISOR,
        ("chunk.release", Kind.CONTROL, "a chunk is given back or taken over"),
        ("chunk.split", Kind.CONTROL, "a chunk that was lost three times is halved"),
    ),
)
_COORDINATOR = _of(
    Passer.SUPERVISOR,
    ("run.live", Kind.READ, "the coordinator looks at the live runs"),
    ("run.renew", Kind.CONTROL, "the coordination lease is renewed"),
    ("run.put_down", Kind.CONTROL, "a worker that leaves puts a live run down"),
    ("node.slots", Kind.READ, "the live slots are counted for the plan"),
    ("step.all", Kind.READ, "the steps of the instance are read"),
    ("step.progress", Kind.READ, "a step's chunks are summed up"),
    ("reader.ends", Kind.READ, "the input's lowest and highest key are looked up"),
    ("reader.measure", Kind.READ, "the input is counted, for the plan or for the close"),
    ("step.plan", Kind.CONTROL, "the plan is stored and the step opens"),
    ("step.shut", Kind.CONTROL, "a step accepts no more claims, because a stop was asked for"),
    ("step.bounds", Kind.READ, "the planned bounds are read for the close"),
    ("step.close", Kind.CONTROL, "a step closes; the next one opens or the run ends"),
    ("run.end", Kind.CONTROL, "a run ends without closing a step: its plan failed"),
)
_CLAIM = _of(
    Passer.SLOT,
    ("work.open_steps", Kind.READ, "a slot looks for open steps"),
    ("chunk.claim", Kind.CONTROL, "a waiting chunk is claimed"),
    ("work.uncut", Kind.READ, "partitions that can be cut are looked up"),
    ("reader.end", Kind.READ, "the end of the next cut is looked up"),
    ("chunk.cut", Kind.CONTROL, "a chunk is cut and claimed at once"),
    ("chunk.cut_strict", Kind.CONTROL, "a chunk of a strict partition is begun"),
    ("partition.exhaust", Kind.CONTROL, "a partition without a rest counts as cut"),
    ("chunk.claimed", Kind.READ, "the claim is read back"),
    ("slot.claimed", Kind.MOMENT, "the supervisor was told of the claim"),
)
_WORK = (
    *_of(
        Passer.SLOT,
        ("work.partition", Kind.READ, "the partition's context is read"),
        ("reader.read", Kind.READ, "the chunk's items are read"),
        ("chunk.processed", Kind.MOMENT, "all items are processed, nothing is written yet"),
        ("work.begin", Kind.MOMENT, "before BEGIN of the work transaction"),
    ),
    CrashPoint(
        "work.enter",
        Passer.SLOT,
        Kind.CHANGE,
        "the work session gets its timeouts and its name",
        SERVERS,
    ),
    *_of(
        Passer.SLOT,
        ("chunk.witness", Kind.CHANGE, "the attempt's row, the witness, is inserted"),
        ("savepoint", Kind.MOMENT, "before the savepoint under the effects"),
        ("writer.existing", Kind.READ, "effects that exist already are looked up"),
    ),
    CrashPoint(
        "insert.copy",
        Passer.SLOT,
        Kind.MOMENT,
        "before rows are copied in bulk: effects, then item errors",
        ("postgresql",),
    ),
    CrashPoint(
        "insert.rows",
        Passer.SLOT,
        Kind.MOMENT,
        "before rows are inserted in bulk: effects, then item errors",
        ("sqlite", "mariadb"),
    ),
    *_of(
        Passer.SLOT,
        ("savepoint.back", Kind.MOMENT, "before the way back to the savepoint: a row was refused"),
        ("work.now", Kind.READ, "effects are written, item errors not yet"),
        ("chunk.finish", Kind.CHANGE, "the guarded finish of the chunk"),
        ("partition.advance", Kind.CHANGE, "a strict partition's cursor moves with the finish"),
        ("work.commit", Kind.CHANGE, "COMMIT of the work transaction"),
        ("slot.walked_away", Kind.MOMENT, "a claim was lost to another; nothing was committed"),
    ),
)

CATALOGUE: tuple[CrashPoint, ...] = (
    *_LAUNCHER,
    *_SUPERVISOR,
    *_TAKEOVER,
    *_COORDINATOR,
    *_CLAIM,
    *_WORK,
)
EVERY_NAME = frozenset(
    name for point in CATALOGUE for database in DATABASES for name in point.names(database)
)
