"""Stopped at any border or killed at any statement, a file is taken up by its offset."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import inspect

from retoma.reconciliation.statement_files import check_inputs, parameters_of
from retoma.reconciliation.statement_lists import breaks, matches
from retoma.reconciliation.statement_tables import recon_entry, recon_line
from tests.reconciliation.desk import DAY, Desk, e2e, line, row, statement, transactions

BORDERS = 11


class Death(BaseException):
    """The process is gone; no handler of errors may catch it."""


class DiesAt:
    """A scheduling point that ends everything at the n-th statement of that name."""

    def __init__(self, name: str, number: int) -> None:
        self.name, self.left = name, number

    def __call__(self, name: str) -> None:
        self.left -= name == self.name
        if self.left == 0 and name == self.name:
            raise Death(name)


def files(folder: Path) -> dict[str, Any]:
    lines = [
        line(1, "1.00", fitid="0", memo="SAME"),
        line(1, "1.00", fitid="0", memo="SAME"),
        line(2, "2.00", memo=f"PIX {e2e(2)}"),
        line(1, "1.00", fitid="0", memo="SAME"),
        line(4, "x"),
        line(5, "5.00"),
    ]
    rows = [row(1, "1.00"), row(2, "2.00", e2e=e2e(2), day=2), row(5, "5.00"), row(6, "6.00")]
    inputs = check_inputs([statement(folder, *lines)], [transactions(folder, *rows)])
    return parameters_of(inputs, DAY)


def told(desk: Desk, result: dict[str, Any]) -> Any:
    """What must not depend on stops: the hash, the counts, the entries, the sightings."""
    entry = recon_entry.c
    return (
        result["result_hash"],
        result["files"],
        result["matched"],
        result["breaks"],
        desk.rows(recon_entry, entry.side, entry.natural_key, entry.occurrence, entry.state),
        desk.rows(recon_line),
        result["audit"].is_clean,
    )


def work_off(desk: Desk, parameters: dict[str, Any], chunks: int | None = None) -> Any:
    """A process that ends after so many chunks; the result if it came to the end."""
    night = desk.night()
    try:
        run = night.launch(parameters)
        while run.is_live and (chunks is None or chunks > 0):
            if night.advance() is not None:
                break
            if night.work_one() is not None and chunks is not None:
                chunks -= 1
        return None if night.run().is_live else told(desk, desk.result(night))
    finally:
        night.session.change(
            "t", "UPDATE batch_run SET coordinator = NULL, coordination_token = NULL"
        )
        night.close()


@pytest.fixture
def undisturbed(tmp_path: Path) -> Any:
    # In one chunk, so that nothing is taken up anywhere; the others cut after every second record.
    desk = Desk(f"sqlite:///{tmp_path / 'calm.db'}", chunk_size=100)
    result = work_off(desk, files(tmp_path))
    assert result[-1]
    return result


def test_any_chunk_border_will_do(tmp_path: Path, undisturbed: Any) -> None:
    for border in range(2, BORDERS, 2):
        desk = Desk(f"sqlite:///{tmp_path / f'{border}.db'}")
        assert work_off(desk, files(tmp_path), border) is None
        assert work_off(desk, files(tmp_path)) == undisturbed, border


def test_a_border_in_the_file_on_each_database(
    database_url: str, tmp_path: Path, undisturbed: Any
) -> None:
    desk = Desk(database_url)
    parameters = files(tmp_path)
    for _ in range(20):
        result = work_off(desk, parameters, 1)
        if result is not None:
            break
    assert result == undisturbed


@pytest.mark.parametrize(
    "name", ["recon.known", "recon.sighted", "chunk.finish", "work.commit.after"]
)
def test_killed_inside_a_chunk(tmp_path: Path, undisturbed: Any, name: str) -> None:
    for number in (1, 3):
        desk = Desk(f"sqlite:///{tmp_path / f'{name}{number}.db'}")
        parameters = files(tmp_path)
        night = desk.night(DiesAt(name, number))
        with pytest.raises(Death):
            night.whole(parameters)
        night.close()
        successor = desk.night()
        successor.session.change(
            "t", "UPDATE batch_run SET coordinator = NULL, coordination_token = NULL"
        )
        successor.launch(parameters)
        successor.take_over_all()
        successor.to_end()
        assert told(desk, desk.result(successor)) == undisturbed
        successor.close()


def test_no_account_stands_outside_the_entries(tmp_path: Path) -> None:
    desk = Desk(f"sqlite:///{tmp_path / 'a.db'}")
    work_off(desk, files(tmp_path))
    night = desk.night()
    night.launch(files(tmp_path))  # complete: nothing is done
    names = set(inspect(night.store.engine).get_table_names()) - {"recon_entry"}
    texts = {name: str(night.session.fetch("t", f"SELECT * FROM {name}")) for name in sorted(names)}
    result = desk.result(night)
    with night.store.engine.connect() as connection:
        texts["breaks"] = str(list(breaks(connection, result["instance"])))
        texts["matches"] = str(list(matches(connection, result["instance"])))
    night.close()
    texts["result"] = str(result)
    assert "statement_at" in texts["batch_chunk"]
    assert "…06" in texts["breaks"]
    assert not [name for name, text in texts.items() if "60006" in text]
