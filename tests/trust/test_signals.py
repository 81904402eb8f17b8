"""Signals against slow formulas, and finite whatever the scores are."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sureshot.errors import SureshotError
from sureshot.trust.signals import (
    BEST,
    QueryContext,
    features,
    fit_temperature,
    margin_over_bank,
    query_signals,
    result_signals,
    top_is_relevant,
    word_counts,
)
from tests.trust.worlds import world


def slow(scores, t):
    """The signals of one query by their formulas, in plain Python, by name."""
    s = sorted(map(float, scores), reverse=True)
    mass = sum(math.exp(v / t) for v in s)
    p = [math.exp(v / t) / mass for v in s]
    return {
        "top": s[0],
        "margin": s[0] - s[1],
        "gap": s[0] - sum(s[1:10]) / len(s[1:10]),
        "top_logit": min(30, math.log(p[0] / sum(p[1:]))),
        "entropy": -sum(q * math.log(q) for q in p),
        "top_less_lse": s[0] - t * math.log(mass),
        "background": 0.0,
        "log_words": 0.0,
        "log_videos": math.log(len(s)),
    }


def close(found, expected):
    for name, values in expected._asdict().items():
        np.testing.assert_allclose(getattr(found, name), values)


@pytest.mark.parametrize("videos", [2, 5, 10, 11, 40])
@pytest.mark.parametrize("t", [0.03, 0.5])
def test_signals_are_their_formulas(videos, t):
    rng = np.random.default_rng(videos)
    scores = rng.uniform(-1, 1, (6, videos))
    found = query_signals(scores, t)
    for query, row in enumerate(scores):
        expected = slow(row, t)
        assert set(expected) == set(found._fields)
        for name, value in expected.items():
            assert getattr(found, name)[query] == pytest.approx(value, rel=1e-9, abs=1e-9)


def test_result_signals_are_their_formulas():
    rng = np.random.default_rng(1)
    scores = rng.uniform(-1, 1, (4, 30))
    order, found = result_signals(scores, 0.2, results=7)
    for i in range(4):
        s = scores[i]
        assert order[i].tolist() == sorted(range(30), key=lambda j: -s[j])[:7]
        p = np.exp(s / 0.2) / np.exp(s / 0.2).sum()
        for place, j in enumerate(order[i]):
            expected = {
                "score": s[j],
                "logit": math.log(p[j] / (p.sum() - p[j])),
                "below_top": s.max() - s[j],
                "gap": s[j] - np.sort(s)[::-1][place + 1 : place + 10].mean(),
                "background": 0.0,
                "log_words": 0.0,
                "log_rank": math.log(2 + place),
                "log_videos": math.log(30),
            }
            assert set(expected) == set(found._fields)
            for name, value in expected.items():
                assert getattr(found, name)[i, place] == pytest.approx(value, abs=1e-9)


def test_a_video_that_is_ruled_out_is_no_part_of_the_gallery():
    rng = np.random.default_rng(2)
    scores = rng.normal(size=(3, 12))
    out = np.insert(scores, [0, 5], -np.inf, axis=1)
    close(query_signals(out, 0.1), query_signals(scores, 0.1))
    order, found = result_signals(out, 0.1)
    _, expected = result_signals(scores, 0.1)
    close(type(found)._make(values[:, :12] for values in found), expected)
    assert np.isfinite(features(found)).all()
    assert set(order[0, 12:]) == {0, 6}


def test_one_video_looks_like_a_tie():
    twice = np.array([[0.7, 0.7]])
    for one in (np.array([[0.7]]), np.array([[-np.inf, 0.7, -np.inf]])):
        close(query_signals(one, 0.1), query_signals(twice, 0.1))
        order, several = result_signals(one, 0.1, results=1)
        assert order.tolist() == [[one.argmax()]]
        close(several, result_signals(twice, 0.1, results=1)[1])


@given(
    arrays.arrays(
        np.float64,
        st.tuples(st.integers(1, 3), st.integers(1, 15)),
        elements=st.floats(-1e6, 1e6),
    ),
    st.sampled_from([1e-6, 0.01, 1.0, 1e6]),
)
def test_signals_are_finite_for_all_numbers(scores, t):
    assert np.isfinite(features(query_signals(scores, t))).all()
    order, found = result_signals(scores, t)
    assert np.isfinite(features(found)).all()
    assert (np.sort(order, axis=1) == np.arange(scores.shape[1])).all()


def test_a_query_does_not_depend_on_the_others_nor_on_blocks(monkeypatch):
    scores = np.random.default_rng(3).normal(size=(9, 7))
    whole = query_signals(scores, 0.3)
    order, each = result_signals(scores, 0.3)
    monkeypatch.setattr("sureshot.metrics.ranks.CELLS", 14)
    np.testing.assert_array_equal(features(query_signals(scores, 0.3)), features(whole))
    again, parts = result_signals(scores, 0.3)
    np.testing.assert_array_equal(again, order)
    np.testing.assert_array_equal(features(parts), features(each))
    np.testing.assert_allclose(features(query_signals(scores[4:5], 0.3)), features(whole)[4:5])


def test_features_are_the_signals_side_by_side_and_a_small_gallery_counts_as_larger():
    scores = np.random.default_rng(5).normal(size=(3, 9))
    _, found = result_signals(scores, 0.1, results=4)
    rows = features(found, smallest=20)
    columns = [*found[:-1], np.full((3, 4), np.log(20))]
    np.testing.assert_array_equal(rows, np.stack([one.ravel() for one in columns], axis=1))
    np.testing.assert_array_equal(features(found, smallest=8)[:, -1], np.log(9))


def test_the_temperature_is_that_of_the_best_likelihood():
    w = world(0, 80)
    found = fit_temperature(w.scores, w.relevant)

    def loss(t):
        p = np.exp(w.scores / t)
        p /= p.sum(1, keepdims=True)
        return -np.log((p * w.relevant).sum(1)).mean()

    tried = np.geomspace(0.005, 1, 400)
    assert found == pytest.approx(tried[np.argmin([loss(t) for t in tried])], rel=0.02)
    assert loss(found) <= min(map(loss, tried)) + 1e-9
    assert fit_temperature(10 * w.scores + 3, w.relevant) == pytest.approx(10 * found, rel=1e-3)


def test_temperatures_of_odd_labels_are_finite():
    assert 0 < fit_temperature(np.zeros((3, 4)), np.eye(3, 4, dtype=bool)) < np.inf
    perfect = fit_temperature(np.eye(4), np.eye(4, dtype=bool))
    wrong = fit_temperature(-np.eye(4), np.eye(4, dtype=bool))
    assert 0 < perfect < 0.01 < 10 < wrong < np.inf
    with pytest.raises(SureshotError, match="No query has both"):
        fit_temperature(np.zeros((2, 2)), np.array([[True, True], [False, False]]))


def test_the_top_is_relevant_if_all_that_tie_for_it_are():
    scores = np.array([[0.5, 0.5, 0.1], [0.5, 0.5, 0.1], [0.2, 0.1, 0.1]])
    relevant = np.array([[1, 1, 0], [1, 0, 0], [1, 0, 1]], bool)
    assert top_is_relevant(scores, relevant).tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("scores", "t", "message"),
    [
        (np.zeros((3, 0)), 1.0, "at least one"),
        (np.full((1, 2), -np.inf), 1.0, "numbers below infinity"),
        (np.array([[0.0, np.nan]]), 1.0, "numbers below infinity"),
        (np.array([[0.0, np.inf]]), 1.0, "numbers below infinity"),
        (np.zeros((1, 2)), 0.0, "temperature"),
        (np.zeros((1, 2)), math.inf, "temperature"),
    ],
)
def test_what_are_no_scores_is_refused(scores, t, message):
    with pytest.raises(SureshotError, match=message):
        query_signals(scores, t)
    with pytest.raises(SureshotError, match=message):
        result_signals(scores, t)


def test_standing_is_the_best_score_less_what_is_found_elsewhere():
    scores = np.array([[0.2, 0.9, -np.inf], [0.1, 0.1, 0.1]])
    assert margin_over_bank(scores).tolist() == [0.9, 0.1]
    np.testing.assert_allclose(margin_over_bank(scores, np.array([0.4, -0.2])), [0.6, 0.25])


def test_what_else_is_known_of_queries_is_a_signal_of_each():
    scores = np.random.default_rng(7).normal(size=(3, 9))
    about = QueryContext(np.array([0.1, 0.2, 0.3]), word_counts(["a", "a dog", " "]), 500)
    found = query_signals(scores, 0.1, about)
    np.testing.assert_array_equal(found.background, about.background)
    np.testing.assert_allclose(found.log_words, np.log([1, 2, 1]))
    np.testing.assert_allclose(found.log_videos, np.log(500))
    each = result_signals(scores, 0.1, about, results=2)[1]
    np.testing.assert_array_equal(each.background, np.repeat(about.background[:, None], 2, axis=1))
    one = query_signals(scores[1:2], 0.1, about.of(np.array([1])))
    np.testing.assert_allclose(features(one), features(found)[1:2])


def test_signals_do_not_look_beyond_the_best_hundred():
    scores = -np.sort(-np.random.default_rng(8).normal(size=(2, 300)))
    about = QueryContext(videos=300)
    np.testing.assert_allclose(
        features(query_signals(scores[:, :BEST], 0.1, about)),
        features(query_signals(scores, 0.1, about)),
    )
    several = [
        result_signals(part, 0.1, about, results=20)[1] for part in (scores, scores[:, :120])
    ]
    np.testing.assert_allclose(features(several[0]), features(several[1]))
