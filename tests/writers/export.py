"""A small export: lines of JSON become a file, and each line says what should become of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from retoma import CsvWriter, ItemStep, Job, JsonLinesReader, SetAside, StepContext, TaskStep

NUMBERS = [1, 2, 3, -4, 5, 0, 7]  # negative: set aside, zero: left out
HEAD = "n,text\r\n"


def to_row(item: Any, _: StepContext) -> Any:
    if item["n"] < 0:
        return SetAside("NEGATIVE", "asked")
    return (item["n"], f"row\n{item['n']}") if item["n"] else None


def expected(numbers: list[int] = NUMBERS, *, bad: int = 0) -> str:
    return HEAD + "".join(f'{n},"row\n{n}"\r\n' for n in numbers if n > 0)


def write_input(folder: Path, numbers: list[int] = NUMBERS) -> Path:
    """The lines, with one in the middle that can't be read."""
    lines = [json.dumps({"n": n}) + "\n" for n in numbers]
    lines.insert(len(lines) // 2, "{broken\n")
    path = folder / "in.jsonl"
    path.write_text("".join(lines), "utf-8")
    return path


def writer(target: Path) -> CsvWriter:
    return CsvWriter(path=lambda context: target, columns=("n", "text"))


def export(
    source: Path,
    target: Path,
    *,
    chunk_size: int = 2,
    process: Callable[[Any, StepContext], Any] = to_row,
    splits: bool = False,
    partitions: int | None = None,
) -> Job:
    out = writer(target)
    return Job(
        name="export",
        steps=(
            ItemStep(
                name="write",
                reader=JsonLinesReader(files=lambda context: [source], splits=splits),
                process=process,
                writer=out,
                chunk_size=chunk_size,
                partitions=partitions,
            ),
            TaskStep(name="assemble", work=out.assemble),
        ),
        prepare=out.prepare,
    )
