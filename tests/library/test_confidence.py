"""A card beside an index or a model: when it is used, and what it says of real answers."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.files import CARD
from sureshot.library.confidence import _kolmogorov, drift, find_card, judged, shift_p_value
from sureshot.library.results import Answer, FrameScore, Hit
from sureshot.library.search import open_index
from sureshot.models.encoders import load_encoder
from sureshot.models.hub_bank import bank_of
from sureshot.trust.assess import assess
from sureshot.trust.card import Nonconformity
from sureshot.trust.signals import QueryContext
from tests.small_library import index
from tests.trust.worlds import world


@pytest.fixture(scope="module")
def card():
    """A card of the tiny encoder, from scores of a simulated library."""
    made = world(seed=3, videos=300, captions=2)
    return made.card(
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
    (place / CARD).write_text(card.to_json(), "utf-8")
    return open_index(place)


def test_with_a_card_an_answer_has_the_numbers_of_an_assessment(place, card):
    searcher = beside(place, card)
    answer = searcher.search("red", limit=20, merge_copies=False)
    rivals, about = searcher.rivals("red")
    expected = assess(card, np.array([[moment.score for moment in rivals]]), about)[0]
    assert answer.status != "not calibrated" and answer.confidence is not None
    assert answer.confidence.right == pytest.approx(expected.p_relevant[0])
    assert answer.confidence.present == pytest.approx(expected.p_inside)
    assert answer.confidence.plausible == expected.plausible
    shown: dict[float, float] = {}
    for moment, p in zip(rivals, expected.p_relevant, strict=True):
        shown.setdefault(moment.score, p)
    least = rivals[expected.plausible - 1].score
    known = [hit for hit in answer if hit.score in shown]
    assert len(known) > 3
    for hit in known:
        assert hit.relevant == pytest.approx(shown[hit.score])
        assert hit.plausible == (hit.score >= least)
    assert "a simulation" in answer.confidence.valid_for


@pytest.mark.parametrize("query", ["red", "white and black", "a purple elephant"])
def test_a_hit_has_the_same_percentage_in_every_answer(place, card, query):
    searcher = beside(place, card)
    said: dict[tuple[Path, float, float], set[float | None]] = {}
    for k in (1, 2, 5, 50):
        for per_video in (1, 3, 9):
            for merge_copies in (True, False):
                answer = searcher.search(
                    query, limit=k, per_video=per_video, merge_copies=merge_copies
                )
                for hit in answer:
                    said.setdefault((hit.path, hit.start, hit.end), set()).add(hit.relevant)
    assert said and {len(values) for values in said.values()} == {1}


def test_real_answers_do_not_contradict_themselves(place, card):
    searcher = beside(place, card)
    for query in ("red", "green", "white and black blocks", "a wedding", "yellow then magenta"):
        answer = searcher.search(query, limit=50, per_video=9)
        known = answer.confidence
        percentages = [hit.relevant for hit in answer]
        assert (known.plausible == 1) == (known.right >= known.coverage)
        if answer.status == "probably not here":
            assert known.present < 0.1 and percentages == [None] * len(answer)
            for shown in (str(answer), answer._repr_html_()):
                assert "Probably not in your videos:" in shown
                assert "%" not in shown and "right" not in shown
        else:
            assert percentages == sorted(percentages, reverse=True)
            assert percentages[0] == pytest.approx(known.right)


def test_weak_hits_can_be_left_out(place, card):
    searcher = beside(place, card)
    whole = searcher.search("red", limit=20)
    cut = whole[0].relevant
    answer = searcher.search("red", limit=20, min=cut)
    assert answer.hits == tuple(hit for hit in whole if hit.relevant >= cut)
    assert f"{len(whole) - len(answer)} hit" in answer.warnings[-1]
    assert f"the {100 * cut:g}% asked for with --min left out" in answer.warnings[-1]
    none = searcher.search("red", limit=20, min=0.9999)
    assert not none.hits and none.warnings[-1].startswith("No hit is as likely right as the 99.99%")
    assert none.warnings[-1].endswith(f"{len(whole)} left out.")


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
    (place / CARD).write_text(damage(card.to_json()), "utf-8")
    answer = open_index(place).search("red")
    assert answer.status == "not calibrated"
    assert any(reason in warning and CARD in warning for warning in answer.warnings)


def answer(*scores):
    hits = [
        Hit(rank, Path(f"/v/{rank}.mp4"), 0.0, 1.0, score, (FrameScore(0.0, score),))
        for rank, score in enumerate(scores, 1)
    ]
    return Answer("q", tuple(hits), "not calibrated", "tiny", 9, 0.1)


def said(card, scores, *hits, videos=9, background=None):
    """What a card says of one answer."""
    apart = None if background is None else np.array([background])
    about = QueryContext(background=apart, videos=videos)
    (found,) = judged(card, [answer(*hits)], [scores], about, 0.9)
    return found


def test_copies_of_a_moment_are_no_rivals_of_it(place, card):
    moments, about = beside(place, card).rivals("white and black blocks")
    names = [moment.path.name for moment in moments]
    assert len({"tape.mp4", "copy.mp4"} & set(names)) == 1
    assert about.videos > len(names)


def test_a_hit_further_down_than_any_rival_has_the_percentage_of_the_last(card):
    shown = said(card, [0.9, 0.5, 0.2], 0.9, -0.5)
    assert shown[0].relevant > shown[1].relevant
    about = QueryContext(videos=9)
    expected = assess(card, np.array([[0.9, 0.5, 0.2]]), about)[0].p_relevant
    assert [hit.relevant for hit in shown] == pytest.approx([expected[0], expected[2]])


def test_answers_that_are_judged_together_say_what_each_says_alone(card):
    scores, hits = ([0.9, 0.5], [0.8], [0.4] * 150), ([0.9], [0.9], [])
    answers = [answer(*own) for own in hits]
    together = judged(card, answers, scores, QueryContext(videos=9), 0.9)
    for one, own, shown in zip(scores, hits, together, strict=True):
        alone = said(card, one, *own)
        assert (shown.status, shown.warnings) == (alone.status, alone.warnings)
        assert shown.confidence.plausible == alone.confidence.plausible
        assert shown.confidence.right == pytest.approx(alone.confidence.right)
        assert shown.confidence.present == pytest.approx(alone.confidence.present)
        assert [h.relevant for h in shown] == pytest.approx([h.relevant for h in alone])


def test_many_queries_unlike_the_judged_ones_are_told_of_and_few_or_like_ones_are_not(card):
    own = said(card, [0.9]).confidence

    def some(present):
        return [replace(own, present=value) for value in present]

    even = np.linspace(0.01, 0.99, 60)
    assert drift(card, some(even)) == ()
    assert drift(card, some(even[:15] / 20)) == ()  # too few to say
    (warning,) = drift(card, some(even / 20))
    assert "60 queries" in warning and "not here" in warning
    (higher,) = drift(card, some(1 - even / 20))
    assert "not here" not in higher


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
    (model / CARD).write_text(other.to_json(), "utf-8")
    assert find_card(str(place), str(model), print_of, None) == (other, False, ())
    beside(place, card)
    assert find_card(str(place), str(model), print_of, None) == (card, True, ())


def test_a_damaged_card_of_the_index_is_reported_where_the_model_has_one(
    place, card, tmp_path, monkeypatch
):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / CARD).write_text(card.to_json(), "utf-8")
    monkeypatch.setattr("sureshot.library.confidence.home_of", lambda model: tmp_path / "model")
    (place / CARD).write_text(card.to_json()[:100], "utf-8")
    answer = open_index(place).search("red")
    assert answer.confidence is not None and not answer.confidence.personal
    assert any("not JSON" in warning for warning in answer.warnings)


def test_the_bundled_model_comes_with_a_card_of_its_own(tmp_path):
    fingerprint = load_encoder("bundled").fingerprint
    bank = bank_of("bundled", fingerprint)
    card, _, warnings = find_card(str(tmp_path), "bundled", fingerprint, bank)
    assert warnings == () and card is not None
    assert "MSR-VTT" in card.valid_for.dataset and not card.refused
    assert (card.valid_for.smallest, card.valid_for.largest) == (10, 1000)


def found(seed, moved=0.0, queries=60, videos=130):
    rng = np.random.default_rng(seed)
    reference = Nonconformity.of(rng.normal(size=videos))
    return shift_p_value(reference.p_value(rng.normal(moved, 1, queries)), videos)


def test_a_shift_is_found_to_both_sides():
    assert np.mean([found(seed, 0.5, 200) < 0.05 for seed in range(100)]) > 0.85
    assert max(found(0, -2.0), found(0, 2.0)) < 1e-6
    assert shift_p_value(np.array([0.5]), 100) > 0.5
    assert shift_p_value((1 + np.arange(100)) / 101, 100) == 1


def test_chance_is_not_taken_for_a_shift():
    values = np.array([found(seed) for seed in range(400)])
    assert 0.02 < (values < 0.05).mean() < 0.08
    assert 0.4 < (values < 0.5).mean() < 0.6


def test_agrees_with_scipy():
    stats, special = pytest.importorskip("scipy.stats"), pytest.importorskip("scipy.special")
    for x in np.linspace(0, 4, 81):
        assert _kolmogorov(x) == pytest.approx(special.kolmogorov(x), abs=1e-12)
    rng, gaps = np.random.default_rng(1), []
    for _ in range(60):
        labelled, fresh = rng.normal(size=40), rng.normal(0.2, 1, 35)
        ours = shift_p_value(Nonconformity.of(labelled).p_value(fresh), 40)
        gaps.append(ours - stats.ks_2samp(labelled, fresh).pvalue)
    assert np.abs(gaps).mean() < 0.05


def test_bad_input_is_refused():
    for values, videos in (([], 5), ([0.5], 0), ([1.1], 5), ([np.nan], 5)):
        with pytest.raises(SureshotError):
            shift_p_value(np.array(values, float), videos)
