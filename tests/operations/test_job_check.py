"""``job check`` finds what is unsound before the first night, on the tables as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa

from retoma import ItemStep, Job, Parameter, Store, TableReader, TableWriter, UsageError
from retoma.model.job import Finding
from retoma.operations.job_check import check_job
from tests.cli.command import retoma

tables = sa.MetaData()
SOURCE = sa.Table(
    "source",
    tables,
    sa.Column("id", sa.BigInteger, primary_key=True, autoincrement=False),
    sa.Column("other", sa.BigInteger),
    sa.Column("name", sa.String(20)),
    sa.Column("day", sa.Date),
    sa.Column("version", sa.BigInteger),
    sa.Column("rate", sa.Double),
    sa.Column("cents", sa.BigInteger),
)
EFFECT = sa.Table(
    "effect",
    tables,
    sa.Column("key", sa.String(40), primary_key=True),
    sa.Column("loose", sa.String(40), nullable=False),
    sa.Column("maybe", sa.String(40), unique=True),
    sa.Column("digest", sa.String(40)),
    sa.Column("amount", sa.Double),
    sa.Column("exact", sa.Numeric(15, 2)),
    sa.Column("cents", sa.BigInteger),
)


def sound() -> ItemStep:
    return ItemStep(
        name="s",
        reader=TableReader(
            query=lambda c: sa.select(SOURCE.c.id, SOURCE.c.cents, SOURCE.c.version).where(
                SOURCE.c.day == c.parameters["day"]
            ),
            key=SOURCE.c.id,
            version=SOURCE.c.version,
        ),
        process=lambda item, _context: (str(item.id), "d", item.cents),
        writer=TableWriter(
            table=EFFECT, columns=("key", "digest", "cents"), keys=(("key",),), digest="digest"
        ),
    )


def reader(**changes: Any) -> ItemStep:
    return replace(sound(), reader=replace(sound().reader, **changes))  # type: ignore[type-var]


def writer(**changes: Any) -> ItemStep:
    return replace(sound(), writer=replace(sound().writer, **changes))  # type: ignore[type-var]


def job_of(step: ItemStep) -> Job:
    return Job(
        name="j",
        steps=(step,),
        parameters=(Parameter(name="day", kind=date),),
        audit=lambda _c, _x: Finding(expected=0, found=0, missing=0, duplicate=0, unexpected=0),
    )


def codes(store: Store | None, step: ItemStep) -> dict[str, bool]:
    return {weakness.code: weakness.is_fatal for weakness in check_job(store, job_of(step))}


UNSOUND = {
    "NO_UNIQUE_INDEX": writer(keys=(("loose",),)),
    "NULLABLE_KEY": writer(keys=(("maybe",),)),
    "NO_SUCH_COLUMN": writer(columns=("key", "digest", "nowhere")),
    "ORDER_NOT_UNIQUE": reader(key=SOURCE.c.other),
    "KEY_NOT_INTEGER": reader(key=SOURCE.c.name),
    "FLOAT": writer(columns=("key", "digest", "amount")),
}
ADVICE = {
    "UNBOUNDED_QUERY": reader(query=lambda _c: sa.select(SOURCE.c.id, SOURCE.c.version)),
    "NO_VERSION": reader(version=None),
    "LARGE_CHUNK": replace(sound(), chunk_size=20_001),
}


@pytest.fixture
def store(database_url: str) -> Iterator[Store]:
    found = Store(database_url)
    tables.create_all(found.engine)
    yield found
    found.engine.dispose()


def test_a_sound_job_has_no_weakness_in_the_database_and_as_declared(store: Store) -> None:
    assert codes(store, sound()) == codes(None, sound()) == {}


def test_each_unsound_thing_is_found_in_the_database_and_as_declared(store: Store) -> None:
    for code, step in UNSOUND.items():
        for place in (store, None):
            assert codes(place, step).get(code) is True, (code, place)


def test_advice_is_no_refusal(store: Store) -> None:
    for code, step in ADVICE.items():
        assert codes(store, step) == {code: False}


def test_a_float_is_found_in_the_source() -> None:
    step = reader(
        query=lambda _c: sa.select(SOURCE.c.id, SOURCE.c.rate).where(SOURCE.c.id > 0), version=None
    )
    assert codes(None, step)["FLOAT"]


def test_the_tables_are_judged_as_they_are_not_as_the_code_says(store: Store) -> None:
    with store.engine.begin() as connection:
        connection.execute(sa.text("DROP TABLE effect"))
        connection.execute(sa.text("CREATE TABLE effect (digest VARCHAR(40), cents BIGINT)"))
    assert {"NO_UNIQUE_INDEX", "NO_SUCH_COLUMN"} <= set(codes(store, sound()))


def test_a_unique_index_of_some_rows_alone_does_not_count(sqlite_url: str) -> None:
    store = Store(sqlite_url)
    with store.engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE effect (key TEXT NOT NULL, digest, cents)"))
        connection.execute(sa.text("CREATE UNIQUE INDEX some ON effect (key) WHERE cents > 0"))
    assert "NO_UNIQUE_INDEX" in codes(store, sound())
    with store.engine.begin() as connection:
        connection.execute(sa.text("CREATE UNIQUE INDEX whole ON effect (key)"))
    assert codes(store, sound()) == {}


def test_fractions_are_exact_but_on_sqlite(store: Store) -> None:
    expected = {"NUMERIC_ON_SQLITE": True} if store.dialect.name == "sqlite" else {}
    assert codes(store, writer(columns=("key", "digest", "exact"))) == expected


def test_a_query_that_can_not_be_made_is_an_error_for_people() -> None:
    with pytest.raises(UsageError, match=r"step s: its query can't be made: KeyError"):
        check_job(None, job_of(reader(query=lambda c: c.parameters["nosuch"])))


MODULE = """
import sqlalchemy as sa
from retoma import ItemStep, Job, TableReader, TableWriter
tables = sa.MetaData()
source = sa.Table("source", tables, sa.Column("id", sa.BigInteger, primary_key=True))
effect = sa.Table("effect", tables, sa.Column("key", sa.String(40)), sa.Column("d", sa.String(9)))
j = Job(name="j", steps=(ItemStep(name="s", chunk_size=10,
    reader=TableReader(query=lambda c: sa.select(source), key=source.c.id),
    process=lambda item, c: (str(item.id), "d"),
    writer=TableWriter(table=effect, columns=("key", "d"), keys=(("key",),), digest="d")),))
"""


def test_the_command_tells_cause_and_cure_and_creates_nothing(tmp_path: Path) -> None:
    (tmp_path / "unsound.py").write_text(MODULE, encoding="utf-8")
    answer = retoma(tmp_path, "job", "check", "j", "--app", "unsound")
    assert answer.returncode == 4, answer.stderr
    assert "UNSOUND NO_UNIQUE_INDEX (step s)" in answer.stdout
    assert "cure: CREATE UNIQUE INDEX" in answer.stdout
    assert not (tmp_path / "retoma.db").exists()


def test_a_plan_tells_items_and_chunks_and_stores_nothing(tmp_path: Path) -> None:
    (tmp_path / "unsound.py").write_text(MODULE, encoding="utf-8")
    missing = retoma(tmp_path, "job", "plan", "j", "--app", "unsound")
    assert (missing.returncode, missing.stdout) == (2, "")
    assert not (tmp_path / "retoma.db").exists()
    engine = sa.create_engine(f"sqlite:///{tmp_path / 'retoma.db'}")
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE other (id INTEGER)"))
    unreadable = retoma(tmp_path, "job", "plan", "j", "--app", "unsound")
    assert unreadable.returncode == 2
    assert "step 's' can't be planned" in unreadable.stderr
    with engine.begin() as connection:
        connection.execute(sa.text("CREATE TABLE source (id BIGINT PRIMARY KEY)"))
        connection.execute(sa.text("INSERT INTO source VALUES (1), (2), (900)"))
        for number in range(10, 28):
            connection.execute(sa.text("INSERT INTO source VALUES (:n)"), {"n": number})
    planned = retoma(tmp_path, "job", "plan", "j", "--app", "unsound", "--slots", "2")
    assert planned.returncode == 0, planned.stderr
    assert "a new instance would start" in planned.stdout
    assert "step s: 8 partitions, 21 items in about 3 chunks" in planned.stdout
    assert set(sa.inspect(engine).get_table_names()) == {"other", "source"}


def test_the_list_names_jobs_parameters_and_steps(tmp_path: Path) -> None:
    answer = retoma(tmp_path, "job", "list")
    assert answer.returncode == 0
    assert "posting -p reference_date=DATE\n  post\n" in answer.stdout


def test_the_reference_names_every_code() -> None:
    root = Path(__file__).parents[2]
    code = (root / "src/retoma/operations/job_check.py").read_text("utf-8")
    page = (root / "docs/reference/jobs.md").read_text("utf-8")
    known = {*UNSOUND, *ADVICE, "NO_AUDIT", "NUMERIC_ON_SQLITE"}
    assert known == set(re.findall(r'Weakness\(\s*"([A-Z_]+)"', code))
    assert {name for name in known if f"`{name}`" not in page} == set()
