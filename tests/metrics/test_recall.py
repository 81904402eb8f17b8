"""Recall and its sums, by hand and against the numbers of the papers' codes."""

import statistics

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.errors import SureshotError
from sureshot.metrics.ranks import Recall, r_sum, recall, recall_at, rsum, text_ranks

RANKS = st.lists(st.integers(2, 240).map(lambda twice: twice / 2), min_size=1, max_size=30)


@given(RANKS)
def test_recall_counts_one_rank_at_a_time(ranks):
    found = recall(np.array(ranks))
    for k in (1, 5, 10, 50):
        assert found.at(k) == pytest.approx(100 * sum(r <= k for r in ranks) / len(ranks))
    assert found.median == statistics.median(ranks)
    assert found.mean == pytest.approx(sum(ranks) / len(ranks))
    assert found.n == len(ranks)


def test_the_fields_are_the_recalls_of_their_names():
    found = recall(np.array([1.0, 2.0, 7.0, 20.0, 60.0]))
    assert found == Recall(20.0, 40.0, 60.0, 80.0, 7.0, 18.0, 5)


def test_a_shared_place_counts_only_where_it_lies_within_k():
    found = recall(np.array([1.5, 5.5]))
    assert (found.r1, found.r5, found.r10) == (0.0, 50.0, 100.0)


@pytest.mark.parametrize("name", ["no_ties", "odd", "single_even_median"])
def test_clip4clip_with_one_caption(golden, name):
    case = golden("clip4clip_metrics")
    expected = case["outputs"][name]
    found = recall(np.array(expected["cols"]) + 1.0)
    for k in (1, 5, 10):
        assert found.at(k) == pytest.approx(expected[f"R{k}"])
    assert found.median == expected["MedianR"]
    assert found.mean == pytest.approx(expected["MeanR"])


def test_the_median_of_an_even_number_of_ranks_is_the_mean_of_the_middle_two(golden):
    case = golden("clip4clip_metrics")
    similarity = np.array(case["inputs"]["even"])[:, 0]
    ranks = text_ranks(similarity, np.arange(len(similarity)))
    found, theirs = recall(ranks), case["outputs"]["multi_even_median"]
    half = len(ranks) // 2
    lower, upper = np.sort(ranks)[half - 1 : half + 1]
    assert theirs["MedianR"] == lower
    assert found.median == (lower + upper) / 2
    assert found.mean == pytest.approx(theirs["MeanR"])


def test_sums_of_a_printed_row():
    # DVTR + C2V on MSR-VTT 1k-A prints 426.2, on ActivityNet (1, 5, 50) 449.1.
    texts = Recall(52.0, 77.3, 85.2, 0.0, 1.0, 1.0, 1000)
    videos = Recall(50.2, 76.5, 85.0, 0.0, 1.0, 1.0, 1000)
    assert r_sum(texts) == pytest.approx(214.5)
    assert rsum(texts, videos) == pytest.approx(426.2)
    texts = Recall(47.6, 77.8, 0.0, 98.8, 2.0, 1.0, 4917)
    videos = Recall(47.6, 78.3, 0.0, 99.0, 2.0, 1.0, 4917)
    assert rsum(texts, videos, (1, 5, 50)) == pytest.approx(449.1)


def test_an_unknown_k_is_refused_but_can_be_counted():
    found = recall(np.array([1.0, 3.0]))
    with pytest.raises(SureshotError, match="R@3"):
        found.at(3)
    assert recall_at(np.array([1.0, 3.0, 3.5]), 3) == pytest.approx(200 / 3)


@pytest.mark.parametrize("ranks", [[], [0.0, 1.0], [np.nan], [np.inf]])
def test_what_is_no_rank_is_refused(ranks):
    with pytest.raises(SureshotError, match=r"no queries|count from 1"):
        recall(np.array(ranks, float))
