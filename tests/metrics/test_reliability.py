"""Probabilities against outcomes, by hand, by slow loops and by scikit-learn."""

import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.confidence import (
    brier,
    ece,
    ece_floor,
    nll,
    reliability,
    squared_errors,
)


def some(seed, n=300):
    rng = np.random.default_rng(seed)
    probability = rng.beta(2, 2, n)
    return probability, (rng.random(n) < probability**1.5).astype(int)


def slow_ece(probability, right, bins):
    total = 0.0
    for number in range(bins):
        low, high = number / bins, (number + 1) / bins
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
    assert nll(np.array([0.0]), np.array([1]), clip=0.01) == pytest.approx(-math.log(0.01))


def test_brier_and_nll_agree_with_scikit_learn():
    metrics = pytest.importorskip("sklearn.metrics")
    probability, right = some(0)
    assert brier(probability, right) == pytest.approx(metrics.brier_score_loss(right, probability))
    assert nll(probability, right) == pytest.approx(metrics.log_loss(right, probability))


@pytest.mark.parametrize("bins", [1, 10, 15])
def test_ece_agrees_with_a_loop(bins):
    probability, right = some(1)
    probability[:3] = 0.0, 1.0, 0.2
    assert ece(probability, right, bins=bins) == pytest.approx(slow_ece(probability, right, bins))


def test_the_order_of_the_queries_does_not_matter():
    probability = np.array([0.2] * 7 + [0.6] * 3)
    right = np.array([1] * 2 + [0] * 5 + [1] * 2 + [0])
    mixed = np.random.default_rng(0).permutation(10)
    assert ece(probability, right) == pytest.approx(ece(probability[mixed], right[mixed]))


@pytest.mark.parametrize("constant", [0.0, 0.5, 1.0])
def test_a_constant_is_one_bin(constant):
    probability, right = np.full(8, constant), np.array([1, 0] * 4)
    shown = reliability(probability, right)
    assert shown.count.tolist() == [8]
    assert (shown.low <= constant).all()
    assert (constant <= shown.high).all()
    assert ece(probability, right) == pytest.approx(abs(constant - 0.5))


def test_the_floor_is_the_mean_error_of_the_calibrated():
    probability, _ = some(3, 200)
    rng = np.random.default_rng(1)
    drawn = [ece(probability, (rng.random(200) < probability).astype(int)) for _ in range(300)]
    floor = ece_floor(probability, np.random.default_rng(2), draws=300)
    assert floor == pytest.approx(np.mean(drawn), abs=0.004)
    assert 0.06 < floor < 0.12  # 15 bins and 200 queries


def test_the_floor_falls_with_more_queries_and_is_seeded():
    few, many = some(4, 200)[0], some(4, 3000)[0]
    assert ece_floor(many, np.random.default_rng(0)) < 0.5 * ece_floor(
        few, np.random.default_rng(0)
    )
    again = [ece_floor(few, np.random.default_rng(0)) for _ in range(2)]
    assert again[0] == again[1]
    assert ece_floor(np.array([0.0, 1.0]), np.random.default_rng(0)) == 0


def test_the_brier_score_is_the_mean_of_the_squared_errors():
    probability, right = some(5, 60)
    errors = squared_errors(probability, right)
    np.testing.assert_allclose(
        errors, [(p - r) ** 2 for p, r in zip(probability, right, strict=True)]
    )
    assert brier(probability, right) == errors.mean()


@pytest.mark.parametrize("metric", [brier, nll, ece, reliability])
@pytest.mark.parametrize(
    ("probability", "right"),
    [([], []), ([0.5], [1, 0]), ([np.nan], [1]), ([1.1], [1]), ([-0.1], [0]), ([0.5], [2])],
)
def test_bad_input_is_refused(metric, probability, right):
    with pytest.raises(SureshotError):
        metric(np.array(probability, float), np.array(right, int))


def test_settings_out_of_range_are_refused():
    with pytest.raises(SureshotError, match="bins is 0"):
        ece(np.array([0.5]), np.array([1]), bins=0)
    with pytest.raises(SureshotError, match="draws is 0"):
        ece_floor(np.array([0.5]), np.random.default_rng(0), draws=0)
