"""Ranks come back from their files as they were, by query."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.datasets import load_split
from sureshot.datasets.split import Caption, Item, Split
from sureshot.datasets.synthetic import read_truth
from sureshot.metrics.ranks import text_ranks, video_ranks
from sureshot.research.reproduction.runs import (
    PERCENT,
    query_names,
    ranks_of,
    read_run_ranks,
    read_table_ranks,
    relevance,
    write_run_ranks,
    write_table_ranks,
)
from tests.synthetic import small_dataset

ITEMS = tuple(Item(name, Path(f"{name}.mp4")) for name in "abc")
CAPTIONS = tuple(Caption(f"text {n}", video) for n, video in enumerate((0, 0, 1, 2, 2)))
SPLIT = Split("msvd", "test", "all", ITEMS, CAPTIONS)
NAMES = ["a#0", "a#1", "b#0", "c#0", "c#1"]


def found(seed, **doubts):
    scores = np.random.default_rng(seed).normal(size=(5, 3)).round(1)
    scores[0] = 0.5  # all videos tie
    return scores, ranks_of(scores, SPLIT, {name: np.array(v) for name, v in doubts.items()})


def same(one, other, digits=6):
    assert list(one.queries) == list(other.queries) == NAMES
    for name in ("owner", "texts", "videos", "first", "right"):
        assert (getattr(one, name) == getattr(other, name)).all()
    assert one.doubts.keys() == other.doubts.keys()
    for name, values in one.doubts.items():
        assert values == pytest.approx(other.doubts[name], rel=10**-digits)


def test_queries_are_named_by_video_and_number():
    assert query_names(SPLIT) == NAMES


def test_ranks_are_those_of_the_scores_with_two_doubts_that_any_scores_have():
    scores, ranks = found(0, vacuity=[1.0, 2, 3, 4, 5])
    assert (ranks.texts == text_ranks(scores, SPLIT.owner())).all()
    assert (ranks.videos == video_ranks(scores, SPLIT.owner())).all()
    assert ranks.texts[0] == 2  # half of the others are before it
    assert (ranks.first == scores.argmax(1)).all()
    assert (ranks.right == (scores.argmax(1) == SPLIT.owner())).all()
    assert ranks.doubts["best score"] == pytest.approx(-scores.max(1))
    assert ranks.doubts["softmax entropy"].argmax() == 0
    assert ranks.doubts["vacuity"].tolist() == [1, 2, 3, 4, 5]


def test_a_percentage_becomes_the_chance_to_be_wrong():
    scores = np.random.default_rng(0).normal(size=(5, 3))
    ranks = ranks_of(scores, SPLIT, {}, percent=np.array([1, 0.5, 0.25, 0, 0.75]))
    assert ranks.doubts[PERCENT].tolist() == [0, 0.5, 0.75, 1, 0.25]
    assert PERCENT not in ranks_of(scores, SPLIT, {}).doubts


def test_elsewhere_only_the_own_video_is_relevant():
    assert relevance(SPLIT).tolist() == (SPLIT.owner()[:, None] == np.arange(3)).tolist()


def test_a_run_is_kept_whole(tmp_path):
    kept = {"": found(0)[1], "Flickr8k: ": found(1, spread=[0.5] * 5)[1]}
    write_run_ranks(tmp_path / "run.npz", kept)
    read = read_run_ranks(tmp_path / "run.npz")
    assert list(read) == list(kept)
    for test, ranks in kept.items():
        same(ranks, read[test])
    assert read_run_ranks(tmp_path / "none.npz") == {}


def test_a_table_gives_each_row_its_seeds(tmp_path):
    runs = {
        ("one", 0): {"": found(0)[1]},
        ("two", 0): {"": found(1, spread=[0.5, 1, 1, 1, 1])[1]},
        ("one", 3): {"": found(2)[1]},
    }
    write_table_ranks(tmp_path / "table.npz", runs)
    read = read_table_ranks(tmp_path / "table.npz")[""]
    for (row, seed), ranks in runs.items():
        same(ranks[""], read.part(row)[seed], digits=2)
    one = read.of_row("one")
    assert one.seeds == (0, 3)
    assert (one.texts == np.stack([runs["one", 0][""].texts, runs["one", 3][""].texts])).all()
    assert read.of_row("three") is None
    fits = read.of_row("one", fits=True).texts
    assert ((fits == 1) == [run.right for run in read.part("one").values()]).all()
    assert read_table_ranks(tmp_path / "none.npz") == {}


def test_in_a_synthetic_dataset_the_first_hit_is_right_where_it_fits(tmp_path):
    test = load_split("synthetic", "test", small_dataset(tmp_path, ambiguity=0.9))
    truth = read_truth(test)
    ranks = ranks_of(truth.bayes, test, {})
    assert ranks.right.all()
    assert (ranks.texts > 1).any()
    assert (ranks.doubts["known ambiguity"] == np.log(truth.videos_that_fit)).all()
    assert not ranks_of(-truth.bayes, test, {}).right.all()
