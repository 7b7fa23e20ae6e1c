"""Stores the lines of a chunk: each sighting once a file, each entry once over all files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any, TypeVar

from sqlalchemy import func, select

from retoma import StepContext, Transaction, Written, mask_text
from retoma.reconciliation.masking import mask_tail
from retoma.reconciliation.statement import StatementLine
from retoma.reconciliation.statement_tables import recon_entry, recon_line

_KEYS_A_QUERY = 1_000
_LINE_COLUMNS = ("file_id", "byte_offset", "natural_key", "occurrence", "is_conflict")
_ENTRY_COLUMNS = (
    "side", "natural_key", "occurrence", "account", "account_masked", "booking_date",
    "amount_minor", "currency", "kind", "e2e_id", "fitid", "document_no", "description", "digest",
    "file_id", "state", "first_seen_instance",
)  # fmt: skip
Item = TypeVar("Item")
Key = tuple[str, int]


def digest_of(line: StatementLine) -> str:
    """What decides the effect of a line, beside its key: its kind and its strong identifier."""
    effect = f"{line.kind}|{line.amount_minor}|{line.currency}|{line.e2e_id}"
    return blake2b(effect.encode("utf-8", "backslashreplace"), digest_size=16).hexdigest()


@dataclass(frozen=True, slots=True)
class StatementWriter:
    """Counts the occurrences of identical lines, and adds the entries that are new.

    The occurrence of a line is 1 + the stored sightings of the same file and key at lower offsets
    + those before it in the chunk: it is found in the transaction, never counted in memory over
    chunks. An entry that exists already counts as already done; if it is known under another strong
    identifier, the line is a conflict and stays out.
    """

    def write(
        self, tx: Transaction, context: StepContext, rows: Sequence[Any], *, carefully: bool
    ) -> Written:
        """Store the lines; raises the driver's integrity error if another process was faster."""
        lines: Sequence[StatementLine] = rows
        file_id = int(context.partition["file_id"])
        side = str(context.partition["side"])
        keys = _occurrences(tx, file_id, lines)
        known = _known(tx, side, keys)
        fresh: list[tuple[Any, ...]] = []
        conflicts: list[int] = []
        for position, (line, key) in enumerate(zip(lines, keys, strict=True)):
            digest = digest_of(line)
            if key not in known:
                known[key] = (digest, line.e2e_id)
                fresh.append(_entry(context, side, file_id, line, key[1], digest))
            elif _differs(known[key], digest, line.e2e_id):
                conflicts.append(position)
        tx.insert(recon_entry, _ENTRY_COLUMNS, fresh)
        _store_sightings(tx, file_id, lines, keys, set(conflicts))
        already = len(lines) - len(fresh) - len(conflicts)
        return Written(done=len(fresh), already=already, conflicts=tuple(conflicts))


def _differs(known: tuple[str, str], digest: str, e2e_id: str) -> bool:
    # Another format of the same bank may leave the identifier out: that is no contradiction.
    return known[0] != digest and bool(known[1]) and bool(e2e_id)


def _occurrences(tx: Transaction, file_id: int, lines: Sequence[StatementLine]) -> list[Key]:
    """Natural key and occurrence of each line."""
    first = min(line.offset for line in lines)
    table = recon_line
    seen: Counter[str] = Counter()
    for part in _parts({line.natural_key for line in lines}):
        statement = (
            select(table.c.natural_key, func.count())
            .where(
                table.c.file_id == file_id,
                table.c.natural_key.in_(part),
                table.c.byte_offset < first,
            )
            .group_by(table.c.natural_key)
        )
        seen.update({row[0]: row[1] for row in tx.fetch("recon.seen", statement)})
    keys = []
    for line in lines:
        seen[line.natural_key] += 1
        keys.append((line.natural_key, seen[line.natural_key]))
    return keys


def _known(tx: Transaction, side: str, keys: Sequence[Key]) -> dict[Key, tuple[str, str]]:
    """Digest and strong identifier of the entries that exist under the chunk's keys."""
    table = recon_entry
    found: dict[Key, tuple[str, str]] = {}
    for part in _parts({key for key, _ in keys}):
        statement = select(
            table.c.natural_key, table.c.occurrence, table.c.digest, table.c.e2e_id
        ).where(table.c.natural_key.in_(part), table.c.side == side)
        for row in tx.fetch("recon.known", statement):
            found[row.natural_key, row.occurrence] = (row.digest, row.e2e_id)
    return found


def _store_sightings(
    tx: Transaction,
    file_id: int,
    lines: Sequence[StatementLine],
    keys: Sequence[Key],
    conflicts: set[int],
) -> None:
    """Insert the sightings that an earlier run of the same file has not left."""
    table = recon_line
    statement = select(table.c.byte_offset).where(
        table.c.file_id == file_id,
        table.c.byte_offset >= min(line.offset for line in lines),
        table.c.byte_offset <= max(line.offset for line in lines),
    )
    stored = {row[0] for row in tx.fetch("recon.sighted", statement)}
    rows = [
        (file_id, line.offset, key, occurrence, int(position in conflicts))
        for position, (line, (key, occurrence)) in enumerate(zip(lines, keys, strict=True))
        if line.offset not in stored
    ]
    tx.insert(recon_line, _LINE_COLUMNS, rows)


def _entry(
    context: StepContext, side: str, file_id: int, line: StatementLine, occurrence: int, digest: str
) -> tuple[Any, ...]:
    is_balance = line.kind == "BALANCE"
    return (
        side,
        line.natural_key,
        occurrence,
        line.account,
        mask_tail(line.account),
        line.booking_date.isoformat(),
        line.amount_minor,
        line.currency,
        line.kind,
        line.e2e_id,
        line.fitid,
        line.document_no,
        mask_text(line.description),
        digest,
        file_id,
        "IGNORED" if is_balance else "OPEN",
        context.instance_id,
    )


def _parts(values: Iterable[Item]) -> Iterator[list[Item]]:
    ordered = list(values)
    for base in range(0, len(ordered), _KEYS_A_QUERY):
        yield ordered[base : base + _KEYS_A_QUERY]
