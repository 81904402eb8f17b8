"""The card: what it says of scores, and that nobody edits it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.trust.card import FILE, Calibration, Nonconformity, Reference, save_card
from sureshot.trust.fit import fit_card
from sureshot.trust.signals import QueryContext, features, query_signals, result_signals
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card() -> Calibration:
    w = world(1, 200)
    return fit_card(
        w.scores,
        w.relevant,
        w.video,
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
    assert card.references[0][0].below.videos == 134
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
        ('{"kind": "sureshot calibration", "version": 4}', "version 4.*update"),
        ('{"kind": "sureshot calibration", "version": 2}', "older Sureshot"),
        ('{"kind": "sureshot calibration", "version": 3}', "changed after"),
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


UNSORTED = {"scores": [2.0, 1.0], "sharing": [1, 1]}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"extra": 1}, "Unknown setting extra"),
        ({"temperature": "warm"}, "temperature is 'warm'"),
        ({"temperature": -1.0}, "temperature is not above 0"),
        ({"version": 0}, "older Sureshot"),
        ({"signals": ["top"]}, "signals are not those"),
        ({"references": []}, "sizes of its galleries"),
        ({"references": [[]]}, "sizes of its galleries"),
        ({"top1": {"mean": [], "scale": [], "coef": [], "bias": 0.0}}, "coefficient a signal"),
        ({"references": [[{"videos": 3, "best": UNSORTED, "below": UNSORTED}]]}, "ascending"),
        ({"own": 3}, "expected a table"),
    ],
)
def test_a_signed_card_that_is_wrong_inside_is_refused(card, change, message):
    with pytest.raises(SureshotError, match=message):
        Calibration.from_json(signed({**json.loads(card.to_json()), **change}))


def test_a_missing_part_is_refused(card):
    values = json.loads(card.to_json())
    del values["references"]
    with pytest.raises(SureshotError, match="references is missing"):
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
    falling = np.minimum.accumulate(np.column_stack([expected, each[:, 1:]]), axis=1)
    np.testing.assert_allclose(found, falling)
    assert card.p_relevant(w.scores, results=None)[1].shape == w.scores.shape


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


@pytest.mark.parametrize("what", ["elsewhere", "words"])
def test_what_a_card_was_made_with_is_asked_for(card, what):
    knowing = replace(card, valid_for=replace(card.valid_for, **{what: True}))
    scores = np.zeros((1, 5))
    for said in (knowing.p_inside, knowing.p_top1, knowing.p_relevant):
        with pytest.raises(SureshotError, match="Queries came without"):
            said(scores)
    assert knowing.p_inside(
        scores, QueryContext(**{what: np.ones(1, int if what == "words" else float)})
    ).shape == (1,)


def test_a_query_that_scores_well_elsewhere_stands_out_less(card):
    two = card.p_inside(np.full((2, 5), 0.5), QueryContext(np.array([0.0, 2.0])))
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
