"""Scores of all windows: compared with a loop over them."""

import numpy as np
import pytest

from sureshot.errors import QueryError
from sureshot.library import ranking as gallery
from sureshot.library.search import open_index

QUERIES = ["red", "something yellow", "a white wall", "blue sky"]


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def by_loop(searcher, query):
    """Score, video and start of each window, one after the other."""
    sentence = searcher.encoder.encode_texts([query]).sentence[0]
    for record in searcher.store.videos():
        stored = searcher.store.windows_of(record.path)
        rows = zip(stored.frames, stored.mask, stored.start.tolist(), strict=True)
        for frames, mask, start in rows:
            mean = frames[mask].mean(0)
            yield (record.path, start), float(sentence @ mean / np.linalg.norm(mean))


def test_all_queries_at_once_are_each_alone(searcher):
    found = searcher.all_scores(QUERIES)
    assert found.scores.shape == (4, searcher.store.count())
    places = list(zip(found.paths, found.start.tolist(), strict=True))
    assert (found.end > found.start).all()
    for row, query in zip(found.scores, QUERIES, strict=True):
        expected = dict(by_loop(searcher, query))
        assert dict(zip(places, row, strict=True)) == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("windows", [1, 5, 7])
def test_the_parts_that_are_read_at_once_do_not_count(searcher, monkeypatch, windows):
    whole = searcher.all_scores(QUERIES)
    told = []
    monkeypatch.setattr(gallery, "_AT_ONCE", windows)
    monkeypatch.setattr("sureshot.library.search._TEXTS", 3)
    parts = searcher.all_scores(QUERIES, told=lambda done, total: told.append((done, total)))
    assert parts.paths == whole.paths
    np.testing.assert_allclose(parts.scores, whole.scores, atol=1e-6)
    total = searcher.store.count()
    assert told[-1] == (total, total) and len(told) > 1


def test_no_query_and_empty_ones_are_refused(searcher):
    with pytest.raises(QueryError, match="no query"):
        searcher.all_scores([])
    with pytest.raises(QueryError):
        searcher.all_scores(["red", " "])
