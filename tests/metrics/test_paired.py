"""Gaps and their errors are held against worlds whose true error is known by drawing many."""

import numpy as np
import pytest
from scipy.stats import t

from sureshot.errors import SureshotError
from sureshot.metrics.intervals import (
    SeedRanks,
    mean_of_recalls,
    paired_gap,
    recall_at_one,
    sum_of_recalls,
)


def drawn(draw, seeds, videos, shared, own, alone, gap=0.0):
    """Ranks of two systems: hits by noise that videos share, of each seed, and of each of both."""
    owner = np.repeat(np.arange(videos), 2)
    easy = draw.normal(size=(1, len(owner)))
    found = []
    for shift in (gap, 0.0):
        noise = shared * draw.normal(size=videos)[owner] + own * draw.normal(size=(seeds, 1))
        noise = noise + alone * draw.normal(size=(seeds, len(owner)))
        ranks = np.where(easy + noise + shift > 0, 1.0, 2.0)
        found.append(
            SeedRanks(seeds=tuple(range(seeds)), texts=ranks, owner=owner, videos=ranks[:, ::2])
        )
    return found


@pytest.mark.parametrize(
    ("shared", "own", "alone"), [(0.7, 0.0, 0.3), (0.0, 0.3, 0.3), (0.4, 0.1, 0.6), (0, 0, 1)]
)
def test_the_error_is_how_far_gaps_scatter(shared, own, alone):
    draw = np.random.default_rng(0)
    gaps = [
        paired_gap(*drawn(draw, 6, 60, shared, own, alone), recall_at_one, draw, resamples=200)
        for _ in range(150)
    ]
    true = np.std([gap.value for gap in gaps])
    assert np.sqrt(np.mean([gap.error**2 for gap in gaps])) == pytest.approx(true, rel=0.2)
    outside = np.mean([gap.low > 0 or gap.high < 0 for gap in gaps])
    assert outside < 0.1


def test_a_gap_is_that_of_the_recalls_and_its_chance_that_of_t():
    draw = np.random.default_rng(1)
    more, less = drawn(draw, 10, 80, 0.3, 0.1, 0.3, gap=0.5)
    gap = paired_gap(more, less, recall_at_one, draw)
    value = 100 * ((more.texts <= 1).mean() - (less.texts <= 1).mean())
    assert gap.value == pytest.approx(value)
    assert (gap.seeds, gap.videos) == (10, 80)
    assert gap.p_zero() == pytest.approx(2 * t.sf(value / gap.error, gap.freedom))
    assert gap.p_at_least(value) == pytest.approx(0.5)
    assert (gap.low + gap.high) / 2 == pytest.approx(value)
    power = t.cdf(gap.visible() / gap.error - t.ppf(0.975, gap.freedom), gap.freedom)
    assert power == pytest.approx(0.8)


def test_other_measures_are_of_the_same_recalls():
    draw = np.random.default_rng(2)
    more, less = drawn(draw, 3, 40, 0.3, 0.1, 0.3, gap=0.5)

    def recalls(ranks):
        hits = [(ranks.texts <= k).mean(1) for k in (1, 5, 10)]
        return 100 * np.stack(hits + [(ranks.videos <= k).mean(1) for k in (1, 5, 10)])

    total = recalls(more).sum(0).mean() - recalls(less).sum(0).mean()
    assert paired_gap(more, less, sum_of_recalls, draw).value == pytest.approx(total)
    means = [np.prod(recalls(one)[:3], 0) ** (1 / 3) for one in (more, less)]
    gap = paired_gap(more, less, mean_of_recalls, draw)
    assert gap.value == pytest.approx((means[0] - means[1]).mean())


def test_only_seeds_of_both_count_and_one_is_not_enough():
    draw = np.random.default_rng(3)
    more, less = drawn(draw, 4, 30, 0.3, 0.1, 0.3)
    shifted = SeedRanks(seeds=(3, 2, 8, 9), texts=less.texts, owner=less.owner, videos=less.videos)
    gap = paired_gap(more, shifted, recall_at_one, draw)
    hits = (more.texts[[3, 2]] <= 1).mean() - (less.texts[[0, 1]] <= 1).mean()
    assert gap.seeds == 2
    assert gap.value == pytest.approx(100 * hits)
    alone = SeedRanks(seeds=(7, 3, 8, 9), texts=less.texts, owner=less.owner, videos=less.videos)
    with pytest.raises(SureshotError, match="two seeds"):
        paired_gap(more, alone, recall_at_one, draw)


def test_systems_asked_for_other_videos_are_not_compared():
    draw = np.random.default_rng(4)
    more, less = drawn(draw, 3, 30, 0.3, 0.1, 0.3)
    other = SeedRanks(
        seeds=less.seeds, texts=less.texts, owner=less.owner[::-1], videos=less.videos
    )
    with pytest.raises(SureshotError, match="other videos"):
        paired_gap(more, other, recall_at_one, draw)


def test_systems_that_find_the_same_have_no_gap():
    draw = np.random.default_rng(5)
    more, _ = drawn(draw, 3, 30, 0.3, 0.1, 0.3)
    gap = paired_gap(more, more, recall_at_one, draw)
    assert (gap.value, round(gap.p_zero(), 3)) == (0, 1)
