"""Logistic regression against scikit-learn, slow descent and its own first-order condition."""

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.card import Logistic


def some(seed=0, n=200, d=4):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) * [1, 5, 0.01, 100][:d] + [0, 3, -0.2, 1000][:d]
    score = (features - features.mean(0)) / features.std(0) @ [1.5, -1, 0.5, 0][:d]
    return features, (rng.random(n) < 1 / (1 + np.exp(-score - 0.3))).astype(int)


@pytest.mark.parametrize("strength", [0.01, 0.3, 10.0])
def test_agrees_with_scikit_learn(strength):
    linear = pytest.importorskip("sklearn.linear_model")
    features, labels = some()
    weights = np.random.default_rng(1).random(200) * 3
    found = Logistic.fit(features, labels, strength=strength, weights=weights)
    mean = np.average(features, axis=0, weights=weights)
    scale = np.sqrt(np.average((features - mean) ** 2, axis=0, weights=weights))
    np.testing.assert_allclose(found.mean, mean)
    np.testing.assert_allclose(found.scale, scale)
    theirs = linear.LogisticRegression(C=strength, tol=1e-10, max_iter=1000)
    theirs.fit((features - mean) / scale, labels, sample_weight=weights)
    np.testing.assert_allclose(found.coef, theirs.coef_[0], atol=1e-5)
    assert found.bias == pytest.approx(theirs.intercept_[0], abs=1e-5)
    np.testing.assert_allclose(
        found.probability(features),
        theirs.predict_proba((features - mean) / scale)[:, 1],
        atol=1e-5,
    )


def test_agrees_with_slow_descent():
    features, labels = some(2, 60, 2)
    inputs = (features - features.mean(0)) / features.std(0)
    coef = np.zeros(3)
    for _ in range(20_000):
        residual = 1 / (1 + np.exp(-(inputs @ coef[:2] + coef[2]))) - labels
        coef -= 0.02 * (0.3 * np.append(residual @ inputs, residual.sum()) + [*coef[:2], 0])
    found = Logistic.fit(features, labels, strength=0.3)
    np.testing.assert_allclose([*found.coef, found.bias], coef, atol=1e-8)


def test_shares_as_labels_are_rows_of_both_kinds():
    features, labels = some(3, 50)
    share = Logistic.fit(features, 0.25 + 0.5 * labels)
    both = Logistic.fit(
        np.concatenate([features, features]),
        np.repeat([1, 0], 50),
        weights=np.concatenate([0.25 + 0.5 * labels, 0.75 - 0.5 * labels]),
    )
    np.testing.assert_allclose(share.coef, both.coef, atol=1e-8)


def test_the_mean_probability_is_the_share_of_right_answers():
    features, labels = some(4)
    found = Logistic.fit(features, labels).probability(features)
    assert found.mean() == pytest.approx(labels.mean())


def test_separable_labels_stay_finite():
    features = np.linspace(-1, 1, 40)[:, None]
    found = Logistic.fit(features, (features[:, 0] > 0).astype(int), strength=100.0)
    assert np.isfinite([*found.coef, found.bias]).all()
    probability = found.probability(np.array([[-1e6], [0.0], [1e6]]))
    np.testing.assert_allclose(probability, [0, 0.5, 1], atol=1e-6)


def test_a_constant_feature_counts_nothing():
    features, labels = some(5)
    features[:, 1] = 0.1
    found = Logistic.fit(features, labels)
    assert found.coef[1] == 0
    features[:, 1] = 7
    assert np.isfinite(found.probability(features)).all()
    alone = Logistic.fit(features[:, 1:2], labels)
    np.testing.assert_allclose(alone.probability(features[:, 1:2]), labels.mean())


def test_one_right_answer_among_many_wrong_is_fitted():
    features = np.random.default_rng(0).normal(size=(1000, 2))
    found = Logistic.fit(features, (np.arange(1000) == 3).astype(int))
    assert found.probability(features).mean() == pytest.approx(0.001)


@pytest.mark.parametrize(
    ("features", "labels", "rest", "message"),
    [
        (np.zeros((0, 2)), [], {}, "one row at least"),
        (np.zeros((2, 2)), [1, 0, 1], {}, "3 labels"),
        (np.zeros((2, 2)), [1, 1], {}, "All labels are the same"),
        (np.zeros((2, 2)), [0, 0], {}, "All labels are the same"),
        (np.zeros((2, 2)), [1, 0], {"weights": np.array([1.0, 0.0])}, "All labels are the same"),
        (np.zeros((2, 2)), [1, 0], {"weights": np.array([0.0, 0.0])}, "not all 0"),
        (np.zeros((2, 2)), [1, 0], {"weights": np.array([-1.0, 2.0])}, "0 or more"),
        (np.full((2, 2), np.nan), [1, 0], {}, "not finite"),
        (np.zeros((2, 2)), [1, 2], {}, "outside of 0 to 1"),
        (np.zeros((2, 2)), [1.0, np.nan], {}, "outside of 0 to 1"),
        (np.zeros((2, 2)), [1, 0], {"strength": 0.0}, "strength"),
    ],
)
def test_what_cannot_be_fitted_is_refused(features, labels, rest, message):
    with pytest.raises(SureshotError, match=message):
        Logistic.fit(features, np.array(labels), **rest)


def test_a_fit_that_does_not_fit_together_is_refused():
    with pytest.raises(SureshotError, match="one of each"):
        Logistic((0.0,), (1.0,), (1.0, 2.0), 0.0)
    with pytest.raises(SureshotError, match="scales above 0"):
        Logistic((0.0,), (0.0,), (1.0,), 0.0)
    with pytest.raises(SureshotError, match="3 features"):
        Logistic((0.0,), (1.0,), (1.0,), 0.0).probability(np.zeros((1, 3)))


def test_new_data_move_a_fit_as_far_as_they_outweigh_it():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    before = Logistic.fit(x, rng.random(400) < 1 / (1 + np.exp(-x[:, 0])))
    fresh = rng.normal(size=(3000, 2))
    right = rng.random(3000) < 1 / (1 + np.exp(1 - fresh[:, 0]))  # the level is lower by one
    shifts = [
        before.bias - before.adapted(fresh[:n], right[:n], shift=0.7).bias for n in (5, 50, 3000)
    ]
    assert abs(shifts[0]) < 0.7 and shifts[1] > 0.3
    assert shifts[2] == pytest.approx(1, abs=0.25)
    assert before.adapted(fresh, right, shift=0.7).coef == before.coef
    steeper = before.adapted(fresh, rng.random(3000) < 0.5, shift=0.7, slope=5.0)
    assert np.abs(steeper.coef).max() < 0.2 * np.abs(before.coef).max()
    own = before.adapted(fresh, fresh[:, 1] > 0, shift=0.7, slope=0.3, each=5.0)
    assert own.coef[1] > 3 * abs(own.coef[0])


def test_rows_of_one_label_move_a_fit_and_no_rows_are_refused():
    before = Logistic.fit(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]))
    lower = before.adapted(np.ones((9, 1)), np.zeros(9), shift=0.7)
    assert lower.bias < before.bias
    with pytest.raises(SureshotError, match="one row at least"):
        before.adapted(np.ones((0, 1)), np.zeros(0), shift=0.7)
