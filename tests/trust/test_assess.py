"""What is said about one query, for every kind of row of scores; and that it never disagrees."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sureshot.errors import SureshotError
from sureshot.trust.assess import assess
from sureshot.trust.card import Nonconformity
from sureshot.trust.fit import fit_card
from sureshot.trust.signals import QueryContext
from tests.trust.worlds import world

W = world(1, 300)
CARD = fit_card(W.scores, W.relevant, W.video, sizes=(30, 53, 95, 169, 300))


def ordered(seed, videos):
    return -np.sort(-world(seed, videos).scores, axis=1)


def test_it_says_what_the_card_says():
    for row in ordered(2, 200)[:10]:
        found = assess(CARD, row)
        one = row[None]
        assert found.p_inside == CARD.p_inside(one)[0]
        np.testing.assert_array_equal(found.p_relevant, CARD.p_relevant(one, results=None)[1][0])
        assert found.p_relevant[0] == CARD.p_top1(one)[0]
        assert found.plausible == 1 or found.plausible >= CARD.members(one).sum()
        assert found.warnings == ()


def test_statuses_follow_the_numbers():
    statuses = set()
    for row in ordered(3, 250):
        found = assess(CARD, row)
        first = found.p_relevant[0]
        absent = found.p_inside < 0.1
        assert found.status == ("absent" if absent else "confident" if first >= 0.8 else "several")
        statuses.add(found.status)
    assert statuses == {"confident", "several", "absent"}


def test_abstention_can_be_set():
    row = next(r for r in ordered(3, 250) if assess(CARD, r).status == "absent")
    p = assess(CARD, row).p_inside
    assert assess(CARD, row, abstain=p).status != "absent"
    assert assess(CARD, row, abstain=p + 0.001).status == "absent"


ROWS = arrays.arrays(
    np.float64,
    st.integers(1, 200),
    elements=st.floats(-1, 1, allow_subnormal=False),
)


@given(
    row=ROWS,
    level=st.floats(-6, 6),
    coverage=st.sampled_from([0.5, 0.8, 0.9]),
    more=st.integers(0, 5000),
)
def test_nothing_that_is_said_contradicts_the_rest(row, level, coverage, more):
    """Whatever the scores are, and however sure the card is of everything."""
    lifted = replace(CARD.top1, bias=CARD.top1.bias + level)
    each = replace(CARD.result, bias=CARD.result.bias + level)
    card = replace(CARD, top1=lifted, result=each)
    row = -np.sort(-row)
    found = assess(card, row, QueryContext(videos=len(row) + more), coverage=coverage)
    p = found.p_relevant
    assert ((p >= 0) & (p <= 1)).all() and (np.diff(p) <= 0).all()
    assert 1 <= found.plausible <= len(row)
    # Who is sure of the first needs no other, and only who is.
    assert (found.plausible == 1) == (p[0] >= coverage or len(row) == 1)
    # As many as percentages say are needed at least: nothing else could hold what is promised.
    if p[0] < coverage and found.plausible < len(row):
        assert p[: found.plausible].sum() >= coverage - 1e-9
    assert (found.status == "absent") == (found.p_inside < 0.1)
    if found.status == "confident":
        assert p[0] >= 0.8


def test_a_wider_coverage_takes_no_fewer():
    for row in ordered(5, 200)[:40]:
        sizes = [assess(CARD, row, coverage=c).plausible for c in (0.5, 0.8, 0.9, 0.95)]
        assert sizes == sorted(sizes)


def test_what_cannot_be_promised_is_not_all_videos():
    few = Nonconformity.of(np.arange(8.0))
    short = tuple(tuple(replace(r, below=few) for r in part) for part in CARD.references)
    found = assess(replace(CARD, references=short), ordered(5, 100)[0])
    assert found.plausible is None
    assert "Too few labelled videos" in found.warnings[0]
    again = assess(replace(CARD, references=short), ordered(5, 100)[0], coverage=0.8)
    assert again.plausible is not None


@pytest.mark.parametrize("videos", [29, 301, 5000])
def test_galleries_outside_of_the_calibrated_range_are_warned_of(videos):
    row = -np.sort(-np.random.default_rng(0).random(60))
    assert str(videos) in assess(CARD, row[:29], QueryContext(videos=videos)).warnings[0]
    assert assess(CARD, row).warnings == ()


def test_without_a_card_there_are_no_percentages():
    row = np.array([0.9, 0.5, 0.1])
    for calibration in (None, replace(CARD, refused="The labels do not separate")):
        found = assess(calibration, row)
        assert found.status == "uncalibrated"
        assert found.p_inside is found.plausible is found.p_relevant is None
        assert len(found.warnings) == 1
        assert found.warnings[0].endswith(".")


def test_ties_and_a_single_video_are_never_confident():
    # The best score is high, and nothing tells which video it is.
    assert assess(CARD, np.full(50, 0.7)).status != "confident"
    assert assess(CARD, np.array([0.7])).status != "confident"


def test_rows_that_are_no_scores_are_refused():
    for row in (np.zeros(0), np.array([np.nan, 0.1]), np.full(3, -np.inf), np.array([np.inf, 0])):
        with pytest.raises(SureshotError):
            assess(CARD, row)
    with pytest.raises(SureshotError, match="coverage is 1"):
        assess(CARD, np.zeros(5), coverage=1.0)
