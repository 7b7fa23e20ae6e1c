"""The matrix: plays cell after cell on a database that nobody else works on."""

from __future__ import annotations

import os
import secrets
import shutil
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import sqlalchemy as sa

from retoma.cluster.identity import is_certainly_dead
from retoma.errors import NotPermitted, UsageError
from retoma.store import migrate, nodes, production
from retoma.store.store import Store, normal_url
from retoma.testing.chaos import job
from retoma.testing.chaos.cells import Cell, chosen
from retoma.testing.chaos.play import play
from retoma.testing.chaos.programs import CellFailed
from retoma.testing.chaos.stage import Stage

DEFAULT_SCALE = 0.1
_RECENT_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class CellResult:
    """How a cell ended: ``failure`` is empty if it is clean."""

    cell: Cell
    failure: str
    repeated: int | None
    seconds: float
    folder: str
    """Where the logs of a failed cell are; empty if it is clean."""

    @property
    def is_clean(self) -> bool:
        """Whether everything held."""
        return not self.failure


def scale_from(environment: Mapping[str, str]) -> float:
    """By how much all times are shortened: ``RETOMA_TIME_SCALE``, or a tenth."""
    try:
        scale = float(environment.get("RETOMA_TIME_SCALE", DEFAULT_SCALE))
    except ValueError:
        scale = 0.0
    if not 0.0 < scale <= 1.0:
        raise UsageError("RETOMA_TIME_SCALE must be a number above 0 and at most 1")
    return scale


@dataclass(slots=True)
class Matrix:
    """The chosen cells on one database; build it with ``open_matrix``."""

    store: Store
    url: str
    cells: list[Cell]
    scale: float

    def run(
        self, tell: Callable[[CellResult], None], is_stopped: Callable[[], bool] = lambda: False
    ) -> list[CellResult]:
        """Play all cells, telling each result as it is known; stops between two if asked."""
        folder = Path(tempfile.mkdtemp(prefix="retoma-chaos-"))
        results = []
        try:
            for number, cell in enumerate(self.cells):
                if is_stopped():
                    break
                results.append(self._one(cell, folder / f"{number}-{cell.point}"))
                tell(results[-1])
        finally:
            job.metadata.drop_all(self.store.engine)
            if all(result.is_clean for result in results):
                shutil.rmtree(folder, ignore_errors=True)
        return results

    def _one(self, cell: Cell, folder: Path) -> CellResult:
        clock = self.store.clock
        began = clock.monotonic()
        folder.mkdir()
        job.fill(self.store.engine)
        stage = Stage(self.store, self.url, folder, secrets.token_hex(4), self.scale)
        failure, repeated = "", None
        try:
            repeated = play(stage, cell)
        except CellFailed as failed:
            failure = str(failed)
        else:
            shutil.rmtree(folder)
        seconds = clock.monotonic() - began
        return CellResult(cell, failure, repeated, seconds, str(folder) if failure else "")


def open_matrix(
    url: str, points: Sequence[str] = (), sample: int | None = None, seed: int = 0
) -> Matrix:
    """The matrix on a database, checked before anything is done to it.

    Raises ``NotPermitted`` for a store marked as production and for one on which others work, and
    ``UsageError`` for an unknown point.
    """
    if not Path("/proc/self/stat").exists():
        raise UsageError("the crash matrix needs Linux: it finds its processes in /proc")
    store = Store(_absolute(normal_url(url)))
    try:
        cells = chosen(store.dialect.name, points, sample, seed)
        scale = scale_from(os.environ)
        migrate.ensure(store)
        if production.is_production(store):
            raise production.refusal(store, "the crash matrix kills workers")
        _refuse_company(store)
    except BaseException:
        store.dispose()
        raise
    return Matrix(store, store.url, cells, scale)


def _strangers(store: Store) -> list[int]:
    """Nodes that have beaten a moment ago and are not known to be dead."""
    session = store.control()
    try:
        beaten = session.fetch(
            "node.recent",
            "SELECT id FROM batch_node WHERE state IN ('ACTIVE', 'DRAINING') AND beat_at > {delay}",
            {"delay_seconds": -_RECENT_SECONDS},
        )
        found = [(int(row[0]), nodes.identity(session, row[0])) for row in beaten]
        return [node for node, identity in found if not is_certainly_dead(store.host, identity)]
    finally:
        session.close()


def _absolute(url: str) -> str:
    """The programs have a folder of their own: a file's path must not depend on where one stands."""
    found = sa.make_url(url)
    if found.get_backend_name() != "sqlite" or not found.database:
        return url
    path = str(Path(found.database).absolute())
    return found.set(database=path).render_as_string(hide_password=False)


def _refuse_company(store: Store) -> None:
    """With its shortened times the matrix would judge the healthy workers of others as silent."""
    statement = "SELECT count(*) FROM batch_run WHERE live = 1 AND job_name <> :name"
    with store.engine.connect() as connection:
        live = connection.execute(sa.text(statement), {"name": job.NAME}).scalar_one()
    if live or _strangers(store):
        raise NotPermitted(
            f"others work on {store.shown_url}: the crash matrix would disturb their workers",
            safe="Nothing was started.",
            next_step="give it a database of its own",
        )
