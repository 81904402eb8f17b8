"""Cards from judged queries of a real index, compared with the fit of scores made by hand."""

from dataclasses import replace

import numpy as np
import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.library.calibration import calibrate, card_of_index
from sureshot.library.labels import Label, append
from sureshot.library.search import open_index
from sureshot.trust.fitting import fit_card
from tests.judged import judged
from tests.small_library import index


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return judged(tmp_path_factory.mktemp("judged"))


@pytest.fixture(scope="module")
def searcher(place):
    return open_index(place.db)


def written(tmp_path, labels):
    for label in labels:
        append(tmp_path / "labels", label)
    return tmp_path / "labels"


def calibrated(searcher, file, **asked):
    return calibrate(file, db=searcher, save=False, **asked)


@pytest.fixture(scope="module")
def searched(place, searcher):
    """What each query scores, by path, best first."""
    queries = [label.query for label in place.labels]
    every = searcher.all_video_scores(queries)
    order = np.argsort(-every.scores, axis=1)
    return {
        query: {every.paths[column]: float(row[column]) for column in best}
        for query, row, best in zip(queries, every.scores, order, strict=True)
    }


def by_hand(searcher, searched, labels, **known):
    """The card of these scores."""
    paths = sorted(record.path for record in searcher.store.videos())
    scores = np.array([[searched[label.query][path] for path in paths] for label in labels])
    relevant = np.array([[path in label.relevant for path in paths] for label in labels])
    about = np.array([paths.index(label.relevant[0]) for label in labels])
    model = searcher.encoder.fingerprint
    return fit_card(scores, relevant, about, model=model, **known), scores


def test_an_index_is_calibrated_on_the_scores_that_a_search_gives(place, searcher, searched):
    told = []
    done = calibrated(
        searcher, place.file, date="2026-11-21", told=lambda done, total: told.append((done, total))
    )
    known = {"dataset": "judged.jsonl", "date": "2026-11-21"}
    expected, scores = by_hand(searcher, searched, place.labels, **known)
    for label in place.labels[::10]:
        alone = searcher.video_scores(label.query)
        scored = dict(zip(alone.paths, alone.scores.tolist(), strict=True))
        assert scored == pytest.approx(searched[label.query], abs=1e-5)
    assert done.card.valid_for == expected.valid_for
    assert not done.card.refused
    np.testing.assert_allclose(done.card.p_top1(scores), expected.p_top1(scores), atol=1e-3)
    assert (done.gallery, done.absent, done.not_found, done.left_out) == (60, 0, 0, 0)
    assert told[-1] == (120, 120)


def test_several_right_videos_are_all_right_and_the_first_is_what_it_is_about(
    place, searcher, searched, tmp_path
):
    # Of every other query the first hit is right, too.
    labels = [
        replace(label, relevant=(*label.relevant, next(iter(searched[label.query]))))
        if number % 2
        else label
        for number, label in enumerate(place.labels)
    ]
    done = calibrated(searcher, written(tmp_path, labels), date="2026-11-21")
    expected, _ = by_hand(searcher, searched, labels, dataset="labels", date="2026-11-21")
    assert done.card.valid_for == expected.valid_for
    assert done.card.quality.top1.share == expected.quality.top1.share
    alone = calibrated(searcher, place.file).card.quality
    assert done.card.quality.top1.share > alone.top1.share + 0.1


def test_queries_without_a_right_video_say_how_often_that_happens(place, searcher, tmp_path):
    more = [Label(f"red {n}", ()) for n in range(30)]
    more += [Label(f"blue {n}", (), place.labels[0].relevant) for n in range(20)]
    done = calibrated(searcher, written(tmp_path, [*place.labels, *more]))
    assert (done.absent, done.not_found) == (30, 20)
    assert done.card.valid_for.absent == pytest.approx(50 / 200)
    assert done.card.valid_for.queries == 150
    sure = calibrated(searcher, place.file)
    assert done.card.quality.top1.share < sure.card.quality.top1.share - 0.05


def test_queries_about_other_videos_are_left_out_if_asked_for(place, searcher, tmp_path):
    labels = [*place.labels, Label("a swan", (place.labels[0].relevant[0].with_name("swan.mp4"),))]
    file = written(tmp_path, labels)
    with pytest.raises(SureshotError, match=r"1 video that is not in the index: /films/swan.mp4"):
        calibrated(searcher, file)
    done = calibrated(searcher, file, lenient=True)
    assert (done.left_out, done.card.valid_for.queries) == (1, 150)


def test_labels_that_tell_nothing_are_refused(place, searcher, searched, tmp_path):
    rng = np.random.default_rng(0)
    labels = []
    for label in place.labels:
        paths = list(searched[label.query])
        # Right by the toss of a coin, however sure the scores look.
        labels.append(replace(label, relevant=(paths[0 if rng.random() < 0.5 else 40],)))
    done = calibrated(searcher, written(tmp_path, labels))
    assert "does not tell right from wrong" in done.card.refused
    assert done.to_dict()["refused"] == done.card.refused


@pytest.mark.parametrize(
    "labels, said",
    [
        (lambda all: all[:30], "Only 30 queries have a right video; 50 are needed"),
        (lambda all: [replace(label, relevant=()) for label in all], "None of the 150 queries"),
        (
            lambda all: [replace(label, relevant=all[0].relevant) for label in all],
            "Only 1 video is right for a query; 20 are needed",
        ),
    ],
    ids=["few", "absent", "one video"],
)
def test_too_few_labels_are_said(place, searcher, tmp_path, labels, said):
    with pytest.raises(SureshotError, match=said):
        calibrated(searcher, written(tmp_path, labels(place.labels)))


def test_a_gallery_of_one_video_cannot_be_calibrated(tmp_path, library):
    index(str(tmp_path / "db"), library.videos / "red.mp4")
    file = written(tmp_path, [Label(f"red {n}", (library.videos / "red.mp4",)) for n in range(60)])
    with pytest.raises(SureshotError, match="20 are needed"):
        calibrated(open_index(tmp_path / "db"), file)


def test_percentages_begin_at_once_where_the_index_is_open(tmp_path):
    own = judged(tmp_path)
    searcher = open_index(own.db)
    query = own.labels[0].query
    assert searcher.search(query).confidence is None
    assert calibrate(own.file, db=searcher, save=False).file is None
    assert searcher.search(query).confidence is None
    done = calibrate(own.file, db=searcher)
    assert done.file == own.db / "trust.json"
    assert searcher.search(query).confidence is not None
    assert open_index(own.db).search(query).confidence == searcher.search(query).confidence


def test_a_date_that_is_none_is_refused_before_anything_is_read(tmp_path):
    with pytest.raises(ArgumentError, match=r"`date='21.11.26'` is no date; write it as 2026-"):
        calibrate(tmp_path / "none", db=tmp_path, date="21.11.26")


# --- where a card lies, and what no card is made on -----------------------------------------------


def test_the_card_of_an_index_lies_in_it(place, searcher):
    assert card_of_index(searcher) == place.db / "trust.json"


def test_an_index_in_object_storage_holds_no_card(place, searcher, monkeypatch):
    monkeypatch.setattr(searcher.store, "location", "s3://bucket/films")
    with pytest.raises(SureshotError, match=r"s3://bucket/films is in object storage.*`to=`"):
        card_of_index(searcher)
