"""The variants of the models in models/*.pml, and the verdict that each must get.

A variant is a set of macros. The sound ones hold; each broken one lacks something that the code has,
and must be caught, or the model would show nothing. Where two guards of the code each suffice, the
variant without one of them holds, and the variant without both is broken.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Variant:
    """One check: a model, its macros, and what the checker must say."""

    model: str
    name: str
    macros: str
    caught_by: str | None = None
    """Words of the violated assertion; None if the variant is sound."""
    is_liveness: bool = False
    """Checks that everything ends, instead of the assertions."""

    def __str__(self) -> str:
        return f"{self.model}: {self.name}"


_EFFECTS = "chunk[c].first==1"
_STALE = "fence==chunk[c].fence"
_TOLD = "chunk[c].winner!=f"
_ENDED = "chunk[c].ended"
_ENDLESS = "acceptance cycle"

_CHUNK = (
    Variant("chunk", "sound", ""),
    Variant("chunk", "sound, two sweeps", "SWEEPS=2"),
    Variant("chunk", "sound, two chunks", "C=2"),
    Variant("chunk", "sound, three workers", "W=3 LOST=0 SILENT=0"),
    Variant("chunk", "every chunk ends", "", None, is_liveness=True),
    Variant("chunk", "fence without unique keys", "NO_UNIQUE"),
    Variant("chunk", "unique keys without fence", "NO_FENCE"),
    Variant("chunk", "unique keys, fence outside", "FENCE_OUTSIDE_COMMIT"),
    Variant("chunk", "no witness", "NO_WITNESS", _EFFECTS),
    Variant("chunk", "no fence", "NO_FENCE NO_UNIQUE", _STALE),
    Variant("chunk", "no fence, effects alone", "NO_FENCE NO_UNIQUE EFFECTS_ONLY"),
    Variant("chunk", "no guard at all", "NO_FENCE NO_UNIQUE NO_STATE EFFECTS_ONLY", _EFFECTS),
    Variant("chunk", "fence outside the commit", "FENCE_OUTSIDE_COMMIT NO_UNIQUE", _STALE),
    Variant("chunk", "doubt without reading again", "DOUBT_WITHOUT_REREAD", _TOLD),
    Variant("chunk", "the same fence twice", "SAME_FENCE", _ENDED),
    Variant("chunk", "old session not ended", "NO_END", _ENDLESS, is_liveness=True),
)

_RUNNING = "==2)"  # how the checker writes the number of RUNNING chunks
_WAITING = "to!=3"
_TWO_LIVE = "run_[1].live"
_TWO_RUNS = "CRASHES=0 SPLITS=0 BACK=0"

_CLOSE = (
    Variant("close", "sound, two runs", _TWO_RUNS),
    Variant("close", "sound, one run with a split", "RUNS=1 CRASHES=0"),
    Variant("close", "both runs end", "EARLY=0 SPLITS=0 BACK=0 STOPS=0", None, is_liveness=True),
    Variant("close", "a stopped run ends", "RUNS=1 SPLITS=0 BROKEN=0", None, is_liveness=True),
    Variant("close", "decision without guard", f"NO_RUNNING_GUARD {_TWO_RUNS} PLAN_FAILS=0"),
    Variant("close", "no token", f"NO_TOKEN {_TWO_RUNS}", _RUNNING),
    Variant("close", "no version", f"NO_VERSION {_TWO_RUNS}", _RUNNING),
    Variant("close", "closing with a running chunk", f"CLOSE_WITH_RUNNING {_TWO_RUNS}", _WAITING),
    Variant("close", "guard without decision", f"NO_RUNNING_CHECK {_TWO_RUNS}", _WAITING),
    Variant("close", "stop without shutting", f"NO_SHUT {_TWO_RUNS}", _RUNNING),
    Variant("close", "two live runs", f"NO_UNIQUE_RUN {_TWO_RUNS}", _TWO_LIVE),
    Variant("close", "plan without token", f"PLAN_WITHOUT_TOKEN {_TWO_RUNS}", _RUNNING),
    Variant("close", "nobody takes over", "NO_TAKEOVER RUNS=1", _ENDLESS, is_liveness=True),
)

VARIANTS = _CHUNK + _CLOSE
