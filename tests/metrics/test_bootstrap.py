"""Intervals: seeded, by whole videos, and as wide as theory says."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.metrics.bootstrap import (
    Interval,
    interval,
    intervals,
    of_columns,
    paired_difference,
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
    found = interval(values, cluster, np.mean, rng(3), resamples=50, level=0.8)
    assert found == Interval(5.0, *map(float, np.quantile(draws, [0.1, 0.9])))


def test_the_same_seed_gives_the_same_interval_and_another_one_another():
    values, cluster = rng(1).normal(size=40), np.arange(40)
    first = interval(values, cluster, np.mean, rng(0))
    assert interval(values, cluster, np.mean, rng(0)) == first
    assert interval(values, cluster, np.mean, rng(1)) != first


def test_the_width_for_a_mean_is_that_of_theory():
    values = rng(2).normal(size=400)
    found = interval(values, np.arange(400), np.mean, rng(), resamples=2000)
    width = 2 * 1.96 * values.std() / 20
    assert found.high - found.low == pytest.approx(width, rel=0.08)
    assert found.low < found.value < found.high


def test_captions_of_one_video_do_not_count_as_independent():
    values = np.repeat(rng(4).normal(size=50), 16)
    whole = interval(values, np.repeat(np.arange(50), 16), np.mean, rng())
    single = interval(values, np.arange(800), np.mean, rng())
    assert (whole.high - whole.low) / (single.high - single.low) == pytest.approx(4, rel=0.15)


def test_several_statistics_come_from_the_same_resamples():
    values, cluster = rng(5).exponential(size=60), rng(6).integers(0, 20, 60)
    both = intervals(values, cluster, {"mean": np.mean, "twice": lambda v: 2 * v.mean()}, rng())
    assert both["mean"] == interval(values, cluster, np.mean, rng())
    assert both["twice"].low == pytest.approx(2 * both["mean"].low)


def test_both_ends_are_written_as_asked():
    assert Interval(1.0, 0.25, 2.0).ends(".2f") == "[0.25, 2.00]"
    assert "from 20 resamples of whole videos, seed 3" in resampling_note(20, 3)


def test_a_paired_difference_cancels_what_is_hard_for_both():
    hard, cluster = rng(7).normal(scale=10, size=100), np.arange(100)
    found = paired_difference(hard + 1, hard, cluster, np.mean, rng())
    assert found.low == pytest.approx(1)
    assert found.high == pytest.approx(1)
    alone = interval(hard + 1, cluster, np.mean, rng())
    assert alone.high - alone.low > 1


def test_a_paired_difference_is_ours_less_theirs_by_whole_videos():
    ours, theirs = rng(8).normal(size=(2, 30))
    cluster = rng(9).integers(0, 8, 30)
    found = paired_difference(ours, theirs, cluster, np.mean, rng())
    plain = interval(ours - theirs, cluster, np.mean, rng())
    assert found.value == pytest.approx(plain.value)
    assert (found.low, found.high) == pytest.approx((plain.low, plain.high))


def test_the_statistic_need_not_be_linear():
    ours, theirs = np.array([1.0, 9.0, 2.0, 8.0]), np.array([2.0, 2.0, 3.0, 9.0])
    found = paired_difference(ours, theirs, np.arange(4), np.median, rng())
    assert found.value == 5.0 - 2.5


def test_too_little_to_resample_is_refused():
    one = np.zeros(3, int)
    with pytest.raises(SureshotError, match="at least two videos"):
        interval(np.ones(3), one, np.mean, rng())
    with pytest.raises(SureshotError, match="at least two videos; there is 0"):
        interval(np.ones(0), np.zeros(0, int), np.mean, rng())
    with pytest.raises(SureshotError, match="same queries"):
        paired_difference(np.ones(3), np.ones(2), one, np.mean, rng())


@pytest.mark.parametrize("setting", [{"resamples": 0}, {"level": 0.0}, {"level": 1.0}])
def test_settings_out_of_range_are_refused(setting):
    for call in (
        lambda: interval(np.ones(2), np.arange(2), np.mean, rng(), **setting),
        lambda: paired_difference(np.ones(2), np.ones(2), np.arange(2), np.mean, rng(), **setting),
    ):
        with pytest.raises(SureshotError, match=next(iter(setting))):
            call()


def test_a_statistic_may_look_at_several_columns():
    hits, asked = rng(10).random((2, 12))
    rows, cluster = np.stack([hits, asked], 1), np.arange(12) // 2
    share = of_columns(lambda a, b: float(a.sum() / b.sum()))
    found = interval(rows, cluster, share, rng(), resamples=30)
    assert found.value == pytest.approx(hits.sum() / asked.sum())
    draws, source = [], rng()
    for _ in range(30):
        drawn = np.concatenate([[2 * d, 2 * d + 1] for d in source.integers(6, size=6)])
        draws.append(hits[drawn].sum() / asked[drawn].sum())
    assert (found.low, found.high) == pytest.approx(tuple(np.quantile(draws, [0.025, 0.975])))
