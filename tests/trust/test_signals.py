"""Signals against slow formulas, and finite whatever the scores are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sureshot.errors import SureshotError
from sureshot.trust.signals import (
    QUERY_SIGNALS,
    RESULT_SIGNALS,
    QueryContext,
    query_signals,
    result_signals,
    top_is_relevant,
    word_counts,
)


@pytest.mark.parametrize("videos", [2, 5, 10, 11, 40])
def test_signals_are_their_formulas(videos):
    scores = np.random.default_rng(videos).uniform(-1, 1, (6, videos))
    common = np.linspace(-9, 0, 6)
    about = QueryContext(np.linspace(0, 1, 6), common=common)
    found = query_signals(scores, about)
    order, each = result_signals(scores, about, results=7)
    shown = min(7, videos)
    assert (order.shape, each.shape) == ((6, shown), (6, shown, len(RESULT_SIGNALS)))
    for row in range(6):
        s = sorted(map(float, scores[row]), reverse=True)
        assert scores[row, order[row]].tolist() == s[:shown]
        size = math.log(max(videos, 10))
        known = [row / 5, size, max(-3, min(common[row] + size, 3))]
        expected = [s[0], min(s[0] - s[1], 0.3), s[0] - np.mean(s[1:10]), *known]
        assert found[row] == pytest.approx(expected)
        assert len(expected) == len(QUERY_SIGNALS)
        for place in range(shown):
            after = s[place + 1 : place + 10]
            gap = s[place] - np.mean(after) if after else 0
            of_result = [s[place], s[0] - s[place], gap, math.log(2 + place)]
            assert each[row, place] == pytest.approx([*of_result, *known])


def test_a_video_that_is_ruled_out_is_no_part_of_the_gallery():
    scores = np.random.default_rng(2).normal(size=(3, 12))
    out = np.insert(scores, [0, 5], -np.inf, axis=1)
    np.testing.assert_array_equal(query_signals(out), query_signals(scores))
    order, found = result_signals(out, results=None)
    np.testing.assert_array_equal(found[:, :12], result_signals(scores, results=None)[1])
    assert set(order[0, 12:]) == {0, 6}


def test_a_video_alone_never_looks_sure():
    for one in (np.array([[0.7]]), np.array([[-np.inf, 0.7, -np.inf]])):
        assert query_signals(one)[0, :3].tolist() == [0.7, 0, 0]
        order, each = result_signals(one, results=1)
        assert order.tolist() == [[one.argmax()]]
        assert each[0, 0, :3].tolist() == [0.7, 0, 0]


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 15)),
        elements=st.floats(-1e6, 1e6),
    )
)
def test_signals_are_finite_for_all_numbers(scores):
    assert np.isfinite(query_signals(scores)).all()
    order, found = result_signals(scores, results=None)
    assert np.isfinite(found).all()
    assert (np.sort(order, axis=1) == np.arange(scores.shape[1])).all()


def test_the_best_of_a_large_gallery_have_the_signals_of_all_of_it():
    scores = -np.sort(-np.random.default_rng(8).normal(size=(2, 300)))
    about = QueryContext(videos=300)
    np.testing.assert_array_equal(
        query_signals(scores[:, :50], about), query_signals(scores, about)
    )
    one = query_signals(scores[1:], about.of(np.array([1])))
    np.testing.assert_array_equal(one, query_signals(scores, about)[1:])


def test_the_top_is_relevant_if_all_that_tie_for_it_are():
    scores = np.array([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.2, 0.1, 0.1]])
    relevant = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]], bool)
    assert top_is_relevant(scores, relevant).tolist() == [True, False, True]


def test_words_are_counted_one_at_the_least():
    assert word_counts(["a", "a dog", " "]).tolist() == [1, 2, 1]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (np.zeros((3, 0)), "at least one"),
        (np.full((1, 2), -np.inf), "numbers below infinity"),
        (np.array([[0.0, np.nan]]), "numbers below infinity"),
        (np.array([[0.0, np.inf]]), "numbers below infinity"),
    ],
)
def test_what_are_no_scores_is_refused(scores, message):
    for signals in (query_signals, result_signals):
        with pytest.raises(SureshotError, match=message):
            signals(scores)
