"""After a night, no CPF or CNPJ stands unmasked anywhere but in the table it came in."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import sqlalchemy as sa

SOURCE = "financial_transaction"


def _retoma(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "retoma", *arguments],
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )


def _cells(engine: sa.Engine, *, but: str) -> Iterator[tuple[str, str]]:
    found = sa.inspect(engine)
    with engine.connect() as connection:
        for table in [*found.get_table_names(), *found.get_view_names()]:
            if table == but:
                continue
            for row in connection.execute(sa.text(f"SELECT * FROM {table}")):
                for cell in row:
                    yield table, str(cell)


@pytest.mark.parametrize("database_url", ["sqlite", "postgres", "mariadb"], indirect=True)
def test_no_document_stands_outside_the_source_table(database_url: str, tmp_path: Path) -> None:
    night = _retoma(
        tmp_path, "demo", "--transactions", "3000", "--database", database_url, "--json"
    )
    assert night.returncode == 0, night.stderr
    engine = sa.create_engine(database_url)
    with engine.connect() as connection:
        rows = connection.execute(sa.text(f"SELECT document FROM {SOURCE}"))
        documents = {str(row[0]) for row in rows if row[0] and len(str(row[0])) >= 11}
    assert len(documents) > 2000
    bare = {"".join(c for c in text if c.isalnum()) for text in documents}

    output = tmp_path / "errors.csv"
    exported = _retoma(
        tmp_path, "errors", "export", "1", "--database", database_url, "--output", str(output)
    )
    assert exported.returncode == 0, exported.stderr
    assert output.read_text("utf-8").count("\n") > 20

    texts = list(_cells(engine, but=SOURCE))
    texts += [("export", output.read_text("utf-8")), ("output", night.stdout + night.stderr)]
    for place, text in texts:
        runs = {run for run in _runs(text) if run in bare or run in documents}
        assert not runs, f"{place} shows a document"
    engine.dispose()


def _runs(text: str) -> Iterator[str]:
    """Every run of characters that could be a document, with and without its punctuation."""
    token = ""
    for character in text + " ":
        if character.isalnum() or character in "./-":
            token += character
            continue
        if len(token) >= 11:
            yield token
            yield "".join(c for c in token if c.isalnum())
        token = ""
