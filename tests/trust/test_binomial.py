"""Exact binomial bounds against sums of the binomial distribution, and scipy where it is."""

import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.binomial import beta_cdf, beta_quantile, upper_bound


def at_most(events, trials, share):
    return sum(
        math.comb(trials, k) * share**k * (1 - share) ** (trials - k) for k in range(events + 1)
    )


@pytest.mark.parametrize(("a", "b"), [(1, 1), (1, 9), (3, 2), (20, 60), (90, 7)])
@pytest.mark.parametrize("x", [0.001, 0.1, 0.27, 0.5, 0.9, 0.999])
def test_the_beta_distribution_is_a_sum_of_binomials(a, b, x):
    # I_x(a, b) is the chance of at least a successes in a + b - 1 trials.
    expected = 1 - at_most(a - 1, a + b - 1, x)
    assert beta_cdf(x, float(a), float(b)) == pytest.approx(expected, abs=1e-12)


def test_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats")
    rng = np.random.default_rng(0)
    for a, b, x in zip(
        np.exp(rng.normal(1, 2, 60)), np.exp(rng.normal(1, 2, 60)), rng.random(60), strict=True
    ):
        assert beta_cdf(x, a, b) == pytest.approx(stats.beta.cdf(x, a, b), rel=1e-9, abs=1e-14)
        assert beta_quantile(x, a, b) == pytest.approx(stats.beta.ppf(x, a, b), rel=1e-7)


def test_large_counts_converge():
    assert beta_cdf(0.1, 1e5, 9e5) == pytest.approx(0.5, abs=0.001)
    assert upper_bound(10_000, 100_000) == pytest.approx(0.1 + 1.645 * 0.3 / 316.2, abs=1e-4)


def test_ends():
    assert beta_cdf(0.0, 2.0, 3.0) == 0
    assert beta_cdf(1.0, 2.0, 3.0) == 1
    assert beta_quantile(0.0, 2.0, 3.0) == pytest.approx(0, abs=1e-12)
    assert beta_quantile(1.0, 2.0, 3.0) == pytest.approx(1, abs=1e-12)


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


def test_nothing_tried_bounds_nothing():
    assert upper_bound(0, 0) == 1
    assert upper_bound(7, 7) == 1


def test_what_is_not_defined_is_refused():
    for x, a, b in ((-0.1, 1.0, 1.0), (1.1, 1.0, 1.0), (0.5, 0.0, 1.0), (math.nan, 1.0, 1.0)):
        with pytest.raises(SureshotError, match="not defined"):
            beta_cdf(x, a, b)
    with pytest.raises(SureshotError, match="not defined"):
        beta_quantile(1.5, 1.0, 1.0)
    for events, trials, level in ((2, 1, 0.9), (-1, 1, 0.9), (0, 1, 1.0)):
        with pytest.raises(SureshotError, match="no bound"):
            upper_bound(events, trials, level)
