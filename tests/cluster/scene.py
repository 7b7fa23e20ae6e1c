"""One database, the programs that work on it, and what they left behind."""

from __future__ import annotations

import json
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from signal import SIGKILL
from typing import Any

from sqlalchemy import text

from retoma.operations import commands
from retoma.store import migrate
from retoma.store.store import Store
from tests.cluster import jobs
from tests.cluster.programs import Program, launch, until

DAY = "d1"
SLACK_SECONDS = 8.0  # a busy machine, and waits that are not scaled


@dataclass(slots=True)
class Scene:
    """Starts programs with the same settings, and looks at tables and side file."""

    url: str
    folder: Path
    scale: float = 0.2
    items: int = 120
    settings: dict[str, str] = field(default_factory=dict)
    programs: list[Program] = field(default_factory=list)
    store: Store = field(init=False)

    def __post_init__(self) -> None:
        self.store = Store(self.url)
        migrate.ensure(self.store)
        jobs.fill(self.store.engine, self.items)

    @property
    def backend(self) -> str:
        return self.store.dialect.name

    @property
    def takeover_seconds(self) -> float:
        """Lease + 6 s, scaled, and what a busy machine may add."""
        return 26.0 * self.scale + SLACK_SECONDS

    @property
    def trace(self) -> Path:
        return self.folder / "trace"

    @property
    def history(self) -> Path:
        """What the attempts of all slots told of themselves."""
        return self.folder / "history"

    @property
    def gate(self) -> Path:
        """While this file is there, items with the trouble ``gate`` wait."""
        return self.folder / "trace.gate"

    def close_gate(self) -> dict[str, str]:
        """Settings of programs that stop in the 7th item of each chunk until the gate is opened."""
        self.gate.touch()
        return {"RETOMA_TEST_TROUBLE": ",".join(f"{n}=gate" for n in range(7, self.items + 1, 10))}

    def open_gate(self) -> None:
        self.gate.unlink()

    def held_by(self, program: Program, slots: int = 1) -> list[int]:
        """The items in which the program's slots wait for the gate, once so many of them do."""

        def waiting() -> list[int]:
            own = set(program.slots())
            return [item for item, pid in self.seen() if pid in own and item % 10 == 7]

        return until("they wait at the gate", lambda: len(waiting()) == slots and waiting(), 60.0)

    def _start(self, arguments: list[str], faults: str, settings: dict[str, str]) -> Program:
        environment = {
            "RETOMA_DATABASE": self.url,
            "RETOMA_APPS": "tests.cluster.jobs",
            "RETOMA_ALLOW_FAULTS": "1",
            "RETOMA_TIME_SCALE": str(self.scale),
            "RETOMA_FAULTS": faults,
            "RETOMA_HISTORY": str(self.history),
            "RETOMA_TEST_TRACE": str(self.trace),
            **self.settings,
            **settings,
        }
        log = self.folder / f"program-{len(self.programs)}.log"
        program = launch(arguments, environment, log)
        self.programs.append(program)
        return program

    def run(self, slots: int = 1, faults: str = "", **settings: str) -> Program:
        """``retoma run`` of the day."""
        arguments = ["run", jobs.JOB.name, "-p", f"day={DAY}", "--slots", str(slots)]
        return self._start(arguments, faults, settings)

    def worker(self, slots: int = 1, faults: str = "", **settings: str) -> Program:
        """``retoma worker``."""
        return self._start(["worker", "--slots", str(slots)], faults, settings)

    def submit(self) -> int:
        """Leave the day's run to the workers; its id."""
        return commands.submit(self.store, jobs.JOB, {"day": DAY})

    def fault(self, point: str, verb: str) -> tuple[str, Path]:
        """A fault for ``faults=`` and the marker that tells the pid once it has happened."""
        marker = self.folder / f"{point}.{verb}"
        return f"{point}={verb}@{marker}", marker

    def victim(self, marker: Path) -> int:
        """The process that ran into the fault."""
        until(f"somebody passes {marker.name}", lambda: marker.exists() and marker.read_text())
        return int(marker.read_text())

    def rows(self, statement: str, **values: Any) -> list[Any]:
        """Rows of a plain SELECT, as somebody at a SQL prompt sees them."""
        with self.store.engine.connect() as connection:
            return list(connection.execute(text(statement), values).fetchall())

    def change(self, statement: str, **values: Any) -> None:
        """One statement of somebody who reaches into the tables."""
        with self.store.engine.begin() as connection:
            connection.execute(text(statement), values)

    def one(self, statement: str, **values: Any) -> Any:
        return self.rows(statement, **values)[0][0]

    def seen(self) -> list[tuple[int, int]]:
        """(item, pid) of each call of the item function, in their order."""
        if not self.trace.exists():
            return []
        lines = self.trace.read_text("ascii").split("\n")[:-1]
        return [(int(item), int(pid)) for item, pid in (line.split(" ") for line in lines)]

    def wait_for_items(self, count: int, seconds: float = 60.0) -> None:
        """Wait until so many items were worked on."""
        until(f"{count} items are seen", lambda: len(self.seen()) >= count, seconds)

    def ranges(self, where: str = "1 = 1") -> dict[int, tuple[int, int]]:
        """Chunk → (above, up to) of the chunks that the condition names."""
        rows = self.rows(f"SELECT id, start_key, end_key FROM batch_chunk WHERE {where}")
        return {row[0]: (json.loads(row[1]), json.loads(row[2])) for row in rows}

    def repeated(self) -> dict[int, int]:
        """Chunk → how often it was begun again, by the side file alone."""
        calls = Counter(item for item, _ in self.seen())
        found = {}
        for chunk, (low, high) in self.ranges().items():
            most = max((calls[item] for item in range(low + 1, high + 1)), default=0)
            if most > 1:
                found[chunk] = most - 1
        return found

    def is_half_done(self) -> bool:
        """Whether the last item that somebody worked on lies in a chunk that is not committed."""
        last = {pid: item for item, pid in self.seen()}
        running = self.ranges("state = 'RUNNING'").values()
        return any(low < item <= high for item in last.values() for low, high in running)

    def latest_run(self) -> int:
        return int(self.one("SELECT max(id) FROM batch_run"))

    def state(self) -> str:
        """The state of the latest run."""
        rows = self.rows("SELECT state FROM batch_run ORDER BY id DESC LIMIT 1")
        return str(rows[0][0]) if rows else ""

    def wait_for_end(self, seconds: float = 60.0) -> float:
        """Wait until no run is live; how long it took."""
        began = time.monotonic()
        until(
            "the run ends",
            lambda: self.one("SELECT count(*) FROM batch_run WHERE live = 1") == 0,
            seconds,
        )
        return time.monotonic() - began

    def close(self) -> None:
        """Nothing that was started outlives the test."""
        for program in self.programs:
            with suppress(AssertionError):
                program.signal_all(SIGKILL)
            program.process.wait(10)
        self.store.dispose()
