"""What a search scores exactly: enough for the hits asked for, and never all of a large library."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.library import ranking
from sureshot.library import ranking as candidates_module
from sureshot.library.ranking import CANDIDATES, Candidates, Request
from sureshot.models.similarity import MeanFrames
from sureshot.store.index import Store
from sureshot.store.rows import EncodedWindow
from tests.encoded import make_store, random_windows, record

LOOKS = MeanFrames()


def vectors(count: int, seed: int = 0) -> np.ndarray:
    drawn = np.random.default_rng(seed).standard_normal((count, 24)).astype(np.float32)
    return drawn / np.linalg.norm(drawn, axis=1, keepdims=True)


def test_each_of_many_queries_has_the_windows_that_it_has_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(candidates_module, "IN_MEMORY", 0)
    store = make_store(tmp_path)
    for number in range(5):
        store.write(record(f"/{number}.mp4"), random_windows(60, seed=number))
    asked = Request(limit=3, per_video=None, merge_copies=True)
    queries = vectors(4)
    candidates = Candidates(store, LOOKS)
    for wanted in (20, 1000):
        each = candidates.near_each([query[None] for query in queries], wanted, asked)
        for query, many in zip(queries, each, strict=True):
            alone = candidates.near_any(query[None], wanted, asked)
            assert sorted(many.windows.keys) == sorted(alone.windows.keys)
            assert sorted(many.scores.tolist()) == pytest.approx(sorted(alone.scores.tolist()))
            assert many.whole == alone.whole == (wanted == 1000)


def test_of_a_small_index_all_windows_are_looked_at_once_until_it_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path)
    store.write(record("/a.mp4"), random_windows(5))
    candidates, asked = (
        Candidates(store, LOOKS),
        Request(limit=3, per_video=None, merge_copies=True),
    )
    one, other = candidates.near_each([query[None] for query in vectors(2)], 20, asked)
    (again,) = candidates.near_each([vectors(1)], 20, asked)
    assert one.looked is other.looked is again.looked
    store.write(record("/b.mp4"), random_windows(5, seed=1))
    (more,) = candidates.near_each([vectors(1)], 20, asked)
    assert len(more.windows.keys) == 10 and len(one.windows.keys) == 5
    assert more.whole and one.whole  # though they are not fewer than were wanted
    monkeypatch.setattr(candidates_module, "IN_MEMORY", 9)
    (few,) = candidates.near_each([vectors(1)], 7, asked)
    assert len(few.windows.keys) == 7


def test_an_empty_index_has_no_windows_for_any_query(tmp_path: Path) -> None:
    asked = Request(limit=3, per_video=None, merge_copies=True)
    candidates = Candidates(make_store(tmp_path), LOOKS)
    near = candidates.near_each([query[None] for query in vectors(2)], 20, asked)
    assert [(part.windows.keys, part.whole) for part in near] == [([], True)] * 2


def copies(store: Store, videos: int, each: int) -> None:
    """Videos that all show the same picture, and look more or less alike to the encoder."""
    picture = np.random.default_rng(1).integers(0, 256, (1, 288), np.uint8)
    for number in range(videos):
        frames = vectors(each, seed=number)
        windows = [
            EncodedWindow(
                start=10.0 * at,
                end=10.0 * at + 5,
                times=np.array([10.0 * at]),
                signatures=picture,
                frames=frames[at : at + 1],
            )
            for at in range(each)
        ]
        store.write(record(f"/{number}.mp4"), windows)


def test_a_library_of_copies_is_not_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ranking, "_LOOKED_AT", 320)
    store = make_store(tmp_path)
    copies(store, 8, 100)
    read = []
    nearest = Store.nearest

    def noted(self, vector, k, *args, **more):
        read.append(k)
        return nearest(self, vector, k, *args, **more)

    monkeypatch.setattr(Store, "nearest", noted)
    asked = Request(limit=10, per_video=1, merge_copies=True)
    (query,) = vectors(1)
    candidates = Candidates(store, LOOKS)
    near = candidates.near_any(query[None], CANDIDATES, asked)
    hits, notes = candidates.hits(asked, near)
    assert len(hits) == 1 and len(hits[0].copies) == 7
    assert read == [200, 320]
    assert "1 hit of 10 asked for" in notes[0]
