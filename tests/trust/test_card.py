"""The card: what it says of scores, and that nobody edits it."""

import json
import math
from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.files import CARD
from sureshot.trust.card import Calibration, Logistic, Nonconformity, Reference, save_card
from sureshot.trust.signals import QueryContext, features, query_signals, result_signals
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card() -> Calibration:
    return world(1, 200).card(model="abc", dataset="a world", date="2026-01-01")


def test_a_card_survives_its_file(card):
    text = card.to_json()
    again = Calibration.from_json(text)
    assert again == card
    assert again.to_json() == text
    mixed = dict(reversed(json.loads(text).items()))
    assert Calibration.from_json(json.dumps(mixed, indent=4)) == card
    assert len(text) < 60_000


def test_a_card_says_what_it_is_valid_for(card):
    valid = card.valid_for
    assert (valid.model, valid.bank) == ("abc", None)
    assert (valid.dataset, valid.date) == ("a world", "2026-01-01")
    assert (valid.smallest, valid.largest) == (4, 200)
    assert (valid.queries, valid.videos, valid.fitted, valid.certified) == (200, 200, 66, 134)
    assert card.references[0][0].below.videos == 134
    assert card.mismatches("abc", None) == ()
    for other in ("abb", "abd"):
        assert "another model" in card.mismatches(other, None)[0]
    assert "another hub correction" in card.mismatches("abc", "captions")[0]


@pytest.mark.parametrize(
    "path",
    [
        ("temperature",),
        ("top1", "bias"),
        ("valid_for", "model"),
        ("valid_for", "fitted"),
        ("references", 0, 0, "below", "scores", 3),
        ("quality", "top1", "brier"),
        ("refused",),
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
        ("{", "not JSON"),
        ("[1]", "another file"),
        ("{}", "another file"),
        ('{"kind": "sureshot calibration", "temperature": NaN}', "holds NaN"),
        ('{"kind": "sureshot calibration", "temperature": Infinity}', "holds Infinity"),
        ('{"kind": "sureshot calibration", "version": 4}', "version 4.*reads 3; update"),
        ('{"kind": "sureshot calibration", "version": "99"}', "its version is no number"),
        ('{"kind": "sureshot calibration", "version": 3}', "changed after"),
    ],
)
def test_what_is_no_card_is_refused(text, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(text)


def signed(values):
    """A file with these values and the checksum they would have."""
    from sureshot.trust.card import _checksum

    values = {k: v for k, v in values.items() if k != "checksum" and v is not ...}
    return json.dumps({**values, "checksum": _checksum(values)})


UNSORTED = {"scores": [2.0, 1.0], "sharing": [1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "Unknown setting extra"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"temperature": -1.0}, "temperature is not above 0"),
        ({"version": 2}, "version 2"),
        ({"signals": ["top"]}, "signals are not those"),
        ({"references": []}, "sizes of its galleries"),
        ({"references": [[]]}, "sizes of its galleries"),
        ({"top1": {"mean": [], "scale": [], "coef": [], "bias": 0.0}}, "coefficient per signal"),
        ({"references": [[{"videos": 3, "best": UNSORTED, "below": UNSORTED}]]}, "ascending"),
        ({"top1": {"mean": [0] * 9, "scale": [0] * 9, "coef": [0] * 9, "bias": 0}}, "scale of a"),
        ({"personal": 3}, "expected a table"),
        ({"references": ...}, "references is missing"),
    ],
)
def test_a_signed_card_that_is_wrong_inside_is_refused(card, change, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(signed({**json.loads(card.to_json()), **change}))


def test_no_number_that_is_none_is_written(card):
    with pytest.raises(ValueError, match="not JSON compliant"):
        replace(card, temperature=float("inf")).to_json()


def test_probabilities_are_the_fits_of_the_signals(card):
    w = world(3, 60)
    expected = card.top1.probability(features(query_signals(w.scores, card.temperature)))
    np.testing.assert_allclose(card.p_top1(w.scores), expected)
    order, found = card.p_relevant(w.scores, results=4)
    columns, signals = result_signals(w.scores, card.temperature, results=4)
    np.testing.assert_array_equal(order, columns)
    np.testing.assert_allclose(found[:, 0], expected)
    each = card.result.probability(features(signals)).reshape(60, 4)
    falling = np.minimum.accumulate(np.column_stack([expected, each[:, 1:]]), axis=1)
    np.testing.assert_allclose(found, falling)
    assert card.p_relevant(w.scores, results=None)[1].shape == w.scores.shape
    with pytest.raises(SureshotError, match="rules out every"):
        card.p_inside(np.full((1, 5), -np.inf))


def test_p_inside_counts_best_scores_and_interpolates_in_log_size(card):
    best = Nonconformity.of(-np.linspace(0.1, 0.9, 9)), Nonconformity.of(-np.linspace(0.5, 1.3, 9))
    none = Nonconformity.of(np.zeros(9))
    known = (Reference(10, best[0], none), Reference(1000, best[1], none))
    card = replace(card, references=(known,))

    def p(top, videos):
        return card.p_inside(np.append(np.full(videos - 1, -1.0), top)[None])[0]

    assert p(0.55, 10) == pytest.approx(0.6)  # five of nine and itself
    assert p(0.55, 1000) == pytest.approx(0.2)
    assert p(0.55, 100) == pytest.approx(0.4)
    assert p(0.55, 3) == p(0.55, 10)
    assert p(0.55, 5000) == p(0.55, 1000)
    assert p(0.0, 10) == pytest.approx(0.1)
    assert p(2.0, 10) == 1
    ruled_out = np.append(np.full(990, -np.inf), np.append(np.full(9, -1.0), 0.55))
    assert card.p_inside(ruled_out[None])[0] == p(0.55, 10)


def test_a_set_reaches_as_far_below_the_best_as_the_worst_data_set_says(card):
    below = [Nonconformity.of(np.linspace(0, high, 9)) for high in (0.1, 0.3, 0.2)]
    best = Nonconformity.of(np.zeros(9))
    one = (Reference(10, best, below[0]), Reference(1000, best, below[1]))
    card = replace(card, references=(one, (Reference(100, best, below[2]),)))
    for videos, reach in ((5, 0.2), (100, 0.2), (1000, 0.3), (9000, 0.3)):
        assert card.reach(np.zeros((1, 3)), 0.9, QueryContext(videos=videos)) == pytest.approx(
            [reach]
        )
    scores = np.array([[0.5, 0.3, 0.2999]])
    assert card.members(scores, 0.9, QueryContext(videos=100)).tolist() == [[True, True, False]]
    assert card.members(scores, 0.95) is None


def test_a_smaller_gallery_makes_nothing_surer(card):
    # Signals of 200 videos but for their number would be far surer in a gallery of two.
    assert card.top1.coef[-1] != 0
    scores = np.array([[0.5, 0.3]])
    signals = query_signals(scores, card.temperature)._replace(log_videos=np.log([4]))
    np.testing.assert_allclose(card.p_top1(scores), card.top1.probability(features(signals)))
    grown = np.random.default_rng(0).random((2, 1000))
    expected = card.top1.probability(features(query_signals(grown, card.temperature)))
    np.testing.assert_allclose(card.p_top1(grown), expected)


@pytest.mark.parametrize("what", ["background", "words"])
def test_what_a_card_was_made_with_is_asked_for(card, what):
    knowing = replace(card, valid_for=replace(card.valid_for, **{what: True}))
    scores = np.zeros((1, 5))
    for said in (knowing.p_inside, knowing.p_top1, knowing.p_relevant):
        with pytest.raises(SureshotError, match="Queries came without"):
            said(scores)
    assert knowing.p_inside(
        scores, QueryContext(**{what: np.ones(1, int if what == "words" else float)})
    ).shape == (1,)


def test_a_card_is_written_whole_or_not_at_all(tmp_path, card):
    (tmp_path / CARD).write_text("an older one")
    with pytest.raises(SureshotError, match=r"not kept: they do not separate\."):
        save_card(replace(card, refused="they do not separate."), tmp_path / CARD)
    assert (tmp_path / CARD).read_text() == "an older one"
    save_card(card, tmp_path / CARD)
    assert Calibration.from_json((tmp_path / CARD).read_text("utf-8")) == card
    assert [path.name for path in tmp_path.iterdir()] == [CARD]


def test_a_place_that_cannot_be_written_is_said_and_left_as_it_was(tmp_path, card):
    with pytest.raises(SureshotError, match=rf"{tmp_path}/none/{CARD} cannot be written: no such"):
        save_card(card, tmp_path / "none" / CARD)
    (tmp_path / CARD).mkdir()
    with pytest.raises(SureshotError, match="cannot be written: is a directory"):
        save_card(card, tmp_path / CARD)
    assert [path.name for path in tmp_path.iterdir()] == [CARD]


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize("n", [1, 4, 9, 19, 50, 200])
@pytest.mark.parametrize("coverage", [0.5, 0.8, 0.9, 0.95])
def test_the_quantile_is_an_order_statistic(n, coverage):
    scores = np.round(rng(n).normal(size=n), 3)
    k = math.ceil(round((n + 1) * coverage, 9))
    found = Nonconformity.of(scores).quantile(coverage)
    assert found == (np.sort(scores)[k - 1] if k <= n else math.inf)
    assert (found < math.inf) == (n >= round(coverage / (1 - coverage), 9))


def test_p_values_count_what_is_as_strange():
    scores = np.array([0.3, -1.0, 2.0, 0.3])
    reference = Nonconformity.of(scores)
    for value in (-2.0, -1.0, 0.3, 0.4, 2.0, 3.0):
        expected = (1 + (scores >= value).sum()) / 5
        assert reference.p_value(np.array([value]))[0] == pytest.approx(expected)


def test_all_queries_of_a_video_weigh_as_one():
    # Videos a, b and c; a has two queries. Weights 1/8, 1/8, 1/4, 1/4, and 1/4 for the new one.
    reference = Nonconformity.of(np.array([1.0, 4.0, 2.0, 3.0]), np.array([7, 7, 1, 3]))
    assert reference.videos == 3
    assert reference.sharing == (2, 1, 1, 2)
    expected = {0.1: 1, 0.125: 1, 0.2: 2, 0.375: 2, 0.5: 3, 0.625: 3, 0.7: 4, 0.75: 4}
    assert reference.quantile(0.8) == math.inf
    assert {c: reference.quantile(c) for c in expected} == expected
    found = reference.p_value(np.array([0.0, 1.0, 1.5, 2.5, 3.5, 5.0]))
    np.testing.assert_allclose(found, [1, 1, 0.875, 0.625, 0.375, 0.25])


@pytest.mark.parametrize("scale", [1e-9, 1.0, 12345.678])
def test_rounding_goes_up_by_less_than_a_millionth(scale):
    scores = rng(5).normal(size=500) * scale
    kept = np.array(Nonconformity.of(scores).scores)
    gap = kept - np.sort(scores)
    assert (gap >= 0).all()
    assert (gap <= 1.01e-6 * np.abs(kept)).all()
    assert Nonconformity.of(np.zeros(3)).scores == (0.0, 0.0, 0.0)


@pytest.mark.parametrize("captions", [1, 6])
def test_coverage_is_as_promised(captions):
    # Queries of one video are alike; the new query is of a new video.
    chance, covered, below = rng(6), [], []
    for _ in range(800):
        of_video = chance.normal(size=41)
        spread = of_video[:, None] + 0.5 * chance.normal(size=(41, captions))
        reference = Nonconformity.of(spread[:40].ravel(), np.repeat(np.arange(40), captions))
        covered.append(spread[40, 0] <= reference.quantile(0.9))
        below.append(reference.p_value(spread[40, :1])[0] <= 0.1)
    # With one query a video it is 37/41 exactly; the error of 800 draws is 0.01.
    assert np.mean(covered) == pytest.approx(37 / 41, abs=0.025)
    assert np.mean(below) <= 0.12


def test_bad_references_and_shares_are_refused():
    for scores in ((), (math.nan,), (0.0, math.inf), (2.0, 1.0)):
        with pytest.raises(SureshotError, match="finite scores in ascending order"):
            Nonconformity(scores, (1,) * len(scores))
    for sharing in ((1, 1), (0,)):
        with pytest.raises(SureshotError, match="per score"):
            Nonconformity((2.0,), sharing)
    reference = Nonconformity.of(np.arange(3.0))
    for share in (0.0, 1.0, -0.5, math.nan):
        with pytest.raises(SureshotError, match="coverage is"):
            reference.quantile(share)


def some(seed=0, n=200, d=4):
    rng = np.random.default_rng(seed)
    features = rng.normal(size=(n, d)) * [1, 5, 0.01, 100][:d] + [0, 3, -0.2, 1000][:d]
    score = (features - features.mean(0)) / features.std(0) @ [1.5, -1, 0.5, 0][:d]
    return features, (rng.random(n) < 1 / (1 + np.exp(-score - 0.3))).astype(int)


@pytest.mark.parametrize("strength", [0.01, 10.0])
def test_agrees_with_scikit_learn(strength):
    linear = pytest.importorskip("sklearn.linear_model")
    features, labels = some()
    weights = np.random.default_rng(1).random(200) * 3
    found = Logistic.fit(features, labels, strength * weights)
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
    with pytest.raises(SureshotError, match="All labels are the same"):
        Logistic.fit(features, np.ones(200))


def test_separable_labels_stay_finite():
    features = np.linspace(-1, 1, 40)[:, None]
    found = Logistic.fit(features, (features[:, 0] > 0).astype(int), np.full(40, 100.0))
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


def test_rows_of_one_label_move_a_fit_and_their_weights_count():
    before = Logistic.fit(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]))
    lower = before.adapted(np.ones((9, 1)), np.zeros(9), shift=0.7)
    assert lower.bias < before.bias
    heavy = before.adapted(np.ones((1, 1)), np.zeros(1), np.full(1, 9.0), shift=0.7)
    assert heavy.bias == pytest.approx(lower.bias)
