"""Effects within the work transaction, and the item that breaks a bulk write, found by halving."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from retoma.errors import FailureKind, PermanentFailure
from retoma.model.items import StepContext, Writer, Written
from retoma.store.session import Session

Classify = Callable[[BaseException], FailureKind]


_REFUSED_IN_A_ROW = 20


@dataclass(slots=True)
class Effects:
    """What the writer did: counts, and positions of rows that could not be written, with reasons."""

    done: int = 0
    already: int = 0
    refused: list[tuple[int, str, str]] = field(default_factory=list)

    def add(self, written: Written, offset: int) -> None:
        """Take over what the writer says of the rows from ``offset`` on."""
        self.done += written.done
        self.already += written.already
        for position in written.conflicts:
            self.refused.append(
                (
                    offset + position,
                    "KEY_CONFLICT",
                    "an entry with this key exists with other content; nothing was changed",
                )
            )


def write_effects(
    work: Session,
    writer: Writer,
    context: StepContext,
    rows: Sequence[Any],
    classify: Classify,
    *,
    carefully: bool,
) -> Effects:
    """Write all rows; a row that the database refuses is narrowed down and reported.

    At most 2·log2(n)+1 write attempts for one bad row in n. Only a data or constraint error on the
    user's own rows (classes 22 and 23) is narrowed; any other error is raised.
    """
    effects = Effects()
    pending = [(0, len(rows))] if rows else []
    while pending:
        start, end = pending.pop()
        work.savepoint("effects")
        try:
            written = writer.write(work, context, rows[start:end], carefully=carefully)
        except Exception as error:
            if classify(error) is not FailureKind.INVALID_ITEM:
                raise
            work.back_to("effects")
            if end - start == 1:
                effects.refused.append((start, "REFUSED_BY_DATABASE", _first_line(error)))
                _require_some_success(effects, _first_line(error))
            else:
                middle = (start + end) // 2
                pending += [(middle, end), (start, middle)]
            continue
        effects.add(written, start)
    return effects


def _require_some_success(effects: Effects, reason: str) -> None:
    """Rows that are refused one after the other are the job's mistake, not that of the items."""
    if not effects.done and not effects.already and len(effects.refused) >= _REFUSED_IN_A_ROW:
        raise PermanentFailure(
            f"the database refused the first {len(effects.refused)} rows of the chunk, each for"
            f" itself: {reason}"
        )


def _first_line(error: BaseException) -> str:
    text = str(getattr(error, "orig", None) or error).strip()
    return text.splitlines()[0] if text else type(error).__name__
