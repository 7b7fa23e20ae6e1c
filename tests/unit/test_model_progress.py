"""The pace of a run is that of its last seconds."""

from __future__ import annotations

from retoma.model.progress import Pace


def test_a_rate_needs_two_looks() -> None:
    pace = Pace()
    assert pace.rate(100, 0.0) == 0.0
    assert pace.rate(300, 2.0) == 100.0


def test_an_old_pace_is_forgotten() -> None:
    pace = Pace()
    for second in range(11):
        pace.rate(1_000 * second, float(second))
    for second in range(11, 60):
        rate = pace.rate(10_000, float(second))
    assert rate == 0.0


def test_two_looks_at_the_same_instant_divide_by_nothing() -> None:
    pace = Pace()
    assert pace.rate(1, 5.0) == pace.rate(2, 5.0) == 0.0


def test_a_line_tells_share_rate_and_time_left() -> None:
    pace = Pace()
    first = pace.line(0, 4_000, 0.0)
    assert first == "0 of 4,000 items (0.0 %), 0 a second"
    assert pace.line(1_000, 4_000, 2.0) == "1,000 of 4,000 items (25.0 %), 500 a second, 6 s left"
    assert "left" not in pace.line(4_000, 4_000, 4.0)
