"""Whether a file's own balances agree with its lines.

An observed balance is a balance that the file states at some line. Between two of them the
movements must add up to the difference. Files come oldest first or newest first: in the second
case the same holds read backwards.
"""

from dataclasses import dataclass
from datetime import date

from retoma.reconciliation.statement import DeclaredBalance, Proof, StatementLine


@dataclass(slots=True)
class _Direction:
    """Counts the places at which one reading direction does not add up."""

    previous: int | None = None
    since: int = 0
    breaks: int = 0
    first_break: int = 0

    def check(self, expected: int, observed: int, line: int) -> None:
        if expected != observed:
            self.breaks += 1
            self.first_break = self.first_break or line


class BalanceChain:
    """The balances of one account, currency and statement, in the order of the file."""

    def __init__(self) -> None:
        self._up, self._down = _Direction(), _Direction()
        self._observed = 0
        self._before = 0
        self._after = 0
        self._first_day: date | None = None
        self._last_day: date | None = None
        self._opening_at = 0
        self._first_balance: int | None = None
        self._last_balance: int | None = None

    def add(
        self, amount: int, balance: int | None, line: int, day: date | None, *, opening: bool
    ) -> None:
        """Take in a movement (or 0), and the balance that the file states with it."""
        self._first_day = self._first_day or day
        self._last_day = day or self._last_day
        self._up.since += amount
        if balance is None:
            self._down.since += amount
            self._after += 1
            self._before += not self._observed
            return
        self._observed += 1
        self._after = 0
        if opening:
            self._opening_at = self._observed
        if self._up.previous is not None and self._down.previous is not None:
            self._up.check(self._up.previous + self._up.since, balance, line)
            self._down.check(balance + self._down.since, self._down.previous, line)
        else:
            self._first_balance = balance
        self._up.previous = self._down.previous = self._last_balance = balance
        self._up.since, self._down.since = 0, amount

    def ends(self) -> tuple[int | None, int | None]:
        """Return the opening and the closing balance, each only if the file really states it."""
        if self._observed < 2 or not self._opening_at:
            return None, None
        if self._opening_at == 1:
            return self._first_balance, self._last_balance
        return self._last_balance, self._first_balance

    def verdict(self) -> tuple[Proof, str]:
        """Return the state of the proof and its reason, in words."""
        if self._observed < 2:
            return "NOT_PROVABLE", "the file does not state two balances"
        if self._before or self._after:
            return "NOT_PROVABLE", "some lines lie outside the stated balances"
        directions = self._directions()
        if any(direction.breaks == 0 for direction in directions):
            return "PROVEN", f"{self._observed} balances agree with the lines between them"
        best = min(directions, key=lambda direction: direction.breaks)
        return "FAILED", (
            f"{best.breaks} of {self._observed} balances disagree with the lines, "
            f"first at line {best.first_break}"
        )

    def _directions(self) -> list[_Direction]:
        if self._opening_at == 1:
            return [self._up]
        if self._opening_at:
            return [self._down]
        if self._first_day and self._last_day and self._first_day != self._last_day:
            return [self._up] if self._first_day < self._last_day else [self._down]
        return [self._up, self._down]


class OpeningAndClosing:
    """The OFX case: an opening balance among the lines, and the ledger balance after them."""

    def __init__(self) -> None:
        self._opening: int | None = None
        self._ledger: DeclaredBalance | None = None
        self._problem = ""

    def see_opening(self, line: StatementLine) -> None:
        """Take a balance line that means the balance before the first movement."""
        if self._opening is not None and self._opening != line.balance_minor:
            self._problem = "it states two different opening balances"
        self._opening = line.balance_minor

    def see_ledger(self, balance: DeclaredBalance) -> None:
        """Take the ledger balance."""
        self._ledger = balance

    def ends(self) -> tuple[int | None, int | None]:
        """Return the opening and the closing balance, as far as the file states them."""
        return self._opening, None if self._ledger is None else self._ledger.amount_minor

    def verdict(self, sum_minor: int) -> tuple[Proof, str]:
        """Return the state of the proof: opening + movements = ledger balance."""
        if self._problem:
            return "NOT_PROVABLE", self._problem
        if self._opening is None:
            return "NOT_PROVABLE", "the statement names no opening balance"
        if self._ledger is None:
            return "NOT_PROVABLE", "the statement names no closing balance"
        if self._opening + sum_minor == self._ledger.amount_minor:
            return "PROVEN", "opening balance and movements give the ledger balance"
        if self._ledger.as_of is None or self._ledger.as_of != self._ledger.period_end:
            return "NOT_PROVABLE", "the ledger balance is not of the last day of the statement"
        return "FAILED", "opening balance and movements do not give the ledger balance"
