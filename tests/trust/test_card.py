"""The card: what it says of scores, and that nobody edits it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.files import CARD
from sureshot.trust.card import (
    Calibration,
    Depths,
    Logistic,
    _checksum,
    load_card,
    save_card,
    sigmoid,
)
from sureshot.trust.signals import QueryContext, query_signals, result_signals
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card() -> Calibration:
    return world(1, 200).card(model="abc", dataset="a world", date="2026-01-01")


def test_a_card_survives_its_file(card, tmp_path):
    text = card.to_json()
    again = Calibration.from_json(text)
    assert again == card and again.to_json() == text
    mixed = dict(reversed(json.loads(text).items()))
    assert Calibration.from_json(json.dumps(mixed, indent=4)) == card
    assert len(text) < 60_000
    save_card(card, tmp_path / CARD)
    assert load_card(tmp_path / CARD) == card
    assert [path.name for path in tmp_path.iterdir()] == [CARD]


def test_a_card_says_what_it_is_valid_for(card):
    valid = card.valid_for
    assert (valid.model, valid.bank) == ("abc", None)
    assert (valid.dataset, valid.date) == ("a world", "2026-01-01")
    assert (valid.smallest, valid.largest, valid.queries, valid.videos) == (10, 200, 200, 200)
    assert card.mismatches("abc", None) == ()
    assert "another model" in card.mismatches("abb", None)[0]
    assert "another hub correction" in card.mismatches("abc", "captions")[0]


@pytest.mark.parametrize(
    "path",
    [
        ("absent_below", 0),
        ("prior",),
        ("present", "bias"),
        ("valid_for", "model"),
        ("depths", 0, "scores", 3),
        ("quality", "brier"),
        ("valid_for", "source"),
        ("checksum",),
    ],
)
def test_an_edited_card_is_noticed(card, path):
    values = json.loads(card.to_json())
    inner = values
    for step in path[:-1]:
        inner = inner[step]
    old = inner[path[-1]]
    inner[path[-1]] = old + "x" if isinstance(old, str) else old + 1
    with pytest.raises(SureshotError, match=r"changed after it was made.*sureshot calibrate"):
        Calibration.from_json(json.dumps(values))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("[1]", "another file"),
        ("{}", "another file"),
        ('{"kind": "sureshot calibration", "prior": NaN}', "holds NaN"),
        ('{"kind": "sureshot calibration", "version": 3}', r"version 3.*reads 5\. Calibrate again"),
        ('{"kind": "sureshot calibration", "version": 6}', r"version 6.*reads 5\. Update"),
        ('{"kind": "sureshot calibration", "version": "99"}', "its version is no number"),
        ('{"kind": "sureshot calibration", "version": 5}', "changed after"),
    ],
)
def test_what_is_no_card_is_refused(text, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(text)


EMPTY = {"mean": [], "scale": [], "coef": [], "bias": 0.0}
FLAT = {"mean": [0] * 6, "scale": [0] * 6, "coef": [0] * 6, "bias": 0}
UNSORTED = {"videos": 3, "few": False, "scores": [2.0, 1.0], "weights": [1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "Unknown setting extra"),
        ({"absent_below": [0.3]}, "threshold of each kind"),
        ({"prior": 0.0}, "prior is not between 0 and 1"),
        ({"signals": ["top"]}, "signals are not those"),
        ({"depths": []}, "sizes of its galleries"),
        ({"depths": [UNSORTED]}, "ascending"),
        ({"first": EMPTY}, "coefficient per signal"),
        ({"first": FLAT}, "scale of a"),
        ({"personal": 3}, "expected a table"),
        ({"later": ...}, "later is missing"),
    ],
)
def test_a_signed_card_that_is_wrong_inside_is_refused(card, change, message):
    values = {**json.loads(card.to_json()), **change}
    values = {k: v for k, v in values.items() if k != "checksum" and v is not ...}
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(json.dumps({**values, "checksum": _checksum(values)}))


def test_a_place_that_cannot_be_written_is_reported(tmp_path, card):
    with pytest.raises(SureshotError, match=rf"{tmp_path}/none/{CARD} cannot be written: no such"):
        save_card(card, tmp_path / "none" / CARD)


def test_probabilities_are_products_of_the_fits(card):
    w = world(3, 60)
    signals = query_signals(w.scores)
    here, first = card.present.probability(signals), card.first.probability(signals)
    np.testing.assert_allclose(card.p_present(w.scores), here)
    np.testing.assert_allclose(card.p_first(w.scores), first)
    order, found = card.p_right(w.scores, results=4)
    columns, each = result_signals(w.scores, results=4)
    np.testing.assert_array_equal(order, columns)
    known = np.column_stack([first, card.later.probability(each)[:, 1:]])
    falling = np.minimum.accumulate(known, axis=1)
    np.testing.assert_allclose(found, here[:, None] * falling)
    np.testing.assert_allclose(card.p_right(w.scores, results=4, prior=1)[1], falling)
    assert card.p_right(w.scores, results=None)[1].shape == w.scores.shape


def test_the_prior_moves_the_odds_that_it_is_here(card):
    w = world(3, 60)
    for prior in (0.1, 0.5, 0.9):
        odds = card.p_present(w.scores) / (1 - card.p_present(w.scores)) * prior / (1 - prior)
        np.testing.assert_allclose(card.p_present(w.scores, prior=prior), odds / (1 + odds))
        own = replace(card, prior=prior)
        np.testing.assert_allclose(own.p_present(w.scores), odds / (1 + odds))
    assert (card.p_present(w.scores, prior=1) == 1).all()
    for prior in (0, -0.5, 1.5, math.nan):
        with pytest.raises(ArgumentError, match=r"--prior .* must be above 0 and at most 1"):
            card.p_present(w.scores, prior=prior)


def test_a_set_reaches_as_deep_as_its_kind_and_size_say(card):
    def depths(high, videos, few):
        return Depths.of(np.linspace(0, high, 9), np.ones(9), videos=videos, few=few)

    known = (depths(0.1, 10, False), depths(0.3, 1000, False), depths(0.5, 100, True))
    card = replace(card, depths=known)

    def reach(videos, words=9):
        about = QueryContext(words=np.array([words]), videos=videos)
        return card.reach(np.zeros((1, 3)), 0.9, about)[0]

    assert [reach(n) for n in (5, 100, 1000, 9000)] == pytest.approx([0.1, 0.2, 0.3, 0.3])
    assert [reach(n, 3) for n in (5, 9000)] == pytest.approx([0.5, 0.5])
    scores, about = np.array([[0.5, 0.3, 0.2999]]), QueryContext(videos=100)
    assert card.members(scores, 0.9, about).tolist() == [[True, True, False]]
    assert card.members(scores, 0.95) is None  # nine labels promise nine in ten at most
    assert replace(card, depths=known[2:]).reach(scores, 0.9) == pytest.approx([0.5])


@pytest.mark.parametrize("what", ["background", "words", "common"])
def test_what_a_card_was_made_with_is_asked_for(card, what):
    knowing = replace(card, valid_for=replace(card.valid_for, **{what: True}))
    scores = np.zeros((1, 5))
    for said in (knowing.p_present, knowing.p_first, knowing.p_right):
        with pytest.raises(SureshotError, match="Queries came without"):
            said(scores)
    given = QueryContext(**{what: np.ones(1, int if what == "words" else float)})
    assert knowing.p_present(scores, given).shape == (1,)


@pytest.mark.parametrize("n", [1, 4, 9, 19, 50, 200])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_the_quantile_is_an_order_statistic(n, coverage):
    scores = np.round(np.random.default_rng(n).normal(size=n), 3)
    k = math.ceil(round((n + 1) * coverage, 9))
    found = Depths.of(scores, np.ones(n)).quantile(coverage)
    assert found == (np.sort(scores)[k - 1] if k <= n else math.inf)


def test_all_queries_of_a_video_weigh_as_one():
    # Videos a, b and c; a has two queries. Weights 1/8, 1/4, 1/4, 1/8, and 1/4 for the new one.
    depths = Depths.of(np.array([1.0, 4.0, 2.0, 3.0]), np.array([0.5, 0.5, 1, 1]))
    expected = {0.1: 1, 0.125: 1, 0.2: 2, 0.375: 2, 0.5: 3, 0.625: 3, 0.7: 4, 0.75: 4}
    assert {c: depths.quantile(c) for c in expected} == expected
    assert depths.quantile(0.8) == math.inf
    for share in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(SureshotError, match="coverage is"):
            depths.quantile(share)


def test_judged_depths_are_blended_in_and_a_miss_is_deeper_than_what_was_shown():
    card = Depths.of(np.arange(1.0, 11.0), np.ones(10), videos=7, few=True)

    def blended(depths, known):
        return card.blended(np.array(depths), np.array(known), np.ones(len(depths)), 10.0)

    assert blended([], np.zeros(0, bool)) == card
    shallow = blended([0.5] * 40, [True] * 40)
    assert shallow.quantile(0.7) == 0.5 and shallow.quantile(0.95) == 9
    assert sum(shallow.weights) == pytest.approx(50)
    # Three that are deeper than 8 are 9 or 10, not infinitely deep.
    missed = blended([8.0] * 3, [False] * 3)
    deeper = dict(zip(missed.scores, missed.weights, strict=True))
    assert deeper == pytest.approx({n: 1 + 1.5 * (n > 8) for n in card.scores})
    assert blended([20.0], [False]).scores[-1] == 20
    assert (shallow.videos, shallow.few) == (7, True)


def some(seed=0, n=200, d=4):
    rng = np.random.default_rng(seed)
    signals = rng.normal(size=(n, d)) * [1, 5, 0.01, 100][:d] + [0, 3, -0.2, 1000][:d]
    score = (signals - signals.mean(0)) / signals.std(0) @ [1.5, -1, 0.5, 0][:d]
    return signals, (rng.random(n) < sigmoid(score + 0.3)).astype(int)


@pytest.mark.parametrize("strength", [0.01, 10.0])
def test_no_other_coefficients_cost_less(strength):
    signals, labels = some()
    weights = strength * np.random.default_rng(1).random(200) * 3
    mean = np.average(signals, axis=0, weights=weights)
    scale = np.sqrt(np.average((signals - mean) ** 2, axis=0, weights=weights))
    found = Logistic.fit(signals, labels, weights)

    def cost(values):
        logit = (signals - mean) / scale @ values[:-1] + values[-1]
        penalty = (values[:-1] ** 2).sum() + 0.1 * values[-1] ** 2
        return weights @ (np.logaddexp(0, logit) - labels * logit) + penalty / 2

    best = np.array([*found.coef, found.bias])
    for step in 1e-4 * np.eye(5):  # the cost is convex
        assert cost(best) < min(cost(best + step), cost(best - step))
    expected = sigmoid((signals - mean) / scale @ best[:-1] + best[-1])
    np.testing.assert_allclose(found.probability(signals), expected)


def test_separable_labels_and_constant_signals_stay_finite():
    line = np.linspace(-1, 1, 40)[:, None]
    found = Logistic.fit(line, (line[:, 0] > 0).astype(int), np.full(40, 100.0))
    probability = found.probability(np.array([[-1e6], [0.0], [1e6]]))
    np.testing.assert_allclose(probability, [0, 0.5, 1], atol=1e-6)
    signals, labels = some(5)
    signals[:, 1] = 0.1
    found = Logistic.fit(signals, labels)
    assert found.coef[1] == 0
    alone = Logistic.fit(signals[:, 1:2], labels)
    np.testing.assert_allclose(alone.probability(signals[:, 1:2]), labels.mean(), atol=1e-3)


def test_new_data_shift_a_fit_as_far_as_they_outweigh_it():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(400, 2))
    before = Logistic.fit(x, rng.random(400) < sigmoid(x[:, 0]))
    fresh = rng.normal(size=(3000, 2))
    right = rng.random(3000) < sigmoid(fresh[:, 0] - 1)  # the level is lower by one
    moved = [before.shifted(fresh[:n], right[:n], np.ones(n), 0.7) for n in (0, 5, 50, 3000)]
    shifts = [before.bias - one.bias for one in moved]
    assert shifts[0] == 0 and abs(shifts[1]) < 0.7 and shifts[2] > 0.3
    assert shifts[3] == pytest.approx(1, abs=0.25)
    assert all(one.coef == before.coef for one in moved)
    # Rows of one label are enough, and weights count.
    lower = before.shifted(np.ones((9, 2)), np.zeros(9), np.ones(9), 0.7)
    heavy = before.shifted(np.ones((1, 2)), np.zeros(1), np.full(1, 9.0), 0.7)
    assert heavy.bias == pytest.approx(lower.bias) and lower.bias < before.bias
