"""Intervals: seeded, by whole videos, and as wide as theory says."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics import ranks
from sureshot.metrics.intervals import (
    Interval,
    interval,
    intervals,
    mean_of,
    median_of,
    ratio_of,
    resampling_note,
)


def rng(seed=0):
    return np.random.default_rng(seed)


def test_agrees_with_drawing_videos_one_by_one():
    values = np.array([4.0, 1.0, 9.0, 2.0, 7.0, 7.0])
    cluster = np.array([5, 2, 5, 9, 2, 5])
    draws, source = [], rng(3)
    for _ in range(50):
        drawn = source.integers(3, size=3)
        rows = [v for d in drawn for v, c in zip(values, cluster, strict=True) if c == [2, 5, 9][d]]
        draws.append(np.mean(rows))
    found = interval(mean_of(values), cluster, rng(3), resamples=50)
    assert found == Interval(5.0, *map(float, np.quantile(draws, [0.025, 0.975])))


def test_several_statistics_come_from_the_same_resamples():
    values, cluster = rng(5).exponential(size=60), rng(6).integers(0, 20, 60)
    both = intervals({"mean": mean_of(values), "twice": mean_of(2 * values)}, cluster, rng())
    assert both["mean"] == interval(mean_of(values), cluster, rng())
    assert both["twice"].low == pytest.approx(2 * both["mean"].low)


def test_blocks_of_resamples_change_nothing(monkeypatch):
    values, cluster = rng(5).exponential(size=60), rng(6).integers(0, 20, 60)
    whole = interval(mean_of(values), cluster, rng())
    monkeypatch.setattr(ranks, "CELLS", 500)
    assert interval(mean_of(values), cluster, rng()) == whole


def test_both_ends_are_written_as_asked():
    assert Interval(1.0, 0.25, 2.0).ends(".2f") == "[0.25, 2.00]"
    assert "from 20 resamples of whole videos, seed 3" in resampling_note(20, 3)


@pytest.mark.parametrize("size", [1, 2, 7, 30])
def test_statistics_of_weights_are_those_of_queries_drawn_so_often(size):
    values, whole = rng(size).normal(size=size).round(1), rng(size + 1).random(size)
    counts = rng(size + 2).integers(0, 4, (40, size))
    counts = counts[counts.sum(1) > 0]
    drawn = [np.repeat(np.arange(size), count) for count in counts]
    weights = counts.astype(np.float64)
    means, medians = mean_of(values)(weights), median_of(values)(weights)
    np.testing.assert_allclose(means, [values[rows].mean() for rows in drawn])
    np.testing.assert_allclose(medians, [np.median(values[rows]) for rows in drawn])
    shares = [values[rows].sum() / whole[rows].sum() for rows in drawn]
    np.testing.assert_allclose(ratio_of(values, whole)(weights), shares)


def test_a_share_of_nothing_is_0():
    assert ratio_of(np.ones(2), np.array([0.0, 1.0]))(np.array([[1.0, 0.0]])) == [0]


@pytest.mark.parametrize("queries", [0, 3])
def test_too_little_to_resample_is_refused(queries):
    with pytest.raises(SureshotError, match="at least two videos"):
        interval(mean_of(np.ones(queries)), np.zeros(queries, int), rng())
