"""One cell's stage: an identity of its own, its programs, its trace, and what the tables say."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

import sqlalchemy as sa

from retoma.cluster.caretaker import Caretaker
from retoma.cluster.timing import DEFAULT_TIMING
from retoma.faults import FLAG
from retoma.model.parameters import identity_of
from retoma.model.records import RunRow
from retoma.operations import commands
from retoma.store import runs
from retoma.store.store import Store
from retoma.testing.chaos import job
from retoma.testing.chaos.programs import CellFailed, Program, launch, stands_still, until

SLOTS = 2
_REACH_SECONDS = 30.0
_SLACK_SECONDS = 0.3


@dataclass(slots=True)
class Stage:
    """Starts programs with the same settings, and looks at the tables and the trace."""

    store: Store
    url: str
    folder: Path
    cell: str
    scale: float
    programs: list[Program] = field(default_factory=list)

    @property
    def history(self) -> Path:
        """What the attempts of all slots tell of themselves."""
        return self.folder / "history"

    def _start(self, arguments: list[str], faults: str, settings: Mapping[str, str]) -> Program:
        environment = {
            "RETOMA_DATABASE": self.url,
            "RETOMA_APPS": job.__name__,
            FLAG: "1",
            "RETOMA_FAULTS": faults,
            "RETOMA_TIME_SCALE": str(self.scale),
            "RETOMA_HISTORY": str(self.history),
            "RETOMA_CHAOS_TRACE": str(self.folder / "trace"),
            **settings,
        }
        log = self.folder / f"program-{len(self.programs)}.log"
        self.programs.append(launch(arguments, environment, log))
        return self.programs[-1]

    def run(
        self, faults: str = "", settings: Mapping[str, str] | None = None, slots: int = SLOTS
    ) -> Program:
        """``retoma run`` of the cell's identity."""
        arguments = ["run", job.NAME, "-p", f"cell={self.cell}", "--slots", str(slots)]
        return self._start(arguments, faults, settings or {})

    def worker(self, faults: str, settings: Mapping[str, str]) -> Program:
        """``retoma worker``, with the cell's run left to it."""
        commands.submit(self.store, job.JOB, {"cell": self.cell}, actor="chaos")
        return self._start(["worker", "--slots", str(SLOTS)], faults, settings)

    def marker(self, name: str) -> Path:
        """The file that tells the pid once a fault has happened."""
        return self.folder / f"{name}.marker"

    def reached(self, program: Program, marker: Path) -> int:
        """The process that stands, or died, at the point of the marker."""

        def look() -> int | None:
            if marker.exists() and (text := marker.read_text("ascii")):
                return int(text)
            if not program.is_alive:
                raise CellFailed("the point was not reached: the command ended before it")
            return None

        found = until("the point is reached", look, _REACH_SECONDS)
        assert found is not None
        # The marker is written just before: stopped by another hand in between, the process would
        # stop itself once more after it was let go.
        until("it stands still", lambda: stands_still(found), _REACH_SECONDS)
        return found

    def hold(self) -> None:
        """Wait until a frozen owner's lease has run out and others may have taken its work."""
        timing = DEFAULT_TIMING.scaled(self.scale)
        seconds = timing.lease + timing.unchanged + 3 * timing.sweep + _SLACK_SECONDS
        self.store.clock.sleep(seconds)

    def seen(self) -> list[tuple[str, int]]:
        """(step, item) of each call of the item function."""
        trace = self.folder / "trace"
        if not trace.exists():
            return []
        lines = (line.split(" ") for line in trace.read_text("ascii").split("\n")[:-1])
        return [(step, int(item)) for step, item, _ in lines]

    def repeated(self) -> int:
        """How many chunks had items that were worked on more than once."""
        twice = (item for item, times in Counter(self.seen()).items() if times > 1)
        return len({(step, (item - 1) // job.CHUNK) for step, item in twice})

    def latest_run(self) -> RunRow | None:
        """The newest run of the cell's identity."""
        identity = identity_of(job.NAME, job.JOB.parameters, {"cell": self.cell})
        session = self.store.control()
        try:
            return runs.latest_of(session, job.NAME, identity)
        finally:
            session.close()

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Rows of a plain SELECT, as somebody at a SQL prompt sees them."""
        with self.store.engine.connect() as connection:
            return list(connection.execute(sa.text(statement), values).fetchall())

    def running(self) -> list[Any]:
        """Id and losses of the RUNNING chunks of the cell's instance."""
        run = self.latest_run()
        return self.rows(
            "SELECT c.id, c.losses FROM batch_chunk c JOIN batch_step s ON s.id = c.step_id"
            " WHERE s.instance_id = :instance AND c.state = 'RUNNING'",
            instance=run.instance_id if run else 0,
        )

    def take_back(self) -> None:
        """Take back what dead workers hold, so that it waits to be claimed again."""
        run = self.latest_run()
        assert run is not None
        with Caretaker(self.store, {job.NAME: job.JOB}, run.run_id) as caretaker:

            def swept() -> bool:
                caretaker.tick()
                return not self.running()

            until("the dead worker's chunks are taken back", swept, 10.0)

    def close(self) -> None:
        """Whatever was started is gone."""
        for program in self.programs:
            program.signal_all(SIGKILL)
            program.process.wait(10)
