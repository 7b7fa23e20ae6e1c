"""The result of a reconciliation for people, as plain lines."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

_RULES: Final = {
    "END_TO_END_ID": "same end-to-end id",
    "BANK_ID": "same bank id and account",
    "CONTENT": "same account, date and amount",
}
_NEXT: Final = {
    3: "next: repeat the same command; it takes up from the last committed chunk",
    4: "next: cure the cause, then repeat the same command",
    5: "next: retoma errors list {run}",
    8: "next: repeat the same command to go on",
}


def lines_of(outcome: Mapping[str, Any]) -> list[str]:
    """The run, its files, what matched, what broke, and what to do next."""
    run, state = outcome["run"], outcome["state"]
    again = " (already complete: nothing was done)" if outcome["was_complete"] else ""
    lines = [f"run {run} {state}{again}"]
    if outcome["failure"]:
        lines.append(f"  failure: {outcome['failure']}")
    lines += _files(outcome["files"])
    if state in ("COMPLETED", "PARTIALLY_COMPLETED"):
        lines += _matched(outcome) + _breaks(outcome["breaks"]) + _set_aside(outcome["set_aside"])
        lines += [f"result {outcome['result_hash']}"]
    lines += [f"written {path}" for path in outcome.get("written", ())]
    if outcome["exit_code"] in _NEXT:
        lines.append(_NEXT[outcome["exit_code"]].format(run=run))
    return lines


def _files(files: Sequence[Mapping[str, Any]]) -> list[str]:
    lines = ["files"]
    for one in files:
        count = one["lines"]
        lines.append(
            f"  {one['side'].lower()} {one['name']}: {count['count']} records,"
            f" {count['new']} new, {count['known_before']} known before,"
            f" {count['bad_records'] + count['conflicts']} set aside;"
            f" proof {one['proof']} ({one['proof_reason']})"
        )
    return lines


def _matched(outcome: Mapping[str, Any]) -> list[str]:
    found = outcome["matched"]
    lines = [f"matched {found['count']} and posted"]
    lines += [
        f"  {one['count']:>9,}  {one['sum']:>18} {one['currency'] or '(no currency)'}"
        f"  {_RULES[one['rule']]}"
        for one in found["by_rule"]
    ]
    if outcome["matched_before"]:
        lines.append(f"  {outcome['matched_before']:,} entries of these files had matched before")
    return lines


def _breaks(found: Mapping[str, Any]) -> list[str]:
    lines = [f"breaks {found['count']}"]
    for one in found["by_type"]:
        before = f", {one['seen_before']} seen before" if one["seen_before"] else ""
        lines.append(
            f"  {one['count']:>9,}  {one['amount_at_risk']:>18} {one['currency'] or '(no currency)'}"
            f"  {one['type']}: {one['meaning']}{before}"
        )
    return lines


def _set_aside(found: Mapping[str, Any]) -> list[str]:
    if not found["count"]:
        return ["set aside 0"]
    reasons = ", ".join(f"{count} {reason}" for reason, count in found["by_reason"].items())
    return [f"set aside {found['count']}: {reasons}"]
