"""The card: what it says of scores, and that nobody edits it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.card import FILE, Calibration, Inside, save_card
from sureshot.trust.conformal import Nonconformity
from sureshot.trust.fitting import fit_card
from sureshot.trust.risk import Certificate
from sureshot.trust.signals import features, query_signals, result_signals
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card() -> Calibration:
    w = world(1, 200)
    return fit_card(
        w.scores,
        w.relevant,
        w.video,
        sought=w.video,
        model="abc",
        dataset="a world",
        date="2026-01-01",
        sizes=(20, 36, 63, 112, 200),
    )


def test_a_card_survives_its_file(card):
    text = card.to_json()
    again = Calibration.from_json(text)
    assert again == card
    assert again.to_json() == text
    w = world(2, 50)
    np.testing.assert_array_equal(again.p_top1(w.scores), card.p_top1(w.scores))
    np.testing.assert_array_equal(again.p_inside(w.scores), card.p_inside(w.scores))
    assert len(text) < 60_000


def test_a_card_says_what_it_is_valid_for(card):
    valid = card.valid_for
    assert (valid.model, valid.bank, valid.dataset, valid.date) == (
        "abc",
        None,
        "a world",
        "2026-01-01",
    )
    assert (valid.smallest, valid.largest) == (20, 200)
    assert (valid.queries, valid.videos, valid.fitted, valid.certified) == (200, 200, 66, 134)
    assert card.any.videos == card.annotated.videos == 134
    assert card.mismatches("abc", None) == ()
    assert "another model" in card.mismatches("abd", None)[0]
    assert "another hub correction" in card.mismatches("abc", "captions")[0]


@pytest.mark.parametrize(
    "path",
    [
        ("temperature",),
        ("top1", "bias"),
        ("valid_for", "model"),
        ("valid_for", "fitted"),
        ("any", "scores", 3),
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


def test_the_order_and_space_of_the_file_do_not_matter(card):
    values = json.loads(card.to_json())
    mixed = dict(reversed(values.items()))
    assert Calibration.from_json(json.dumps(mixed, indent=4)) == card


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "another file"),
        ("{}", "another file"),
        ('{"kind": "sureshot calibration", "temperature": NaN}', "holds NaN"),
        ('{"kind": "sureshot calibration", "temperature": Infinity}', "holds Infinity"),
        ('{"kind": "sureshot calibration", "version": 3}', "version 3.*update"),
        ('{"kind": "sureshot calibration", "version": 1}', "older Sureshot"),
        ('{"kind": "sureshot calibration", "version": 2}', "changed after"),
    ],
)
def test_what_is_no_card_is_refused(text, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(text)


def signed(values):
    """A file with these values and the checksum they would have."""
    from sureshot.trust.card import _checksum

    values = {k: v for k, v in values.items() if k != "checksum"}
    return json.dumps({**values, "checksum": _checksum(values)})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "Unknown setting extra"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"temperature": -1.0}, "temperature is not above 0"),
        ({"version": 0}, "older Sureshot"),
        ({"signals": ["top"]}, "signals are not those"),
        ({"inside": []}, "sizes of its galleries"),
        ({"top1": {"mean": [], "scale": [], "coef": [], "bias": 0.0}}, "coefficient a signal"),
        ({"any": {"scores": [2.0, 1.0], "sharing": [1, 1]}}, "ascending"),
        ({"annotated": 3}, "expected a table"),
    ],
)
def test_a_signed_card_that_is_wrong_inside_is_refused(card, change, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(signed({**json.loads(card.to_json()), **change}))


def test_a_missing_part_is_refused(card):
    values = json.loads(card.to_json())
    del values["inside"]
    with pytest.raises(SureshotError, match="inside is missing"):
        Calibration.from_json(signed(values))


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
    np.testing.assert_allclose(found[:, 1:], each[:, 1:])
    assert card.p_relevant(w.scores, results=None)[1].shape == w.scores.shape


def test_p_inside_counts_best_scores_and_interpolates_in_log_size(card):
    best = Nonconformity.of(-np.linspace(0.1, 0.9, 9)), Nonconformity.of(-np.linspace(0.5, 1.3, 9))
    card = replace(card, inside=(Inside(10, best[0]), Inside(1000, best[1])))

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


def test_the_set_of_a_target(card):
    w = world(4, 80)
    smaller = card.members(w.scores, 0.9, "any")
    larger = card.members(w.scores, 0.9, "annotated")
    assert (larger | ~smaller).all()
    assert larger.sum() > smaller.sum()
    assert card.members(w.scores, 0.999) is None
    with pytest.raises(SureshotError, match="which one video"):
        replace(card, annotated=None).members(w.scores, 0.9, "annotated")


def test_the_certificate_of_a_risk_is_of_that_or_a_stricter_one(card):
    known = tuple(Certificate(r, 0.95, 1 - r, r, 90, 1, r) for r in (0.1, 0.2, 0.4))
    card = replace(card, certificates=known)
    assert card.certificate(0.05) is None
    assert card.certificate(0.1) == known[0]
    assert card.certificate(0.3) == known[1]
    assert card.certificate(0.6 - 0.4) == known[1]
    assert card.certificate(0.9) == known[2]


def test_a_row_that_rules_out_every_video_is_refused(card):
    with pytest.raises(SureshotError, match="rules out every"):
        card.p_inside(np.full((1, 5), -np.inf))


def test_a_smaller_gallery_makes_nothing_surer(card):
    # Signals of 200 videos but for their number would be far surer in a gallery of two.
    assert card.top1.coef[-1] != 0
    scores = np.array([[0.5, 0.3]])
    signals = query_signals(scores, card.temperature)._replace(log_videos=np.log([20]))
    np.testing.assert_allclose(card.p_top1(scores), card.top1.probability(features(signals)))
    grown = np.random.default_rng(0).random((2, 1000))
    expected = card.top1.probability(features(query_signals(grown, card.temperature)))
    np.testing.assert_allclose(card.p_top1(grown), expected)


def test_scores_from_elsewhere_are_given_where_the_card_knows_them(card):
    scores = np.zeros((1, 5))
    with pytest.raises(SureshotError, match="with scores of videos from elsewhere"):
        card.p_inside(scores, np.zeros(1))
    knowing = replace(card, valid_for=replace(card.valid_for, elsewhere=True))
    with pytest.raises(SureshotError, match="without scores of videos from elsewhere"):
        knowing.p_inside(scores)
    # A query that scores well elsewhere stands out less.
    two = knowing.p_inside(np.full((2, 5), scores.max() + 0.5), np.array([0.0, 2.0]))
    assert two[1] < two[0]


@pytest.fixture(scope="module")
def filed():
    made = world(seed=3, videos=200, captions=2)
    return fit_card(made.scores, made.relevant, made.video, model="abc", date="2026-11-21")


def test_what_is_written_is_what_is_read(tmp_path, filed):
    (tmp_path / FILE).write_text("an older one")
    save_card(filed, tmp_path / FILE)
    assert Calibration.from_json((tmp_path / FILE).read_text("utf-8")) == filed
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_a_refused_card_is_not_kept(tmp_path, filed):
    (tmp_path / FILE).write_text("an older one")
    with pytest.raises(SureshotError, match=r"not kept: they do not separate\."):
        save_card(replace(filed, refused="they do not separate."), tmp_path / FILE)
    assert (tmp_path / FILE).read_text() == "an older one"


def test_a_place_that_cannot_be_written_is_said_and_left_as_it_was(tmp_path, filed):
    with pytest.raises(SureshotError, match=rf"{tmp_path}/none/{FILE} cannot be written: no such"):
        save_card(filed, tmp_path / "none" / FILE)
    (tmp_path / FILE).mkdir()
    with pytest.raises(SureshotError, match="cannot be written: is a directory"):
        save_card(filed, tmp_path / FILE)
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
