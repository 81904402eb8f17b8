"""Quantiles and p-values by their definition, and the coverage they promise."""

import math

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.card import Nonconformity


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", [1, 4, 9, 19, 50, 200])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_the_quantile_is_an_order_statistic(n, coverage):
    scores = np.round(rng(n).normal(size=n), 3)
    k = math.ceil(round((n + 1) * coverage, 9))
    found = Nonconformity.of(scores).quantile(coverage)
    assert found == (np.sort(scores)[k - 1] if k <= n else math.inf)
    assert (found < math.inf) == (n >= round(coverage / (1 - coverage), 9))


def test_p_values_count_what_is_as_strange():
    scores = np.array([0.3, -1.0, 2.0, 0.3])
    reference = Nonconformity.of(scores)
    for value in (-2.0, -1.0, 0.3, 0.4, 2.0, 3.0):
        expected = (1 + (scores >= value).sum()) / 5
        assert reference.p_value(np.array([value]))[0] == pytest.approx(expected)


def test_p_values_agree_with_crepes():
    crepes = pytest.importorskip("crepes.base")
    scores, fresh = rng(1).normal(size=80), rng(2).normal(size=50)
    theirs = crepes.p_values_batch(scores, fresh, smoothing=False)
    ours = Nonconformity.of(scores).p_value(fresh)
    np.testing.assert_allclose(ours, np.ravel(theirs))


def test_all_queries_of_a_video_weigh_as_one():
    # Videos a, b and c; a has two queries. Weights 1/8, 1/8, 1/4, 1/4, and 1/4 for the new one.
    reference = Nonconformity.of(np.array([1.0, 4.0, 2.0, 3.0]), np.array([7, 7, 1, 3]))
    assert reference.videos == 3
    assert reference.sharing == (2, 1, 1, 2)
    expected = {0.1: 1, 0.125: 1, 0.2: 2, 0.375: 2, 0.5: 3, 0.625: 3, 0.7: 4, 0.75: 4}
    assert reference.quantile(0.8) == math.inf
    assert {c: reference.quantile(c) for c in expected} == expected
    found = reference.p_value(np.array([0.0, 1.0, 1.5, 2.5, 3.5, 5.0]))
    np.testing.assert_allclose(found, [1, 1, 0.875, 0.625, 0.375, 0.25])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 12345.678])
def test_rounding_goes_up_by_less_than_a_millionth(scale):
    scores = rng(5).normal(size=500) * scale
    kept = np.array(Nonconformity.of(scores).scores)
    gap = kept - np.sort(scores)
    assert (gap >= 0).all()
    assert (gap <= 1.01e-6 * np.abs(kept)).all()
    assert Nonconformity.of(np.zeros(3)).scores == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("captions", [1, 6])
def test_coverage_is_as_promised(captions):
    # Queries of one video are alike; the new query is of a new video.
    chance, covered, below = rng(6), [], []
    for _ in range(800):
        of_video = chance.normal(size=41)
        spread = of_video[:, None] + 0.5 * chance.normal(size=(41, captions))
        reference = Nonconformity.of(spread[:40].ravel(), np.repeat(np.arange(40), captions))
        covered.append(spread[40, 0] <= reference.quantile(0.9))
        below.append(reference.p_value(spread[40, :1])[0] <= 0.1)
    # With one query a video it is 37/41 exactly; the error of 800 draws is 0.01.
    assert np.mean(covered) == pytest.approx(37 / 41, abs=0.025)
    assert np.mean(below) <= 0.12


def test_what_cannot_be_promised_is_said():
    reference = Nonconformity.of(np.arange(8.0))
    assert reference.quantile(0.9) == math.inf


def test_bad_references_and_shares_are_refused():
    for scores in ([], [math.nan], [math.inf, 0.0]):
        with pytest.raises(SureshotError, match="finite scores"):
            Nonconformity.of(np.array(scores))
    with pytest.raises(SureshotError, match="ascending"):
        Nonconformity((2.0, 1.0), (1, 1))
    with pytest.raises(SureshotError, match="a score"):
        Nonconformity((2.0,), (1, 1))
    reference = Nonconformity.of(np.arange(3.0))
    for share in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(SureshotError, match="coverage is"):
            reference.quantile(share)
