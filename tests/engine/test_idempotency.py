"""Each effect once for its key: over runs, dates, chunks and within one chunk."""

from __future__ import annotations

from retoma.model.status import RunState
from tests.engine.conftest import Nights
from tests.engine.small_job import NEXT_DAY, CountingWriter, make_job


def test_another_date_finds_what_is_already_done(night: Nights) -> None:
    here = night()
    here.seed(["post"] * 5)
    assert here.whole() is RunState.COMPLETED
    before = here.effects()
    again = night()
    assert again.whole(NEXT_DAY) is RunState.COMPLETED
    assert again.effects() == before
    counts = again.counts()
    assert (counts["done"], counts["already_done"], counts["first_reads"]) == (5, 5, 10)


def test_the_same_key_with_other_content_is_a_conflict_and_changes_nothing(night: Nights) -> None:
    here = night()
    here.seed(["post"] * 4)
    here.whole()
    before = here.effects()
    here.change("UPDATE source SET amount = 999 WHERE id = 2")
    again = night()
    assert again.whole(NEXT_DAY) is RunState.PARTIALLY_COMPLETED
    assert again.faults() == [("2", "SET_ASIDE", "KEY_CONFLICT")]
    assert again.effects() == before


def test_within_one_chunk_the_first_row_of_a_key_wins(night: Nights) -> None:
    here = night()
    here.seed(["post", "same", "post", "same key"])
    assert here.whole() is RunState.PARTIALLY_COMPLETED
    assert here.faults() == [("4", "SET_ASIDE", "KEY_CONFLICT")]
    assert [key for key, _, _ in here.effects()] == ["key 1", "key 3"]
    counts = here.counts()
    assert (counts["done"], counts["already_done"], counts["set_aside"]) == (2, 1, 1)


def test_a_violated_key_begins_the_transaction_anew_and_carefully(night: Nights) -> None:
    writer = CountingWriter()
    here = night(make_job(writer=writer))
    here.seed(["post", "same"])
    assert here.whole() is RunState.COMPLETED
    assert writer.calls == [(2, False), (2, True)]
    assert here.attempts() == [(1, "COMPLETED")]


def test_a_successor_looks_before_it_inserts(night: Nights) -> None:
    writer = CountingWriter()
    here = night(make_job(writer=writer))
    here.seed(["post"] * 3)
    here.launch()
    here.advance()
    assert here.find() is not None
    here.take_over_all()
    assert here.to_end() is RunState.COMPLETED
    assert writer.calls == [(3, True)]
    assert here.attempts() == [(1, "LOST"), (2, "COMPLETED")]


def test_a_row_that_another_session_inserts_meanwhile_is_found(night: Nights) -> None:
    here = night()
    here.seed(["post"] * 3)
    here.change(
        "INSERT INTO effect (effect_key, digest, amount, note)"
        " VALUES ('key 2', 'digest 20', 20, 'by hand')"
    )
    assert here.whole() is RunState.COMPLETED
    assert len(here.effects()) == 3
    assert here.counts()["already_done"] == 1
