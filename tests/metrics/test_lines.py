"""Lines of a report."""

import numpy as np
import pytest

from sureshot.metrics.intervals import interval, mean_of, median_of
from sureshot.metrics.ranks import recall, recall_at, text_ranks, video_ranks
from sureshot.metrics.report import Judge


def world(texts=40, videos=9, seed=0):
    rng = np.random.default_rng(seed)
    owner = rng.integers(0, videos - 1, texts)  # the last one has no text
    similarity = np.round(rng.normal(size=(texts, videos)), 1)
    similarity[np.arange(texts), owner] += 1
    return similarity, owner


def r1(ranks):
    return recall_at(ranks, 1)


@pytest.mark.parametrize("way", ["t2v", "v2t"])
def test_a_line_holds_the_numbers_of_its_parts(way):
    similarity, owner = world()
    judge = Judge(owner, "caption", 50, 7)
    if way == "t2v":
        ranks, mean, videos = judge.texts(similarity), text_ranks(similarity, owner), owner
        worst = text_ranks(similarity, owner, ties="worst")
    else:
        ranks, mean = judge.videos(similarity), video_ranks(similarity, owner, "caption")
        worst = video_ranks(similarity, owner, "caption", ties="worst")
        videos = np.unique(owner)
    line = judge.line("raw", way, ranks, None)
    assert line.recall == recall(mean)
    assert line.gain is None
    np.testing.assert_array_equal(ranks.worst, worst)
    assert line.tied == np.count_nonzero(worst > mean)
    assert line.r1_worst == r1(worst) <= line.recall.r1 <= line.r1_best
    expected = {
        "r1": mean_of(100.0 * (mean <= 1)),
        "median": median_of(mean),
        "mean": mean_of(mean),
    }
    for name, statistic in expected.items():
        found = interval(statistic, videos, np.random.default_rng(7), resamples=50)
        assert line.intervals[name] == found
        assert found.value == pytest.approx(getattr(line.recall, name))
    assert set(line.intervals) == {"r1", "r5", "r10", "r50", "median", "mean"}


def test_the_gain_over_raw_is_paired():
    similarity, owner = world()
    better = similarity.copy()
    better[np.arange(40), owner] += 0.3
    judge = Judge(owner, "group", 50, 7)
    line = judge.line("better", "t2v", judge.texts(better), judge.texts(similarity))
    ours, theirs = text_ranks(better, owner), text_ranks(similarity, owner)
    more = mean_of(100.0 * (ours <= 1) - 100.0 * (theirs <= 1))
    assert line.gain == interval(more, owner, np.random.default_rng(7), resamples=50)
    assert line.gain.value == pytest.approx(r1(ours) - r1(theirs)) and line.gain.value > 0


def test_one_video_has_no_interval():
    judge = Judge(np.array([1, 1]), "group", 50, 7)
    ranks = judge.texts(np.array([[0.1, 0.9], [0.8, 0.2]]))
    line = judge.line("post", "t2v", ranks, ranks)
    assert line.intervals == {}
    assert line.gain is None
    assert line.recall.r1 == 50.0
