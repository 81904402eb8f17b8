"""What a card was made of: its sets and its date."""

from datetime import UTC, datetime

import numpy as np
import pytest

from sureshot.trust.calibrated import Calibrated, sets_of, today
from sureshot.trust.conformal import COVERAGES
from sureshot.trust.fitting import fit_card
from tests.trust.worlds import world


def test_the_sets_are_those_that_the_card_gives() -> None:
    w = world(1, 200)
    card = fit_card(w.scores, w.relevant, w.video)
    for row, coverage in zip(sets_of(card, w.scores), COVERAGES, strict=True):
        sizes = [card.members(line, coverage).sum() for line in w.scores]
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


def test_the_date_is_that_of_greenwich() -> None:
    before = datetime.now(UTC).date().isoformat()
    assert before <= today() <= datetime.now(UTC).date().isoformat()
