"""What a card was made of: its sets and its date."""

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import ArgumentError
from sureshot.trust.card import COVERAGES
from sureshot.trust.fit import fit_card
from sureshot.trust.report import Calibrated, date_or_today, sets_of
from tests.trust.worlds import world


def test_the_sets_are_those_that_the_card_gives() -> None:
    w = world(1, 200)
    card = fit_card(w.scores, w.relevant, w.video)
    for row, coverage in zip(sets_of(card, w.scores), COVERAGES, strict=True):
        sizes = [card.members(line[None], coverage).sum() for line in w.scores]
        assert (row.coverage, row.videos) == (coverage, pytest.approx(np.mean(sizes)))


def test_what_is_told_to_programs_names_every_count() -> None:
    w = world(1, 200)
    card = fit_card(w.scores, w.relevant, w.video)
    done = Calibrated(
        card=card, gallery=200, sets=sets_of(card, w.scores), absent=3, not_found=2, left_out=1
    )
    values = done.to_dict()
    assert [values[name] for name in ("gallery", "absent", "not_found", "left_out")] == [
        200,
        3,
        2,
        1,
    ]
    assert [row["coverage"] for row in values["sets"]] == list(COVERAGES)


def test_without_a_date_it_is_that_of_greenwich() -> None:
    before = datetime.now(UTC).date().isoformat()
    assert before <= date_or_today("") <= datetime.now(UTC).date().isoformat()
    assert date_or_today("2026-11-30") == "2026-11-30"


def test_what_is_no_date_is_refused() -> None:
    with pytest.raises(ArgumentError, match=r"`date='30.11.2026'` is no date"):
        date_or_today("30.11.2026")


@pytest.fixture(scope="module")
def done() -> Calibrated:
    w = world(1, 200)
    card = fit_card(w.scores, w.relevant, w.video, dataset="mine", date="2026-11-30")
    return Calibrated(card=card, gallery=200, sets=sets_of(card, w.scores), absent=3)


def test_it_prints_what_the_labels_gave(done: Calibrated, tmp_path: Path) -> None:
    lines = repr(done.saved(tmp_path / "card.json")).splitlines()
    assert lines[0].endswith("(mine), 3 more with nothing right here; 200 videos searched.")
    assert lines[-1] == f"Card: {tmp_path / 'card.json'}"


def test_a_refused_card_is_not_written_and_says_why(done: Calibrated, tmp_path: Path) -> None:
    refused = replace(done, card=replace(done.card, refused="They tell nothing."))
    (tmp_path / "card.json").write_text("before")
    assert refused.saved(tmp_path / "card.json").file is None
    assert (tmp_path / "card.json").read_text() == "before"
    assert "No percentages and no card: They tell nothing." in repr(refused)
    assert "All this holds" not in repr(refused)
