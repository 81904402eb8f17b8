"""Cards from judged queries of a real index, compared with the fit of scores made by hand."""

import shutil
from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.library.calibration import calibrate, card_of_index, forget
from sureshot.library.labels import (
    JudgedMoment,
    Label,
    append,
    given_labels_of_index,
    labels_of_index,
)
from sureshot.library.ranking import Candidates
from sureshot.library.search import open_index
from tests.heard import Heard
from tests.judged import judged, label


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def searcher(place):
    return open_index(place.db)


@pytest.fixture
def copied(place, tmp_path):
    """The same index in a place of its own."""
    return shutil.copytree(place.db, tmp_path / "db")


def written(file, labels):
    for one in labels:
        append(file, one)
    return file


def calibrated(searcher, file, **asked):
    return calibrate(file, db=searcher, save=False, **asked)


def about(one, *paths):
    """A label of other right videos."""
    return label(one.query, paths, complete=True)


def test_a_model_without_percentages_learns_them_from_fifty_judgements(place, searcher, tmp_path):
    """They are true of other queries, also where they are far from what holds for most models."""
    heard = Heard()
    done = calibrated(searcher, place.file, date="2026-11-21", progress=heard)
    assert (done.gallery, done.absent, done.not_found, done.left_out) == (60, 0, 0, 0)
    assert heard.updates[-1] == ("scored", 150, 150)
    valid = done.card.valid_for
    assert (valid.queries, valid.source, valid.dataset) == (150, "judgements", "judged.jsonl")
    half = calibrated(searcher, written(tmp_path / "half", place.labels[::2])).card
    said, right = [], []
    for one in place.labels[1::2]:
        moments, about = next(searcher.rivals([one.query]))
        scores = np.array([[moment.score for moment in moments]], float)
        said.append(half.p_right(scores, about, results=1, prior=1)[1][0, 0])
        right.append(moments[0].path in one.relevant)
    assert np.mean(said) == pytest.approx(np.mean(right), abs=0.12)


def test_many_judged_queries_are_searched_from_few_passes_over_the_index(
    place, searcher, monkeypatch
):
    passes, near_each = [], Candidates.near_each

    def counted(candidates, queries):
        passes.append(len(queries))
        return near_each(candidates, queries)

    monkeypatch.setattr(Candidates, "near_each", counted)
    calibrated(searcher, place.file)
    assert passes == [16] * 9 + [6]
    texts = [one.query for one in place.labels[:20]]
    for text, (moments, about) in zip(texts, searcher.rivals(texts), strict=True):
        alone, also = next(searcher.rivals([text]))
        assert [moment.path for moment in moments] == [moment.path for moment in alone]
        assert [m.score for m in moments] == pytest.approx([m.score for m in alone], abs=1e-6)
        assert (about.videos, about.words.tolist()) == (also.videos, also.words.tolist())


def test_searches_that_found_nothing_lower_the_percentages_of_a_model_without_any(
    place, searcher, tmp_path
):
    found = calibrated(searcher, written(tmp_path / "found", place.labels[:50])).card
    lost = []
    for one in place.labels[50:90]:
        shown = next(searcher.rivals([one.query]))[0][:3]
        lost.append(label(one.query, [], [moment.path for moment in shown]))
    both = calibrated(searcher, written(tmp_path / "both", [*place.labels[:50], *lost])).card
    moments, about = next(searcher.rivals([place.labels[50].query]))
    scores = np.array([[moment.score for moment in moments]], float)
    assert both.p_first(scores, about)[0] < found.p_first(scores, about)[0] - 0.1


@pytest.mark.parametrize(
    "labels, said",
    [
        (lambda all: all[:30], "30 judged queries; 50 are needed.*--reference FOLDER"),
        (
            lambda all: [about(one) for one in all],
            "None of the 150 judged queries has a right video",
        ),
    ],
    ids=["few", "absent"],
)
def test_too_few_labels_are_said(place, searcher, tmp_path, labels, said):
    with pytest.raises(SureshotError, match=said):
        calibrated(searcher, written(tmp_path / "labels", labels(place.labels)))


def test_percentages_begin_at_once_where_the_index_is_open_and_can_be_forgotten(place, copied):
    searcher = open_index(copied)
    query = place.labels[0].query
    assert not forget(searcher)
    assert calibrate(place.file, db=searcher, save=False).file is None
    assert searcher.search(query).confidence is None
    done = calibrate(place.file, db=searcher)
    assert done.file == copied / "trust.json"
    assert searcher.search(query).confidence is not None
    assert open_index(copied).search(query).confidence == searcher.search(query).confidence
    assert forget(searcher)
    assert searcher.search(query).confidence is None


def test_an_open_index_notices_a_card_that_another_process_made_or_forgot(place, copied):
    searcher, query = open_index(copied), place.labels[0].query
    assert searcher.search(query).confidence is None
    calibrate(place.file, db=copied)
    assert searcher.search(query).confidence is not None
    assert searcher.learned_from().startswith("150 judgements of your own")
    calibrate(place.file, db=copied, date="2026-01-02")
    assert "2026-01-02" in searcher.search(query).confidence.valid_for
    forget(open_index(copied))
    assert searcher.search(query).confidence is None
    assert searcher.learned_from() == "not calibrated"


def test_an_open_index_in_storage_forgets_its_card(place, copied, monkeypatch):
    monkeypatch.setattr("sureshot.library.confidence.card_stamp", lambda index: ())  # as there
    searcher = open_index(copied)
    calibrate(place.file, db=searcher)
    assert searcher.learned_from().startswith("150 judgements of your own")
    assert forget(searcher) and searcher.learned_from() == "not calibrated"


def test_a_date_that_is_none_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ArgumentError, match=r"--date 21.11.26 is not a date; write it as 2026-"):
        calibrate(tmp_path / "none", db=tmp_path, date="21.11.26")


def test_an_index_in_s3_holds_a_card_and_one_in_other_storages_none(searcher, monkeypatch):
    monkeypatch.setattr(searcher.store, "location", "s3://bucket/films")
    assert str(card_of_index(searcher)) == "s3://bucket/films/trust.json"
    monkeypatch.setattr(searcher.store, "location", "gs://bucket/films")
    with pytest.raises(SureshotError, match=r"gs://bucket/films is in a storage that.*--to"):
        card_of_index(searcher)


# --- a few judgements on top of the card of the model ---------------------------------------------


@pytest.fixture(scope="module")
def card(place, searcher):
    return calibrated(searcher, place.file).card


@pytest.fixture
def carded(card, monkeypatch):
    """The same index, whose model brings a card along."""
    made = "sureshot.library.calibration.find_card"
    monkeypatch.setattr(made, lambda index, name, fingerprint, bank: (card, ()))
    return card


def test_five_judgements_move_the_card_of_the_model(searcher, carded, place, tmp_path):
    with pytest.raises(SureshotError, match="4 judged queries; 5 are needed"):
        calibrated(searcher, written(tmp_path / "four", place.labels[:4]))
    done = calibrated(searcher, written(tmp_path / "five", place.labels[:5]))
    own = done.card.personal
    assert (own.queries, own.absent) == (5, 0)
    assert done.card.valid_for == carded.valid_for
    assert min(own.before, own.right) <= own.after <= max(own.before, own.right)
    assert repr(done).startswith("Calibrated on 5 judged queries (five).")
    assert done.to_dict()["personal"]["queries"] == 5


def test_what_is_judged_counts_by_its_times_too(searcher, carded, place, tmp_path):
    """The first hit is said to be wrong in its time, though its video is right."""
    labels = []
    for one in place.labels[:12]:
        first = next(searcher.rivals([one.query]))[0][0]
        wrong = JudgedMoment(first.path, False, first.start, first.end)
        labels.append(Label(one.query, (wrong,)))
    own = calibrated(searcher, written(tmp_path / "labels", labels)).card.personal
    assert own.right == 0 and own.after < own.before


def test_hits_by_words_say_nothing_about_pictures(searcher, carded, place, tmp_path):
    """The words of twelve queries are right, whose best pictures are wrong; twelve are neither."""
    labels = []
    for number, one in enumerate(place.labels[:24]):
        first = next(searcher.rivals([one.query]))[0][0]
        said = JudgedMoment(first.path, number < 12, 0.0, 1.0, source="subtitles")
        seen = JudgedMoment(first.path, False, first.start, first.end)
        labels.append(Label(one.query, (said, seen) if number < 12 else (said,)))
    with pytest.raises(SureshotError, match="0 judged queries besides 24 about words"):
        calibrated(searcher, written(tmp_path / "labels", labels))
    others = place.labels[24:30]
    alone = calibrated(searcher, written(tmp_path / "others", others)).card
    assert alone.personal.queries == 6 and alone != carded
    both = calibrated(searcher, written(tmp_path / "both", [*labels, *others])).card
    assert both.personal == alone.personal and both.first == alone.first


def test_searches_for_what_is_not_here_lower_the_prior(searcher, carded, place, tmp_path):
    labels = [label(f"red {n}", absent=True) for n in range(12)]
    done = calibrated(searcher, written(tmp_path / "labels", labels))
    assert done.card.personal.absent == 12 and done.card.prior == pytest.approx(50 / 112)
    assert done.card.first == carded.first
    assert "45% of searches are for what is here" in repr(done)
    # A list of right answers is no sample of searches, whether they are here or not.
    for listed in ([label(one.query, complete=True) for one in labels], place.labels[:40]):
        complete = [replace(one, complete=True) for one in listed]
        done = calibrated(searcher, written(tmp_path / f"list of {len(listed)}", complete))
        assert done.card.prior == 0.5


def test_labels_from_elsewhere_and_judgements_count_together(carded, place, copied, tmp_path):
    searcher = open_index(copied)
    done = calibrate(written(tmp_path / "labels", place.labels[:12]), db=searcher)
    assert done.card.personal.queries == 12 and done.labels == "labels"
    # A few clicks, which alone would be too few.
    written(labels_of_index(str(copied)), place.labels[12:16])
    done = calibrate(db=searcher)
    assert (done.card.personal.queries, done.labels) == (16, "judged.jsonl and labelled.jsonl")
    done = calibrate(written(tmp_path / "again", place.labels[:10]), db=searcher)
    assert (done.card.personal.queries, done.labels) == (14, "again and judged.jsonl")
    assert forget(searcher) and not given_labels_of_index(str(copied)).exists()
    labels_of_index(str(copied)).write_text("".join(one.to_line() for one in place.labels[:3]))
    with pytest.raises(SureshotError, match="5 are needed"):
        calibrate(db=searcher)


def test_a_card_for_elsewhere_takes_nothing_from_the_index(carded, place, copied, tmp_path):
    append(labels_of_index(str(copied)), place.labels[20])
    file = written(tmp_path / "labels", place.labels[:12])
    done = calibrate(file, db=copied, to=tmp_path / "card.json")
    assert done.card.personal.queries == 12 and not given_labels_of_index(str(copied)).exists()


def test_a_later_click_outweighs_a_label_from_elsewhere(carded, place, searcher, copied, tmp_path):
    some = place.labels[:12]
    before = calibrate(written(tmp_path / "labels", some), db=copied).card
    found = next(one for one in some if searcher.search(one.query, limit=1)[0].path in one.relevant)
    append(labels_of_index(str(copied)), label(found.query, [], found.relevant))
    after = calibrate(db=copied).card
    # The only right video is none any more, so nothing right is known for that query.
    assert after.personal.right < before.personal.right


def test_queries_about_other_videos_are_left_out_if_asked_for(place, searcher, tmp_path):
    swan = place.labels[0].relevant[0].with_name("swan.mp4")
    file = written(tmp_path / "labels", [*place.labels, label("a swan", [swan])])
    with pytest.raises(SureshotError, match=r"1 video that is not in the index: /films/swan.mp4"):
        calibrated(searcher, file)
    done = calibrated(searcher, file, skip_unknown=True)
    assert (done.left_out, done.card.valid_for.queries) == (1, 150)
