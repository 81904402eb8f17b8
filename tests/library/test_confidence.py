"""A card beside an index or a model: when it is used, and what it says of real answers."""

import html
import itertools
import json
import re
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import sureshot
from sureshot.errors import ArgumentError, QueryError
from sureshot.files import CARD
from sureshot.library.calibration import _judged
from sureshot.library.confidence import find_card, judged
from sureshot.library.labels import JudgedMoment, Label
from sureshot.library.ranking import Moment
from sureshot.library.results import Answer, FrameScore, Hit
from sureshot.library.search import open_index
from sureshot.models.encoders import load_encoder
from sureshot.models.hub_bank import bank_of
from sureshot.paths import reference_card
from sureshot.trust.card import Personal
from sureshot.trust.signals import QueryContext
from tests.clips import coloured, film
from tests.paths import DATA
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
    return shutil.copytree(library.db, tmp_path / "db")


def beside(place, card):
    (place / CARD).write_text(card.to_json(), "utf-8")
    return open_index(place)


def test_with_a_card_an_answer_has_its_probabilities(place, card):
    searcher = beside(place, card)
    answer = searcher.search("red", limit=20, merge_copies=False)
    rivals, about = next(searcher.rivals(["red"]))
    scores = np.array([[moment.score for moment in rivals]])
    _, expected = card.p_right(scores, about, results=None)
    assert answer.status != "not calibrated" and answer.confidence is not None
    assert answer.confidence.right == answer[0].probability == pytest.approx(expected[0, 0])
    assert answer.present == pytest.approx(card.p_present(scores, about)[0])
    members = int(card.members(scores, 0.9, about).sum())
    shown: dict[float, float] = {}
    for moment, p in zip(rivals, expected[0], strict=True):
        shown.setdefault(moment.score, p)
    known = [hit for hit in answer if hit.score in shown]
    assert len(known) > 3
    for hit in known:
        assert hit.probability == pytest.approx(shown[hit.score])
    short = members <= len(rivals) // 2
    assert answer.confidence.plausible == (members if short else None)
    assert [hit.plausible is None for hit in answer] == [not short] * len(answer)
    assert "a simulation" in answer.confidence.valid_for


def test_who_knows_that_it_is_there_gets_other_numbers(place, card):
    searcher = beside(place, card)
    plain, known = searcher.search("red"), searcher.search("red", present=True)
    assert (known.present, known.answerable) == (1, "yes")
    assert known.status != "probably not here" and "not in your videos" not in str(known)
    assert "%" in str(plain) and "not in your videos" in str(plain)
    for one, other in zip(plain, known, strict=True):
        assert one.probability == pytest.approx(plain.present * other.probability)
    often = searcher.search("red", prior=0.9)
    assert plain.present < often.present < 1 and often.confidence.prior == 0.9
    for prior in (0, 1.5):
        with pytest.raises(ArgumentError, match="--prior"):
            searcher.search("red", prior=prior)


def test_a_hit_has_the_same_percentage_in_every_answer(place, card):
    searcher = beside(place, card)
    said: dict[tuple[Path, float, float], set[float | None]] = {}
    for k, per_video, merge in itertools.product((1, 3, 50), (1, 9), (True, False)):
        options = {"limit": k, "per_video": per_video, "merge_copies": merge}
        for hit in searcher.search("white and black", **options):
            said.setdefault((hit.path, hit.start, hit.end), set()).add(hit.probability)
    assert said and {len(values) for values in said.values()} == {1}


def test_real_answers_do_not_contradict_themselves(place, card):
    searcher = beside(place, card)
    statuses = set()
    for query in ("red", "green", "white and black blocks", "a wedding", "yellow then magenta"):
        answer = searcher.search(query, limit=50, per_video=9)
        known, percentages = answer.confidence, [hit.probability for hit in answer]
        statuses.add(answer.status)
        assert percentages == sorted(percentages, reverse=True)
        assert percentages[0] == known.right <= answer.present
        assert (answer.status == "probably not here") == (answer.answerable == "no")
        if known.plausible is not None:
            assert sum(bool(hit.plausible) for hit in answer) <= known.plausible
        points = [int(n) for n in re.findall(r"(\d+)%", "".join(answer.verdict).split(".")[0])]
        assert sum(points) == 100
        for shown in (str(answer), answer._repr_html_()):
            assert "".join(answer.verdict) in html.unescape(shown)
    assert len(statuses) > 1


def test_what_is_to_be_left_out_gets_no_percentages(place, card):
    searcher = beside(place, card)
    for query in ("not red", "red without white", "there isn't any red"):
        answer = searcher.search(query)
        assert answer.hits and answer.confidence is None
        assert {hit.probability for hit in answer} == {None}
        said = "".join(answer.verdict)
        assert said == "No percentages: these show what you asked to leave out."
        assert not answer.note and answer.to_dict()["verdict"] == said
    assert searcher.search("red").confidence is not None


def test_what_looks_like_a_video_has_no_percentages_to_ask_for(place, card):
    searcher = beside(place, card)
    for name, value in {"present": True, "min": 0.2, "prior": 0.9, "coverage": 0.8}.items():
        with pytest.raises(QueryError, match=f"--{name} is about percentages, .* leave it out"):
            searcher.like(searcher.search("red")[0].path, **{name: value})


@pytest.fixture(scope="module")
def streets(tmp_path_factory):
    """Folders of real clips, of which thirteen show a car, and of the same others alone."""
    source = DATA / "msrvtt"
    if not source.is_dir():
        pytest.skip("SURESHOT_DATA names no folder with msrvtt/")
    said: dict[str, list[str]] = {}
    for row in json.loads((source / "MSRVTT_data.json").read_text("utf-8"))["sentences"]:
        said.setdefault(row["video_id"], []).append(row["caption"])
    names = (source / "split_test_unshared.txt").read_text("utf-8").split()
    cars = {name: sum("car" in text.split() for text in said[name]) for name in names}
    traffic = re.compile(r"cars|vehicle|truck|driv|road|race|racing")
    others = [name for name in names if not cars[name] and not traffic.search(str(said[name]))]
    folder = tmp_path_factory.mktemp("streets")
    shown = [name for name in names if cars[name] >= 5][:13]
    for kind, chosen in (("none", others[:30]), ("cars", shown)):
        (folder / kind).mkdir()
        for name in chosen:
            (folder / kind / f"{name}.mp4").symlink_to(source / "videos" / f"{name}.mp4")
    sureshot.index(folder / "none", db=folder / "none.idx")
    shutil.copytree(folder / "none.idx", folder / "cars.idx")
    sureshot.index(folder / "cars", db=folder / "cars.idx")
    return folder


def test_many_right_videos_are_no_doubt(streets):
    many = open_index(streets / "cars.idx").search("car")
    assert many.verdict[0] == "Many of your videos may show this"
    assert min(hit.probability for hit in many[:5]) > 0.25
    none = open_index(streets / "none.idx").search("car")
    assert "Many" not in "".join(none.verdict)
    assert max(hit.probability for hit in none) < 0.25


def test_weak_hits_can_be_left_out(place, card):
    searcher = beside(place, card)
    whole = searcher.search("red", limit=20)
    cut = whole[0].probability
    answer = searcher.search("red", limit=20, min=cut)
    assert answer.hits == tuple(hit for hit in whole if hit.probability >= cut)
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
        (lambda text: text.replace('"prior": 0.5', '"prior": 0.6'), "was changed after"),
        (lambda text: text[:100], "not JSON"),
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
    return judged(card, answer(*hits), scores, about, coverage=0.9)


def test_copies_of_a_moment_are_no_rivals_of_it(place, card):
    moments, about = next(beside(place, card).rivals(["white and black blocks"]))
    names = [moment.path.name for moment in moments]
    assert len({"tape.mp4", "copy.mp4"} & set(names)) == 1
    assert about.videos > len(names)


def test_who_names_one_of_two_copies_means_the_one_that_is_shown_too(place, card):
    searcher = beside(place, card)
    (moment,) = [m for m in next(searcher.rivals(["white and black blocks"]))[0] if m.copies]
    for path in (moment.path, moment.copies[0].path):
        label = Label("white and black blocks", (JudgedMoment(path, True),), complete=True)
        known = _judged(label, *next(searcher.rivals([label.query])))
        shown = known.scores == moment.score
        assert known.right[shown].max() == 1 and known.present


def test_a_video_that_is_right_at_no_given_time_is_its_best_moment_and_a_time_is_any_piece():
    one, other = Path("/1.mp4"), Path("/2.mp4")

    def moment(path, start, pieces=()):
        return Moment(path, 0, [0], start, start + 2, 0.5, pieces=[*pieces])

    moments = [moment(one, 0), moment(other, 0), moment(one, 10, [moment(one, 30)])]
    for right, judged_as in (
        ([1, -1, -1], JudgedMoment(one, True)),
        ([-1, -1, 1], JudgedMoment(one, True, 30.5, 31)),
        ([-1, -1, 0], JudgedMoment(one, False, 11, 20)),
    ):
        label = Label("red", (judged_as,))
        assert _judged(label, moments, QueryContext()).right.tolist() == right


def test_a_hit_further_down_than_any_rival_has_the_percentage_of_the_last(card):
    shown = said(card, [0.9, 0.5, 0.2], 0.9, -0.5)
    assert shown[0].probability > shown[1].probability
    _, expected = card.p_right(np.array([[0.9, 0.5, 0.2]]), QueryContext(videos=9))
    assert [hit.probability for hit in shown] == pytest.approx(expected[0, [0, 2]])


def test_a_library_that_has_outgrown_the_card_is_told_of(card):
    assert said(card, [0.9], 0.9, videos=300).warnings == ()
    (warning,) = said(card, [0.9], 0.9, videos=301).warnings
    assert "301 moments indexed" in warning and "at most 300" in warning


def test_a_list_that_is_half_of_the_library_is_none(card):
    flat = said(card, [0.3] * 12, 0.3, videos=12)
    assert flat.confidence.plausible is None and flat[0].plausible is None
    unsure = replace(flat, status="several plausible", searched=20)
    assert "Too many fit about as well for a short list." in unsure.verdict[1]
    assert "Too many" not in replace(unsure, searched=19).verdict[1]


def test_the_card_of_the_index_comes_before_that_of_the_model(place, card, tmp_path):
    print_of, model = card.valid_for.model, tmp_path / "model"
    model.mkdir()
    assert find_card(str(place), str(model), print_of, None) == (None, ())
    other = replace(card, valid_for=replace(card.valid_for, dataset="the model's own"))
    (model / CARD).write_text(other.to_json(), "utf-8")
    assert find_card(str(place), str(model), print_of, None) == (other, ())
    beside(place, card)
    assert find_card(str(place), str(model), print_of, None) == (card, ())


def test_a_reference_card_of_this_user_serves_a_model_without_one(place, card, monkeypatch):
    """The name of a model of a hub is no folder, whatever lies below the current one."""
    monkeypatch.setenv("XDG_DATA_HOME", str(place / "data"))
    print_of = card.valid_for.model
    kept = reference_card(print_of)
    kept.parent.mkdir(parents=True, exist_ok=True)
    kept.write_text(card.to_json(), "utf-8")
    below = place / "openai" / "clip-b" / CARD
    below.parent.mkdir(parents=True)
    below.write_text("of another model")
    monkeypatch.chdir(place)
    assert find_card(str(place), "openai/clip-b", print_of, None) == (card, ())
    kept.write_text("damaged", "utf-8")
    found, wrong = find_card(str(place), "openai/clip-b", print_of, None)
    assert found is None and "not JSON" in wrong[0]


def test_a_card_of_other_footage_says_so_and_calls_nothing_sure_until_something_is_judged(
    place, card
):
    """Also where it is next to an index."""
    valid = replace(card.valid_for, source="reference", photos=True)
    sure = said(replace(card, valid_for=valid), [0.9, 0.1, 0.1], 0.9)
    assert sure.confidence.right > 0.8 and sure.present > 0.8
    assert (sure.status, sure.answerable) == ("several plausible", "unknown")
    found = beside(place, replace(card, valid_for=valid)).search("red")
    assert not found.confidence.personal and "own judgements" not in found.note
    assert found.note.startswith("Percentages were learned on photographs; on yours")
    own = Personal(queries=5, absent=0, right=0.5, before=0.5, after=0.5)
    moved = said(replace(card, valid_for=valid, personal=own), [0.9, 0.1, 0.1], 0.9)
    assert (moved.status, moved.answerable) == ("confident", "yes")
    assert moved.confidence.personal and not moved.confidence.reference


def test_a_damaged_card_of_the_index_is_reported_where_the_model_has_one(
    place, card, tmp_path, monkeypatch
):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / CARD).write_text(card.to_json(), "utf-8")
    monkeypatch.setattr("sureshot.models.hub_bank.home_of", lambda model: tmp_path / "model")
    (place / CARD).write_text(card.to_json()[:100], "utf-8")
    answer = open_index(place).search("red")
    assert answer.confidence is not None and "a simulation" in answer.confidence.valid_for
    assert any("not JSON" in warning for warning in answer.warnings)


def test_the_bundled_model_comes_with_a_card_of_its_own(tmp_path):
    fingerprint = load_encoder("bundled").fingerprint
    bank = bank_of("bundled", fingerprint)
    card, warnings = find_card(str(tmp_path), "bundled", fingerprint, bank)
    assert warnings == () and card is not None
    assert "MSR-VTT" in card.valid_for.dataset and card.may_be_sure
    assert (card.valid_for.smallest, card.valid_for.largest) == (10, 1000)


@pytest.mark.parametrize(("count", "still"), [(1, False), (2, False), (3, False), (1, True)])
def test_of_very_few_moments_one_is_right_if_any_is(tmp_path, count, still):
    """No percentage is left for a later one that is not there."""
    (tmp_path / "videos").mkdir()
    for number, colour in enumerate(["red", "blue", "green"][:count]):
        coloured(tmp_path / f"videos/{number}.mp4", [colour], seconds=2, rate=5)
    if still:  # minutes of one picture, in windows that are one moment
        film(tmp_path / "videos/0.mp4", [np.full((48, 64, 3), 200, np.uint8)] * 400, rate=1)
    sureshot.index(tmp_path / "videos", db=tmp_path / "db", workers=1)
    for query in ("a red wall", "a dog on a beach", "a purple wall"):
        answer = open_index(tmp_path / "db").search(query)
        assert answer.searched > 10 or not still
        shares = [hit.probability for hit in answer]
        assert len(shares) == count and sum(shares) >= answer.present - 1e-9
        assert shares == sorted(shares, reverse=True) and shares[0] <= answer.present + 1e-9
        later = "that only a later one is" in str(answer.verdict)
        # Rounded so that three percentages come to 100, a third of one may be shown as 1.
        assert not later or (count > 1 and sum(shares[1:]) > 0.003)
