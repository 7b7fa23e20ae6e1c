"""Mutants of the claim: who gets a chunk, and how it is kept."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from retoma.cluster.keeper import Keeper
from retoma.cluster.work import SlotWork
from retoma.model.records import Claim, OpenStep, Owner
from retoma.store import chunks, progress
from retoma.store.dialects.contract import Guarded
from retoma.store.session import Session
from retoma.testing.simulation.mutants.commits import around_commit
from retoma.testing.simulation.mutants.mutant import Mutant, Patch, cut_from, without


def _fence_not_raised(patch: Patch) -> None:
    guard = chunks.CLAIM.guard.replace(
        "fence = fence + 1,", "fence = CASE fence WHEN 0 THEN 1 ELSE fence END,"
    )
    patch(chunks, "CLAIM", replace(chunks.CLAIM, guard=guard))


def _claim_without_guard(patch: Patch) -> None:
    bare = replace(
        chunks.CLAIM,
        pick=None,
        guard=chunks.CLAIM.guard.replace("{picked} AND state = 'PENDING'", ":seen_id"),
    )

    def once(session: Session, operation: Guarded, values: Mapping[str, Any]) -> bool:
        if operation is not bare:
            return session.dialect.once(session, operation, values)
        rows = session.fetch(
            "chunk.look",
            "SELECT id FROM batch_chunk WHERE step_id = :step_id AND state = 'PENDING' ORDER BY id",
            {"step_id": values["step_id"]},
        )
        if not rows:
            return False
        return session.dialect.once(session, bare, {**values, "seen_id": rows[0][0]})

    patch(chunks, "CLAIM", bare)
    patch(Session, "once", once)


def _cut_without_compare(patch: Patch) -> None:
    for name in ("CUT", "CLOSE_EMPTY"):
        patch(chunks, name, without(getattr(chunks, name), " AND cut_to = :seen"))


def _strict_unguarded(patch: Patch) -> None:
    patch(chunks, "CUT_STRICT", without(chunks.CUT_STRICT, " AND live_token IS NULL"))
    patch(
        chunks,
        "_ADVANCE",
        cut_from(chunks._ADVANCE, " AND cut_to = :start_key", " AND live_token IS NOT NULL"),
    )
    patch(progress, "_UNCUT", cut_from(progress._UNCUT, " AND p.live_token IS NULL"))


def _renewed_in_work(patch: Patch) -> None:
    lease = [0.0]
    work = SlotWork._work

    def believe(self: Keeper) -> None:
        until = self.clock.boottime() + self.timing.lease - self.timing.margin
        self.beliefs = dict.fromkeys(self.claims(), until)

    def begin(self: SlotWork, owner: Owner, step: OpenStep, claimed: Claim) -> None:
        lease[0] = self.timing.lease
        work(self, owner, step, claimed)

    def before(
        bench: Any, _step: Any, _definition: Any, claimed: Any, _page: Any, _done: Any
    ) -> None:
        chunks.renew(bench.control, claimed.token, lease[0])

    patch(Keeper, "_renew", believe)
    patch(SlotWork, "_work", begin)
    around_commit(patch, before=before)


CLAIMS = (
    Mutant("fence_not_raised", "a claim keeps the fence of the one before", _fence_not_raised),
    Mutant(
        "claim_without_guard",
        "a claim does not look whether the chunk still waits",
        _claim_without_guard,
    ),
    Mutant(
        "cut_without_compare",
        "a cut does not look whether the cursor has moved",
        _cut_without_compare,
    ),
    Mutant("strict_unguarded", "two chunks of a strict partition may be live", _strict_unguarded),
    Mutant(
        "renewed_in_work",
        "a slot renews its lease itself when it has computed, its supervisor does not",
        _renewed_in_work,
        database="postgresql",
    ),
)
