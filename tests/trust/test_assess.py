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
from sureshot.trust.signals import QueryContext
from tests.trust.worlds import world

CARD = world(1, 300).card()


def ordered(seed, videos):
    return -np.sort(-world(seed, videos).scores, axis=1)


def one(card, row, about=QueryContext(), **more):  # noqa: B008 - frozen
    return assess(card, np.array(row)[None], about, **more)[0]


def test_it_says_what_the_card_says_and_its_status_follows():
    rows = ordered(3, 250)
    statuses = set()
    for row, found in zip(rows, assess(CARD, rows), strict=True):
        inside, p = CARD.p_inside(row[None])[0], CARD.p_relevant(row[None], results=None)[1][0]
        assert found.p_inside == pytest.approx(inside)
        np.testing.assert_allclose(found.p_relevant, p)
        assert found.plausible == 1 or found.plausible >= CARD.members(row[None]).sum()
        assert found.warnings == ()
        expected = "absent" if inside < 0.1 else "confident" if p[0] >= 0.8 else "several"
        assert found.status == expected
        statuses.add(found.status)
    assert statuses == {"confident", "several", "absent"}


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
    found = one(card, row, QueryContext(videos=len(row) + more), coverage=coverage)
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
    rows = ordered(5, 200)[:40]
    sizes = [[f.plausible for f in assess(CARD, rows, coverage=c)] for c in (0.5, 0.8, 0.9, 0.95)]
    assert (np.diff(sizes, axis=0) >= 0).all()


def test_what_cannot_be_promised_is_not_all_videos():
    few = Nonconformity.of(np.arange(8.0))
    short = tuple(tuple(replace(r, below=few) for r in part) for part in CARD.references)
    row = ordered(5, 100)[0]
    found = one(replace(CARD, references=short), row)
    assert found.plausible is None
    assert "Too few labelled videos" in found.warnings[0]
    assert one(replace(CARD, references=short), row, coverage=0.8).plausible is not None


@pytest.mark.parametrize(("videos", "word"), [(5, "too low"), (301, "too high")])
def test_galleries_outside_of_the_calibrated_range_are_warned_of(videos, word):
    row = -np.sort(-np.random.default_rng(0).random(5))
    (warning,) = one(CARD, row, QueryContext(videos=videos)).warnings
    assert f"{videos} moments" in warning and word in warning
    for within in (6, 300):
        assert one(CARD, row, QueryContext(videos=within)).warnings == ()


def test_without_a_card_there_are_no_percentages():
    for calibration in (None, replace(CARD, refused="The labels do not separate")):
        found = one(calibration, [0.9, 0.5, 0.1])
        assert found.status == "uncalibrated"
        assert found.p_inside is found.plausible is found.p_relevant is None
        assert len(found.warnings) == 1
        assert found.warnings[0].endswith(".")


def test_ties_and_a_single_video_are_never_confident():
    # The best score is high, and nothing tells which video it is.
    assert one(CARD, np.full(50, 0.7)).status != "confident"
    assert one(CARD, [0.7]).status != "confident"


def test_rows_that_are_no_scores_are_refused():
    for row in (np.zeros(0), [np.nan, 0.1], np.full(3, -np.inf), [np.inf, 0]):
        with pytest.raises(SureshotError):
            one(CARD, row)
    with pytest.raises(SureshotError, match="coverage is 1"):
        one(CARD, np.zeros(5), coverage=1.0)
