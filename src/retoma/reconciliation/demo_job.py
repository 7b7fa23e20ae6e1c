"""The posting job as the demo's workers run it: each item is noted in a side file when it is seen.

Without the environment variable ``RETOMA_DEMO_TRACE`` it is the plain job. The name, and so the
identity of its instances, is the posting job's own.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import Any

from retoma import ItemStep, Job, StepContext
from retoma.reconciliation import posting
from retoma.reconciliation.demo_trace import SideFile, side_file_from
from retoma.reconciliation.posting_rules import Outcome, to_entry

CHUNK_SIZE = "RETOMA_DEMO_CHUNK_SIZE"
"""The environment variable with the number of items a chunk: small nights get small chunks."""


def _traced(side_file: SideFile) -> Any:
    note = side_file.note

    def process(item: Any, context: StepContext) -> Outcome:
        note(item[0])
        return to_entry(item, context)

    return process


def traced_job(side_file: SideFile | None, chunk_size: int | None) -> Job:
    """The posting job with its items noted, if there is a side file, in chunks of that size."""
    step = posting.JOB.step("post")
    if not isinstance(step, ItemStep):
        raise TypeError("the posting step is an item step")
    if side_file is not None:
        step = replace(step, process=_traced(side_file))
    if chunk_size is not None:
        step = replace(step, chunk_size=chunk_size)
    return replace(posting.JOB, steps=(step,))


JOB = traced_job(side_file_from(os.environ.get), int(os.environ.get(CHUNK_SIZE, "0")) or None)
