"""What is said about one query, for every kind of row of scores."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.assessment import assess
from sureshot.trust.card import Calibration
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.fitting import fit_card
from sureshot.trust.risk import Certificate
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card() -> Calibration:
    w = world(1, 300)
    return fit_card(w.scores, w.relevant, w.video, sought=w.video, sizes=(30, 53, 95, 169, 300))


def test_it_says_what_the_card_says(card):
    w = world(2, 200)
    for row in (0, 5, 9):
        found = assess(card, w.scores[row])
        one = w.scores[row : row + 1]
        assert found.p_top1 == card.p_top1(one)[0]
        assert found.p_inside == card.p_inside(one)[0]
        order, relevant = card.p_relevant(one)
        np.testing.assert_array_equal(found.order, order[0])
        np.testing.assert_array_equal(found.p_relevant, relevant[0])
        inside = np.flatnonzero(card.members(w.scores[row]))
        assert set(found.members) == set(inside)
        assert (np.diff(w.scores[row, found.members]) <= 0).all()
        assert found.warnings == ()


def test_statuses_follow_the_numbers(card):
    w = world(3, 250)
    for row in w.scores[:100]:
        found = assess(card, row)
        expected = "confident" if found.p_top1 >= 0.8 else "several"
        assert found.status == ("absent" if found.p_inside < 0.1 else expected)
    statuses = {assess(card, row).status for row in w.scores}
    assert statuses == {"confident", "several", "absent"}


def test_abstention_can_be_set(card):
    row = world(3, 250).scores[0]
    p = assess(card, row).p_inside
    assert assess(card, row, abstain=p).status != "absent"
    assert assess(card, row, abstain=p + 0.001).status == "absent"


def test_a_risk_sets_the_threshold(card):
    w = world(4, 250)
    known = Certificate(0.2, 0.95, 0.55, 0.5, 90, 9, 0.17)
    card = replace(card, certificates=(known,))
    for row in w.scores[:60]:
        found = assess(card, row, risk=0.25, abstain=0.0)
        assert (found.status == "confident") == (found.p_top1 >= 0.55)
        never = assess(card, row, risk=0.1, abstain=0.0)
        assert never.status == "several"
        assert "cannot be certified" in never.warnings[0]


def test_what_cannot_be_promised_is_not_all_videos(card):
    few = replace(card, any=Nonconformity.of(np.arange(8.0)))
    found = assess(few, world(5, 100).scores[0])
    assert found.members is None
    assert "8 labelled videos are too few" in found.warnings[0]
    assert assess(few, world(5, 100).scores[0], coverage=0.8).members is not None


@pytest.mark.parametrize("videos", [29, 301, 5000])
def test_galleries_outside_of_the_calibrated_range_are_warned_of(card, videos):
    row = np.random.default_rng(0).random(videos)
    assert str(videos) in assess(card, row).warnings[0]
    assert assess(card, row[:30] if videos > 30 else np.append(row, 0.1)).warnings == ()


def test_without_a_card_there_are_no_percentages(card):
    row = np.array([0.1, 0.9, 0.5])
    for calibration in (None, replace(card, refused="The labels do not separate")):
        found = assess(calibration, row, results=2)
        assert found.status == "uncalibrated"
        assert found.p_top1 is found.p_inside is found.members is found.p_relevant is None
        assert found.order.tolist() == [1, 2]
        assert len(found.warnings) == 1
        assert found.warnings[0].endswith(".")


@pytest.mark.parametrize(
    "row",
    [
        np.array([0.4]),
        np.full(50, 0.3),
        np.zeros(2),
        np.repeat([0.9, 0.1], 25),
        np.full(40, -1e9),
        np.full(40, 1e9),
        np.append(np.full(60, -np.inf), 0.2),
        np.array([0.3, 0.2], np.float32),
    ],
    ids=["one", "constant", "zeros", "ties", "low", "high", "ruled-out", "half"],
)
def test_odd_rows_get_an_answer(card, row):
    found = assess(card, row)
    assert 0 <= found.p_top1 <= 1
    assert 0 < found.p_inside <= 1
    assert ((found.p_relevant >= 0) & (found.p_relevant <= 1)).all()
    assert (row[found.members] > -np.inf).all()
    assert len(found.order) == min(10, len(row))


def test_ties_and_a_single_video_are_never_confident(card):
    # The best score is high, and nothing tells which video it is.
    assert assess(card, np.full(50, 0.7)).status != "confident"
    assert assess(card, np.array([0.7])).status != "confident"


def test_low_scores_are_absent_and_have_an_empty_set(card):
    found = assess(card, np.full(50, -0.9))
    assert found.status == "absent"
    assert found.members.tolist() == []


def test_rows_that_are_no_scores_are_refused(card):
    for row in (np.zeros(0), np.array([np.nan, 0.1]), np.full(3, -np.inf), np.array([np.inf, 0])):
        with pytest.raises(SureshotError):
            assess(card, row)
    with pytest.raises(SureshotError, match="coverage is 1"):
        assess(card, np.zeros(5), coverage=1.0)
    with pytest.raises(SureshotError, match="results is 0"):
        assess(card, np.zeros(5), results=0)
