"""Certified risk: exact counts, the fixed sequence, and how often it is violated."""

import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.risk import RISKS, certify, thresholds, upper_bound


def stream(seed, n):
    """Confidences that are calibrated, and outcomes."""
    rng = np.random.default_rng(seed)
    confidence = rng.beta(0.6, 0.5, n)
    return confidence, rng.random(n) >= confidence


def test_a_certificate_counts_what_is_answered():
    confidence = np.linspace(1, 0, 101)
    wrong = confidence < 0.35
    found = certify(confidence, wrong, (0.6, 0.4, 0.2), 0.2)
    assert found is not None
    assert (found.threshold, found.answered, found.wrong) == (0.4, 61, 0)
    assert found.coverage == pytest.approx(61 / 101)
    assert found.bound == upper_bound(0, 61)
    assert found.bound <= 0.2 < upper_bound(15, 81)


@pytest.mark.parametrize("risk", [0.05, 0.2, 0.5])
@pytest.mark.parametrize("errors", [0, 3])
def test_it_is_certified_exactly_where_the_bound_is_at_most_the_risk(risk, errors):
    for answered in range(errors + 1, 160):
        wrong = np.arange(answered) < errors
        found = certify(np.ones(answered), wrong, (0.5,), risk)
        assert (found is not None) == (upper_bound(errors, answered) <= risk)


def test_the_first_failure_ends_it():
    # At 0.9 one of one is wrong; what would follow is never looked at.
    confidence = np.append(np.full(200, 0.5), 0.95)
    wrong = np.append(np.zeros(200, bool), True)
    assert certify(confidence, wrong, (0.9, 0.4), 0.3) is None
    assert certify(confidence, wrong, (0.4,), 0.3) is not None


def test_what_is_always_wrong_cannot_be_certified():
    confidence, _ = stream(0, 300)
    assert certify(confidence, np.ones(300, bool), thresholds(confidence, 300, 0.5), 0.5) is None
    assert certify(confidence, np.zeros(300, bool), (), 0.5) is None
    all_right = certify(confidence, np.zeros(300, bool), thresholds(confidence, 300, 0.05), 0.05)
    assert all_right is not None
    assert all_right.coverage == 1


def test_thresholds_descend_and_begin_where_something_can_be_certified():
    confidence, _ = stream(1, 150)
    tried = thresholds(confidence, 300, 0.3)
    assert list(tried) == sorted(tried, reverse=True)
    assert tried[-1] == confidence.min()
    first = int((confidence >= tried[0]).sum())
    assert 10 < first < 60  # of 150: neither a handful nor many
    # 59 right answers certify 5 %, so fewer than 30 of 150 need not be tried.
    strict = thresholds(confidence, 300, 0.05)
    assert 29 < int((confidence >= strict[0]).sum()) < 40
    assert thresholds(confidence, 40, 0.05) == (confidence.min(),)
    assert thresholds(np.full(40, 0.5), 100, 0.2) == (0.5,)
    assert thresholds(np.array([0.3]), 100, 0.2) == (0.3,)


@pytest.mark.parametrize("risk", [0.1, 0.2, 0.3])
def test_the_risk_is_violated_as_rarely_as_promised_and_much_is_answered(risk):
    many, outcome = stream(99, 400_000)
    many, outcome = np.sort(many)[::-1], outcome[np.argsort(-many)]
    true = np.cumsum(outcome) / np.arange(1, 400_001)  # risk of answering so many
    violated, answered = 0, []
    for seed in range(300):
        foretold, _ = stream(2 * seed, 120)
        confidence, wrong = stream(2 * seed + 1, 240)
        found = certify(confidence, wrong, thresholds(foretold, 240, risk), risk)
        if found is None:
            answered.append(0.0)
            continue
        violated += true[np.searchsorted(-many, -found.threshold)] > risk
        answered.append(found.coverage)
    # At most 5 % are allowed; of 300 draws 8 % would be three standard errors more.
    assert violated / 300 <= 0.08
    assert np.mean(answered) > 0.3 * (true <= risk).mean()


def test_risks_that_are_tried():
    assert pytest.approx(np.arange(0.05, 0.51, 0.05)) == RISKS


def test_bad_input_is_refused():
    one, no = np.array([0.5]), np.array([False])
    for risk, level in ((0.0, 0.95), (1.0, 0.95), (0.2, 1.0)):
        with pytest.raises(SureshotError, match="above 0 and below 1"):
            certify(one, no, (0.5,), risk, level)
    with pytest.raises(SureshotError, match="descend"):
        certify(one, no, (0.5, 0.6), 0.2)
    with pytest.raises(SureshotError, match="NaN"):
        certify(np.array([np.nan]), no, (0.5,), 0.2)
    with pytest.raises(SureshotError, match="one at least"):
        thresholds(np.array([]), 5, 0.2)
    with pytest.raises(SureshotError, match="2 confidences"):
        certify(np.array([0.5, 0.6]), no, (0.5,), 0.2)


# --- the bound itself -----------------------------------------------------------------------------


def at_most(events, trials, share):
    return sum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(events + 1)
    )


@pytest.mark.parametrize(("events", "trials"), [(0, 1), (0, 59), (3, 20), (19, 20), (40, 300)])
@pytest.mark.parametrize("level", [0.8, 0.95, 0.99])
def test_at_the_bound_so_few_events_are_as_rare_as_the_level_says(events, trials, level):
    bound = upper_bound(events, trials, level)
    assert at_most(events, trials, bound) == pytest.approx(1 - level, rel=1e-9)


def test_the_bound_holds_as_often_as_it_says():
    # Exact, over all outcomes: the bound lies below the truth in at most 5 %.
    for share in (0.03, 0.2, 0.55):
        missed = sum(
            math.comb(40, k) * share**k * (1 - share) ** (40 - k)
            for k in range(41)
            if upper_bound(k, 40) < share
        )
        assert missed <= 0.05


def test_large_counts_are_bounded_by_the_normal_distribution():
    assert upper_bound(10_000, 100_000) == pytest.approx(0.1 + 1.645 * 0.3 / 316.2, abs=1e-4)


def test_nothing_tried_bounds_nothing():
    assert upper_bound(0, 0) == 1
    assert upper_bound(7, 7) == 1


@pytest.mark.parametrize("events, trials, level", [(2, 1, 0.9), (-1, 1, 0.9), (0, 1, 1.0)])
def test_counts_without_a_bound_are_refused(events, trials, level):
    with pytest.raises(SureshotError, match="no bound"):
        upper_bound(events, trials, level)
