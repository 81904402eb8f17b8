"""The best window of each video: compared with a loop over all windows of all videos."""

import numpy as np
import pytest

from sureshot.errors import QueryError
from sureshot.library import videos as gallery
from sureshot.library.search import open_index
from tests.clips import coloured
from tests.small_library import index

QUERIES = ["red", "something yellow", "a white wall", "blue sky"]


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def by_loop(searcher, query):
    """Best score of each video, one window after the other."""
    features = searcher.encoder.encode_texts([query])
    best = {}
    for record in searcher.store.videos():
        stored = searcher.store.windows_of(record.path)
        for frames, mask in zip(stored.frames, stored.mask, strict=True):
            mean = frames[mask].mean(0)
            score = float(features.sentence[0] @ mean / np.linalg.norm(mean))
            best[record.path] = max(score, best.get(record.path, -9.0))
    return best


@pytest.mark.parametrize("query", QUERIES)
def test_each_video_has_the_score_of_its_best_window(searcher, query):
    wanted = by_loop(searcher, query)
    found = searcher.video_scores(query)
    assert dict(zip(found.paths, found.scores, strict=True)) == pytest.approx(wanted, abs=1e-5)
    assert (found.windows, found.videos) == (searcher.store.count(), 5)
    assert list(found.scores) == sorted(found.scores, reverse=True)


def test_all_queries_at_once_are_each_alone(searcher):
    found = searcher.all_video_scores(QUERIES)
    assert found.paths == sorted(record.path for record in searcher.store.videos())
    assert found.windows == searcher.store.count()
    for row, query in zip(found.scores, QUERIES, strict=True):
        assert dict(zip(found.paths, row, strict=True)) == pytest.approx(
            by_loop(searcher, query), abs=1e-5
        )


@pytest.mark.parametrize("windows", [1, 5, 7])
def test_the_parts_that_are_read_at_once_do_not_count(searcher, monkeypatch, windows):
    whole = searcher.all_video_scores(QUERIES)
    told = []
    monkeypatch.setattr(gallery, "_AT_ONCE", windows)
    monkeypatch.setattr("sureshot.library.search._TEXTS", 3)
    parts = searcher.all_video_scores(QUERIES, told=lambda done, total: told.append((done, total)))
    assert parts.paths == whole.paths
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-6)
    assert len(told) > 2 and told[-1] == (whole.windows, whole.windows)


def test_a_long_video_does_not_hide_the_others(searcher, monkeypatch):
    monkeypatch.setattr(gallery, "_FIRST", 2)
    first = searcher.store.nearest(searcher.encoder.encode_texts(["yellow"]).sentence[0], 2)
    assert len(set(first.paths)) == 1
    assert len(searcher.video_scores("yellow").paths) == 5


def test_no_more_windows_are_read_than_it_takes(searcher, monkeypatch):
    asked = []
    nearest = searcher.store.nearest_keys
    monkeypatch.setattr(gallery, "_FIRST", 2)
    monkeypatch.setattr(
        searcher.store, "nearest_keys", lambda v, k, under: asked.append(k) or nearest(v, k, under)
    )
    searcher.video_scores("yellow", most=1)
    assert asked == [2]
    searcher.video_scores("yellow", most=3)
    assert asked[1:] in ([2, 8], [2, 8, 32])
    asked.clear()
    monkeypatch.setattr(gallery, "_LAST", 4)
    searcher.video_scores("yellow")
    assert asked == [2, 8]


def test_of_a_long_video_the_nearest_windows_are_scored(searcher, library, monkeypatch):
    long = library.videos / "long" / "yellow.mp4"
    windows = len(searcher.store.windows_of(long).keys)
    assert windows > 6
    scored = []
    with_keys = searcher.store.windows_with
    monkeypatch.setattr(
        searcher.store, "windows_with", lambda keys: scored.append(keys) or with_keys(keys)
    )
    found = searcher.video_scores("magenta", under=long)
    assert len(scored[0]) == 4
    assert found.windows == windows
    assert found.scores[0] == pytest.approx(by_loop(searcher, "magenta")[long], abs=1e-5)


def test_the_best_so_many_are_kept(searcher):
    whole, some = searcher.video_scores("red"), searcher.video_scores("red", most=2)
    assert some.paths == whole.paths[:2]
    np.testing.assert_array_equal(some.scores, whole.scores[:2])
    assert (some.windows, some.videos) == (whole.windows, whole.videos)


def test_a_folder_is_a_gallery_of_its_own(searcher, library):
    found = searcher.video_scores("white", under=library.videos / "tapes")
    assert {path.name for path in found.paths} == {"tape.mp4", "copy.mp4"}
    assert found.videos == 2
    assert found.windows == searcher.store.count(library.videos / "tapes")
    nothing = searcher.video_scores("white", under=library.videos / "none")
    assert (len(nothing.scores), nothing.paths, nothing.videos) == (0, [], 0)


def test_equal_scores_are_in_the_order_of_paths(tmp_path):
    (tmp_path / "v").mkdir()
    for name in "cab":
        coloured(tmp_path / "v" / f"{name}.mp4", ["red"], seconds=1)
    index(str(tmp_path / "db"), tmp_path / "v")
    found = open_index(tmp_path / "db").video_scores("red")
    assert [path.stem for path in found.paths] == ["a", "b", "c"]


def test_a_video_that_failed_is_none_of_the_gallery(tmp_path):
    (tmp_path / "v").mkdir()
    coloured(tmp_path / "v" / "a.mp4", ["red"], seconds=1)
    (tmp_path / "v" / "b.mp4").write_bytes(b"no video")
    index(str(tmp_path / "db"), tmp_path / "v")
    searcher = open_index(tmp_path / "db")
    assert searcher.video_scores("red").videos == 1
    assert [path.stem for path in searcher.all_video_scores(["red"]).paths] == ["a"]


def test_an_empty_index_is_an_empty_gallery(tmp_path):
    (tmp_path / "v").mkdir()
    index(str(tmp_path / "db"), tmp_path / "v")
    searcher = open_index(tmp_path / "db")
    assert searcher.video_scores("red").paths == []
    assert searcher.all_video_scores(["red", "blue"]).scores.shape == (2, 0)


def test_there_must_be_something_to_score(searcher):
    with pytest.raises(QueryError, match="no query to score"):
        searcher.all_video_scores([])
    with pytest.raises(QueryError, match="query is empty"):
        searcher.all_video_scores(["red", " "])
    with pytest.raises(QueryError, match="query is empty"):
        searcher.video_scores("")
