"""Percentages of first hits are learned on another set than the one they are said of."""

from pathlib import Path

import numpy as np

from sureshot.datasets.split import Caption, Item, Split
from sureshot.models.encoders.base import FrameFeatures
from sureshot.models.similarity import MeanFrames
from sureshot.research.features import SplitFeatures
from sureshot.research.reproduction.runs import first_hit_percentages


class Known(MeanFrames):
    """Scores that are there already, in place of a model's."""

    def __init__(self, scores):
        self._scores = scores

    def texts(self, texts):
        return texts.sentence[:, 0].astype(int)

    def videos(self, videos):
        return np.arange(len(videos.mask))

    def join(self, parts):
        return np.concatenate(list(parts))

    def similarity(self, texts, videos):
        return self._scores[np.ix_(texts, videos)]


def scores_of(count, seed):
    """Scores of captions of which half are hard: the own video scores no higher than others."""
    draw = np.random.default_rng(seed)
    hard = np.arange(count) % 2 == 0
    scores = draw.normal(size=(count, count))
    scores[np.arange(count), np.arange(count)] += np.where(hard, 0.0, 6.0)
    return scores, scores.argmax(1) == np.arange(count)


def features(count):
    """As many captions as videos, each known by its number; they fit into one batch."""
    items = tuple(Item(str(n), Path(f"{n}.mp4")) for n in range(count))
    captions = tuple(Caption(f"text {n}", n) for n in range(count))
    frame = FrameFeatures(*(np.zeros((1, *size), np.float16) for size in ((2,), (0, 2), (2,))))
    texts = [(np.array([n, 0], np.float32), np.zeros((1, 2), np.float32)) for n in range(count)]
    split = Split("msvd", "val", "all", items, captions)
    return SplitFeatures(split, "none", "none", 1, [frame] * count, texts)


def test_they_know_which_first_hits_are_right():
    known, _ = scores_of(240, 0)
    asked, right = scores_of(240, 1)
    chance = first_hit_percentages(Known(known), features(240), asked)
    assert chance is not None and chance.shape == (240,)
    assert chance[right].mean() > 0.6 > 0.4 > chance[~right].mean()
    assert abs(chance.mean() - right.mean()) < 0.1


def test_too_small_a_set_gives_none():
    known, _ = scores_of(30, 0)
    assert first_hit_percentages(Known(known), features(30), known) is None
