"""How confidences order queries, against slow counting."""

import itertools
import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.confidence import (
    abstention_nauc,
    augrc,
    aurc,
    auroc,
    auroc_of,
    brier,
    ece,
    ece_floor,
    excess_aurc,
    fpr_at_tpr,
    nll,
    reliability,
    risk_at_coverage,
    risk_curve,
)
from sureshot.metrics.intervals import interval

ORDERINGS = [
    auroc,
    fpr_at_tpr,
    lambda c, r: aurc(c, 1 - r),
    lambda c, r: excess_aurc(c, 1 - r),
    lambda c, r: augrc(c, 1 - r),
    lambda c, r: risk_at_coverage(c, 1 - r, 0.7),
]


def some(seed, n=40, levels=8):
    rng = np.random.default_rng(seed)
    confidence = rng.integers(0, levels, n) / levels - 0.5
    right = (rng.random(n) < 0.2 + 0.6 * (confidence + 0.5)).astype(int)
    return confidence, right


def all_orders(confidence, wrong):
    """Cumulated losses of every order of the ties, by brute force."""
    groups = [np.flatnonzero(confidence == c) for c in sorted(set(confidence), reverse=True)]
    for parts in itertools.product(*(itertools.permutations(g) for g in groups)):
        yield np.cumsum(wrong[list(itertools.chain(*parts))])


def test_auroc_counts_pairs():
    confidence, right = some(0)
    pairs = [
        1.0 if a > b else 0.5 if a == b else 0.0
        for a in confidence[right == 1]
        for b in confidence[right == 0]
    ]
    assert auroc(confidence, right) == pytest.approx(np.mean(pairs))


def test_fpr_is_that_of_the_strictest_threshold_that_lets_enough_pass():
    for seed in range(4):
        confidence, right = some(seed)
        for threshold in sorted(set(confidence), reverse=True):
            passing = confidence >= threshold
            if passing[right == 1].mean() >= 0.95:
                break
        assert fpr_at_tpr(confidence, right) == pytest.approx(passing[right == 0].mean())


def test_areas_are_the_mean_over_all_orders_of_the_ties():
    confidence = np.array([0.9, 0.5, 0.5, 0.5, 0.1, 0.1])
    wrong = np.array([0, 1, 0, 0.25, 1, 0.5])  # losses may be shares
    orders = np.array(list(all_orders(confidence, wrong)))
    risks = (orders / np.arange(1, 7)).mean(0)
    assert aurc(confidence, wrong) == pytest.approx(risks.mean())
    shares = np.concatenate([[0], orders.mean(0) / 6])
    assert augrc(confidence, wrong) == pytest.approx(((shares[1:] + shares[:-1]) / 2).sum() / 6)
    coverage, risk = risk_curve(confidence, wrong)
    np.testing.assert_allclose(coverage, np.arange(1, 7) / 6)
    np.testing.assert_allclose(risk, risks)
    for share, count in ((0.01, 1), (0.5, 3), (0.51, 4), (1.0, 6)):
        assert risk_at_coverage(confidence, wrong, share) == pytest.approx(risks[count - 1])


def test_a_perfect_order_has_no_excess_and_the_reverse_the_most():
    wrong = np.array([0, 0, 0, 1, 1])
    assert excess_aurc(-wrong.astype(float), wrong) == 0
    assert excess_aurc(wrong.astype(float), wrong) > excess_aurc(np.zeros(5), wrong) > 0


@pytest.mark.parametrize("metric", ORDERINGS)
def test_only_the_order_of_confidences_counts_and_not_that_of_the_rows(metric):
    for seed in range(10):
        confidence, right = some(seed, 25, 5)
        found = metric(confidence, right)
        assert metric(np.exp(3 * confidence), right) == pytest.approx(found)
        mixed = np.random.default_rng(seed).permutation(25)
        assert metric(confidence[mixed], right[mixed]) == pytest.approx(found)


def test_where_nothing_can_be_told_apart_it_is_a_guess():
    confidence = np.array([0.1, 0.2, 0.3])
    for right in (np.ones(3), np.zeros(3)):
        assert auroc(confidence, right) == 0.5
        assert fpr_at_tpr(confidence, right) == 0.95
    assert auroc(np.zeros(4), np.array([1, 0, 1, 0])) == 0.5
    assert fpr_at_tpr(np.zeros(4), np.array([1, 0, 1, 0])) == 1.0


def slow_nauc(confidence, quality):
    """Curve, best curve and flat curve point by point."""
    n, curves = len(quality), []
    for key in (confidence, quality):
        order = sorted(range(n), key=lambda i: key[i])
        curves.append([np.mean(quality[order[round(r / 10 * n) :]]) for r in range(10)])
    raw, best = (sum((a + b) / 20 for a, b in itertools.pairwise(c)) for c in curves)
    flat = quality.mean() * 0.9
    return (raw - flat) / (best - flat)


def test_nauc_is_that_of_mteb():
    rng = np.random.default_rng(0)
    quality = rng.random(57)
    confidence = quality + rng.normal(size=57)
    assert abstention_nauc(confidence, quality) == pytest.approx(slow_nauc(confidence, quality))
    assert abstention_nauc(quality, quality) == pytest.approx(1)
    assert abstention_nauc(-quality, quality) < 0
    assert abstention_nauc(confidence, np.full(57, 0.3)) == 0
    assert abstention_nauc(np.array([0.5]), np.array([1])) == 0


def test_the_auroc_of_weights_is_that_of_queries_drawn_so_often():
    confidence, right = some(2)
    counts = np.random.default_rng(1).integers(0, 4, (50, 40))
    counts[0] *= right  # nothing but right ones
    expected = []
    for count in counts:
        rows = np.repeat(np.arange(40), count)
        expected.append(auroc(confidence[rows], right[rows]))
    found = auroc_of(confidence, right)(counts.astype(np.float64))
    assert np.isnan(found[0]) and expected[0] == 0.5  # no resample, and a guess
    np.testing.assert_allclose(found[1:], expected[1:])


def test_resamples_without_a_wrong_answer_are_no_end_of_an_interval():
    """Of 26 answers two are wrong: every eighth resample has neither."""
    right = np.ones(26)
    right[[3, 9]] = 0
    found = interval(auroc_of(right, right), np.arange(26), np.random.default_rng(0))
    assert (found.low, found.value, found.high) == (1, 1, 1)


@pytest.mark.parametrize("metric", [*ORDERINGS, brier, nll, ece, reliability])
@pytest.mark.parametrize(
    ("confidence", "right"), [([], []), ([0.1], [1, 0]), ([np.nan, 0.1], [1, 0])]
)
def test_bad_input_is_refused(metric, confidence, right):
    with pytest.raises(SureshotError):
        metric(np.array(confidence, float), np.array(right, int))


def some_reliability(seed, n=300):
    rng = np.random.default_rng(seed)
    probability = rng.beta(2, 2, n)
    return probability, (rng.random(n) < probability**1.5).astype(int)


def slow_ece(probability, right):
    total = 0.0
    for number in range(15):
        low, high = number / 15, (number + 1) / 15
        chosen = [i for i, p in enumerate(probability) if low < p <= high or (p == 0 == number)]
        if chosen:
            gap = np.mean([probability[i] for i in chosen]) - np.mean([right[i] for i in chosen])
            total += len(chosen) / len(right) * abs(gap)
    return total


def test_brier_and_nll_by_hand():
    probability, right = np.array([0.8, 0.3, 1.0]), np.array([1, 0, 1])
    assert brier(probability, right) == pytest.approx((0.04 + 0.09) / 3)
    expected = -(math.log(0.8) + math.log(0.7) + math.log(1 - 1e-6)) / 3
    assert nll(probability, right) == pytest.approx(expected)
    assert nll(np.array([0.0]), np.array([1])) == pytest.approx(-math.log(1e-6))


def test_ece_agrees_with_a_loop():
    probability, right = some_reliability(1)
    probability[:3] = 0.0, 1.0, 0.2
    shown = reliability(probability, right)
    assert shown.count.sum() == 300
    assert ((shown.low <= shown.probability) & (shown.probability <= shown.high)).all()
    assert ((shown.probability - shown.low) <= 1 / 15 + 1e-9).all()
    assert ece(probability, right) == pytest.approx(slow_ece(probability, right))


def test_the_floor_is_the_mean_error_of_the_calibrated():
    probability, _ = some_reliability(3, 200)
    rng = np.random.default_rng(1)
    drawn = [ece(probability, (rng.random(200) < probability).astype(int)) for _ in range(300)]
    floor = ece_floor(probability, np.random.default_rng(2), draws=300)
    assert floor == pytest.approx(np.mean(drawn), abs=0.004)
    assert 0.06 < floor < 0.12  # 15 bins and 200 queries


def test_the_floor_is_seeded_and_0_where_nothing_is_open():
    few = some_reliability(4, 200)[0]
    one, other = (ece_floor(few, np.random.default_rng(0)) for _ in range(2))
    assert one == other
    assert ece_floor(np.array([0.0, 1.0]), np.random.default_rng(0)) == 0


@pytest.mark.parametrize("probability", [1.1, -0.1])
def test_what_is_no_probability_is_refused(probability):
    with pytest.raises(SureshotError, match="outside of 0 to 1"):
        ece(np.array([probability]), np.array([1]))


@pytest.mark.parametrize("metric", [auroc, excess_aurc, brier])
@pytest.mark.parametrize("kind", [list, np.float32, pytest.importorskip("torch").tensor])
def test_lists_and_tensors_are_as_good_as_arrays(metric, kind):
    confidence, right = [0.75, 0.5, 0.5, 0.25], [1, 1, 0, 0]
    assert metric(kind(confidence), kind(right)) == metric(np.array(confidence), np.array(right))
