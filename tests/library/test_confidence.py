"""A card beside an index or a model: when it is used, and what it says of real answers."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import QueryError
from sureshot.library.confidence import OperatingPoint, drift, find_card, judged
from sureshot.library.search import open_index
from sureshot.library.videos import VideoScores
from sureshot.models.bank import bank_of
from sureshot.models.encoders import load_encoder
from sureshot.trust.assessment import assess
from sureshot.trust.card import FILE
from sureshot.trust.fitting import fit_card
from tests.small_library import index
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card():
    """A card of the tiny encoder, from scores of a simulated library."""
    made = world(seed=3, videos=300, captions=2)
    return fit_card(
        made.scores,
        made.relevant,
        made.video,
        model=load_encoder("tiny").fingerprint,
        dataset="a simulation",
        date="2026-11-21",
    )


@pytest.fixture
def place(library, tmp_path):
    """An index of its own, that may get a card."""
    index(str(tmp_path / "db"), library.videos)
    return tmp_path / "db"


def beside(place, card):
    (place / FILE).write_text(card.to_json(), "utf-8")
    return open_index(place)


def test_without_a_card_nothing_is_said(place):
    answer = open_index(place).search("red")
    assert (answer.status, answer.confidence) == ("not calibrated", None)
    assert all(hit.relevant is None and hit.plausible is None for hit in answer)
    assert answer.to_dict()["confidence"] is None


def test_with_a_card_an_answer_has_the_numbers_of_an_assessment(place, card):
    searcher = beside(place, card)
    answer = searcher.search("red", k=20, fold=False)
    found = searcher.video_scores("red")
    expected = assess(card, found.scores.astype(float), results=len(found.scores))
    assert answer.status != "not calibrated" and answer.confidence is not None
    assert answer.confidence.right == pytest.approx(expected.p_top1)
    assert answer.confidence.present == pytest.approx(expected.p_inside)
    assert answer.confidence.plausible == len(expected.members)
    shown = dict(zip(expected.order.tolist(), expected.p_relevant.tolist(), strict=True))
    for hit in answer:
        column = found.paths.index(hit.path)
        assert hit.relevant == pytest.approx(shown[column])
        assert hit.plausible == (column in expected.members)
    assert "a simulation" in answer.confidence.valid_for
    assert any(
        "percentages were learned on" in warning for warning in answer.warnings
    )  # 5 videos, not 300


def test_the_users_point_is_kept_and_checked(place, card):
    searcher = beside(place, card)
    wide = searcher.search("red", coverage=0.95).confidence
    narrow = searcher.search("red", coverage=0.5).confidence
    assert wide.coverage == 0.95 and wide.plausible >= narrow.plausible
    asked = searcher.search("red", risk=0.5).confidence
    assert asked.risk == 0.5 and asked.certified is not None
    assert searcher.search("red").confidence.certified is None
    for wrong in ({"coverage": 1.0}, {"coverage": 0.0}, {"risk": -0.1}, {"risk": 1.5}):
        with pytest.raises(QueryError, match="must be between 0 and 1"):
            searcher.search("red", **wrong)


def test_json_carries_it_all(place, card):
    told = beside(place, card).search("red").to_dict()
    assert set(told["confidence"]) == {
        "right", "present", "coverage", "plausible", "risk", "certified", "valid_for"
    }  # fmt: skip
    assert all("relevant" in hit and "plausible" in hit for hit in told["hits"])
    json.dumps(told, allow_nan=False)


def test_a_card_of_another_model_is_not_used_and_that_is_said(place, card):
    other = replace(card, valid_for=replace(card.valid_for, model="another"))
    answer = beside(place, other).search("red")
    assert (answer.status, answer.confidence) == ("not calibrated", None)
    assert any("another model" in warning for warning in answer.warnings)


@pytest.mark.parametrize(
    ("damage", "reason"),
    [
        (lambda text: text.replace('"temperature": ', '"temperature": 1'), "was changed after"),
        (lambda text: text[:100], "not JSON"),
        (lambda text: "", "not JSON"),
    ],
)
def test_a_card_that_was_edited_or_damaged_is_not_used_and_that_is_said(
    place, card, damage, reason
):
    (place / FILE).write_text(damage(card.to_json()), "utf-8")
    answer = open_index(place).search("red")
    assert answer.status == "not calibrated"
    assert any(reason in warning and FILE in warning for warning in answer.warnings)


def test_copies_of_the_best_video_are_no_rivals_of_it(card):
    paths = [Path(f"/v/{name}.mp4") for name in "abcd"]
    scores = VideoScores(np.array([0.9, 0.9, 0.2, 0.1]), paths, 4, 4)
    lonely = VideoScores(np.array([0.9, 0.2, 0.1]), [paths[0], *paths[2:]], 3, 3)
    hit = _hit(paths[0])
    copied = judged(card, scores, [replace(hit, copies=(paths[1],))], OperatingPoint())[1]
    alone = judged(card, lonely, [hit], OperatingPoint())[1]
    twice = judged(card, scores, [hit, _hit(paths[1])], OperatingPoint())[1]
    assert copied.right == pytest.approx(alone.right)
    assert twice.right < copied.right


def test_videos_that_were_not_scored_count_as_the_worst_that_were(card):
    paths = [Path(f"/v/{number}.mp4") for number in range(300)]
    values = np.concatenate([np.linspace(0.9, 0.2, 20), np.full(280, 0.2)])
    whole = VideoScores(values, paths, 300, 300)
    part = VideoScores(values[:20], paths[:20], 300, 300)
    hits = [_hit(paths[0])]
    *seen, (warning,) = judged(card, part, hits, OperatingPoint())
    assert [*seen, ()] == list(judged(card, whole, hits, OperatingPoint()))
    assert "nearest 20 of 300 videos were looked at" in warning
    sparse = VideoScores(np.append(values[:20], np.full(280, -0.9)), paths, 300, 300)
    known = judged(card, sparse, hits, OperatingPoint())[1]
    assert judged(card, part, hits, OperatingPoint())[1].right <= known.right


def test_a_query_that_scores_well_elsewhere_is_probably_not_here(card):
    knowing = replace(card, valid_for=replace(card.valid_for, elsewhere=True))
    paths = [Path(f"/v/{number}.mp4") for number in range(300)]
    found = VideoScores(np.linspace(2.0, -1.0, 300), paths, 300, 300, elsewhere=0.0)
    hits = [_hit(paths[0])]
    told = [
        judged(knowing, replace(found, elsewhere=value), hits, OperatingPoint())
        for value in (-1.0, 9.0)
    ]
    assert told[0][1].right == told[1][1].right
    assert told[0][1].present > told[1][1].present
    assert told[1][0] == "probably not here"


def test_many_queries_unlike_the_judged_ones_are_told_of_and_few_or_like_ones_are_not(card):
    own = judged(
        card, VideoScores(np.array([0.9]), [Path("/v/a.mp4")], 1, 1), [], OperatingPoint()
    )[1]

    def some(present):
        return [replace(own, present=value) for value in present]

    even = np.linspace(0.01, 0.99, 60)
    assert drift(card, some(even)) == ()
    assert drift(card, some(even[:15] / 20)) == ()  # too few to say
    (warning,) = drift(card, some(even / 20))
    assert "60 queries" in warning and "docs/trust.md" in warning


def test_a_file_of_queries_ends_with_that_warning(place, card, tmp_path, capsys):
    from sureshot.cli.app import run

    beside(place, card)
    asked = tmp_path / "queries.txt"
    asked.write_text("red\n" * 40)
    assert run(["search", "--from-file", str(asked), "--db", str(place), "-k", "1"]) == 0
    said = capsys.readouterr()
    # One and the same query forty times is unlike any set of judged ones.
    assert "These 40 queries score unlike those" in said.err and said.out.count("red") >= 40


def test_the_card_of_the_index_comes_before_that_of_the_model(place, card, tmp_path):
    print_of, model = card.valid_for.model, tmp_path / "model"
    model.mkdir()
    assert find_card(str(place), str(model), print_of, None) == (None, False, ())
    other = replace(card, valid_for=replace(card.valid_for, dataset="the model's own"))
    (model / FILE).write_text(other.to_json(), "utf-8")
    assert find_card(str(place), str(model), print_of, None) == (other, False, ())
    beside(place, card)
    assert find_card(str(place), str(model), print_of, None) == (card, True, ())


def test_the_bundled_model_comes_with_a_card_of_its_own(tmp_path):
    fingerprint = load_encoder("bundled").fingerprint
    bank = bank_of("bundled", fingerprint)
    card, _, warnings = find_card(str(tmp_path), "bundled", fingerprint, bank)
    assert warnings == () and card is not None
    assert "MSR-VTT" in card.valid_for.dataset and not card.refused
    assert (card.valid_for.smallest, card.valid_for.largest) == (10, 476)


def _hit(path):
    from sureshot.library.answer import FrameScore, Hit

    return Hit(1, path, 0.0, 1.0, 0.9, (FrameScore(0.0, 0.9),))
