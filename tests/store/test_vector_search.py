"""A search finds what comparing all would, in sound windows only; the index of vectors may grow."""

import signal
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pytest

from sureshot.errors import StoreError
from sureshot.paths import video_id
from sureshot.store import vector_search
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults, index_vectors
from sureshot.store.tables import Tables
from sureshot.store.vector_search import VideoSet, add_segment, due, said
from tests.encoded import make_store, pointing, random_windows, record, spoil
from tests.paths import SOURCE

QUERY = np.eye(24, dtype=np.float32)[0]
KILLED = """
import os, signal, sys, lance
from sureshot.store import vector_search
from sureshot.store.maintenance import index_vectors
from sureshot.store.tables import Tables
vector_search.SCANNED = 100
def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before":
    lance.LanceDataset.commit_existing_index_segments = killed
else:
    vector_search.make_segment = killed
index_vectors(Tables(sys.argv[1]))
"""


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


@pytest.fixture
def filled(store: Store) -> Store:
    """An index of four videos with three windows each."""
    videos = [
        store.stage(record(f"/{number}.mp4"), random_windows(3, seed=number)) for number in range(4)
    ]
    store.commit(videos)
    return store


def drawn(count: int, seed: int) -> np.ndarray:
    """Unit vectors around forty centres."""
    centres = np.random.default_rng(7).standard_normal((40, 24))
    rng = np.random.default_rng(seed)
    vectors = centres[rng.integers(0, 40, count)] + 0.7 * rng.standard_normal((count, 24))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


def windows_table(store: Store) -> lance.LanceDataset:
    return lance.dataset(f"{store.location}/windows.lance")


def parts(store: Store) -> list[int]:
    """How many windows each segment covers, the largest first."""
    table = windows_table(store)
    rows = {f.fragment_id: f.count_rows() for f in table.get_fragments()}
    segments = [part for index in table.describe_indices() for part in index.segments]
    found = (sum(rows[n] for n in part.fragment_ids if n in rows) for part in segments)
    return sorted(found, reverse=True)


def recall(store: Store, queries: np.ndarray) -> float:
    """Share of the exact ten nearest that a search has among its 200 candidates."""
    rows = windows_table(store).to_table(columns=["key", "vector"])
    matrix = np.array(rows["vector"].to_pylist(), np.float32)[:, :24]
    keys = np.array(rows["key"].to_pylist())
    shares = []
    for query in queries:
        best = set(keys[np.argsort(-matrix @ query)[:10]])
        shares.append(len(best & set(store.finder.nearest(query, 200).keys)) / 10)
    return float(np.mean(shares))


def test_some_videos_are_selected_by_their_ids(filled: Store) -> None:
    ids = frozenset(video_id(Path(f"/{number}.mp4")) for number in (1, 3))
    chosen = VideoSet(ids=ids, words="two of four")
    assert said(chosen) == "two of four"
    assert {p.name for p in filled.finder.nearest(QUERY, 9, chosen).paths} == {"1.mp4", "3.mp4"}
    assert filled.finder.nearest(QUERY, 9, VideoSet(ids=frozenset(), words="none")).paths == []
    assert (filled.count(chosen), filled.count_videos(chosen)) == (6, 2)


def test_the_rows_of_a_set_are_looked_up_once_for_each_version(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    chosen = VideoSet(frozenset(record(f"/{number}.mp4").id for number in (1, 3)), "two of four")
    scans, scanner = [], lance.LanceDataset.scanner

    def recorded(table, *given, **wanted):
        scans.append(wanted)
        return scanner(table, *given, **wanted)

    monkeypatch.setattr(lance.LanceDataset, "scanner", recorded)
    for wanted, excluded in (((1, 3), None), ((1,), Path("/3.mp4"))):
        expected = []
        for number in wanted:
            expected += filled.finder.nearest(QUERY, 9, Path(f"/{number}.mp4")).keys
        assert sorted(filled.finder.nearest(QUERY, 9, chosen, excluded).keys) == sorted(expected)
    assert filled.count(chosen) == 6
    assert sum(one.get("columns") == ["video"] for one in scans) == 1
    assert not any(name in one.get("filter", "") for name in chosen.ids for one in scans)
    filled.write(record("/1.mp4"), random_windows(2, seed=9))
    assert filled.count(chosen) == len(filled.finder.nearest(QUERY, 9, chosen).keys) == 5
    assert sum(one.get("columns") == ["video"] for one in scans) == 2


def test_many_queries_at_once_find_what_each_finds(filled: Store) -> None:
    queries = drawn(5, 3)
    for spoiled in (False, True):
        if spoiled:
            spoil(filled, record("/1.mp4").id)
        many = filled.finder.nearest_many(queries, 4, Path("/1.mp4"))
        for query, found in zip(queries, many, strict=True):
            assert found.keys == filled.finder.nearest(query, 4, Path("/1.mp4")).keys
            assert len(found.keys) == 3 - spoiled


def test_all_windows_are_read_once_for_each_version(filled: Store) -> None:
    found = filled.finder.all_windows(12)
    assert found is not None and len(found.keys) == 12
    assert filled.finder.all_windows(12) is found
    assert filled.finder.all_windows(11) is None
    spoil(filled, record("/1.mp4").id)
    changed = filled.finder.all_windows(12)
    assert changed is not None and len(changed.keys) == 11
    assert "/1.mp4" in filled.trouble()[0]


@pytest.mark.parametrize("column", ["packed", "vector"])
def test_a_damaged_window_is_left_out_aloud_and_the_next_best_takes_its_place(
    filled: Store, column: str
) -> None:
    before = filled.finder.nearest(QUERY, 12)
    assert len(filled.finder.nearest(QUERY, 5).keys) == 5
    assert filled.trouble() == []
    spoil(filled, record("/1.mp4").id, column)
    spoiled = f"{record('/1.mp4').id}-000001"
    expected = [key for key in before.keys if key != spoiled]
    assert sorted(filled.finder.nearest(QUERY, 11).keys) == sorted(expected)
    assert len(filled.finder.nearest(QUERY, 12).keys) == 11
    for k in (1, 5):
        assert Store.open(filled.location).finder.nearest(QUERY, k).keys == expected[:k]
    (said,) = filled.trouble()
    assert "/1.mp4" in said and "sureshot index FOLDER" in said and "left out" in said
    filled.write(record("/1.mp4"), random_windows(3, seed=1))
    assert filled.finder.nearest(QUERY, 12).keys == before.keys
    assert filled.trouble() == []


def test_of_a_video_that_was_named_damage_is_an_error(filled: Store) -> None:
    spoil(filled, record("/1.mp4").id)
    with pytest.raises(StoreError, match=r"windows of /1.mp4 are not what was written.*index"):
        filled.windows_of(Path("/1.mp4"))
    for number in (0, 2, 3):
        spoil(filled, record(f"/{number}.mp4").id)
    with pytest.raises(StoreError, match=r"of /0.mp4, /1.mp4, /2.mp4 and 1 more are not"):
        filled.finder.windows("true", order="key")


def test_few_new_windows_wait_and_a_segment_takes_in_those_not_much_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 100)
    assert due({0: 60, 1: 40}, []) == frozenset()
    assert due({0: 60, 1: 41}, []) == {0, 1}
    assert due({0: 500, 1: 100}, [frozenset({0})]) == frozenset()
    there = [frozenset({0}), frozenset({1}), frozenset({2})]
    assert due({0: 150, 1: 400, 2: 5000, 3: 101}, there) == {0, 1, 3}
    assert due({0: 150, 1: 5000, 2: 600, 3: 101}, there) == {0, 3}
    monkeypatch.setattr(vector_search, "_LARGEST", 300)
    assert due({0: 150, 1: 400, 2: 5000, 3: 101}, there) == {0, 3}


def test_segments_stay_few_as_an_index_grows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 20)
    rows: dict[int, int] = {}
    there: list[frozenset[int]] = []
    made = 0
    for number in range(1000):
        rows[number] = 7
        if new := due(rows, there):
            made += 7 * len(new)
            there = [part for part in there if not part & new] + [new]
    assert len(there) <= 7
    assert made <= 10 * 7 * 1000  # each window a few times


def test_segments_find_what_comparing_all_finds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 900)
    queries = drawn(30, 100)
    store.write(record("/a.mp4"), pointing(drawn(2500, 1)))
    assert index_vectors(store._tables) and not index_vectors(store._tables)
    store.write(record("/b.mp4"), pointing(drawn(1000, 2)))
    assert index_vectors(store._tables)
    assert parts(store) == [2500, 1000]
    store.write(record("/few/c.mp4"), pointing(drawn(300, 3)))  # compared one by one
    assert not index_vectors(store._tables)
    assert recall(store, queries) >= 0.99
    newest = drawn(300, 3)[5]
    assert Path("/few/c.mp4") in store.finder.nearest(newest, 3).paths
    assert set(store.finder.nearest(queries[0], 300, Path("/few")).paths) == {Path("/few/c.mp4")}
    assert (
        Path("/few/c.mp4") not in store.finder.nearest(newest, 999, None, Path("/few/c.mp4")).paths
    )
    store.remove([known for known in store.videos() if known.path.name == "b.mp4"])
    assert Path("/b.mp4") not in store.finder.nearest(drawn(1000, 2)[0], 3000).paths
    store.write(record("/a.mp4"), pointing(drawn(2400, 5)))  # in place of the first segment's
    assert store.finder.nearest(drawn(2500, 1)[0], 3000).start.max() < 24_000
    assert recall(store, queries) >= 0.99
    store.compact()
    assert store.count() == 2700
    assert recall(store, queries) >= 0.99
    store.write(record("/d.mp4"), pointing(drawn(2600, 4)))
    assert index_vectors(store._tables)
    assert parts(store) == [5300]  # all in one: the new ones are nearly half of them
    assert recall(store, queries) >= 0.99
    assert find_faults(store.location) == []


def test_vectors_of_any_size_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 10)
    store = Store.create(tmp_path / "odd", make_store(tmp_path / "index").settings, "f", 5)
    vectors = np.eye(5, dtype=np.float32)[np.arange(20) % 5]
    store.write(record("/v.mp4"), pointing(list(vectors)))
    assert index_vectors(store._tables)
    assert len(store.finder.nearest(vectors[0], 4).keys) == 4


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_kill_while_a_segment_is_made_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    vectors = drawn(600, 1)
    store.write(record("/a.mp4"), pointing(vectors))
    before = store.finder.nearest(vectors[0], 20).keys
    command = [sys.executable, "-c", KILLED, store.location, when]
    ended = subprocess.run(command, env={"PYTHONPATH": str(SOURCE)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    opened = Store.open(store.location)
    assert parts(opened) == []
    assert opened.finder.nearest(vectors[0], 20).keys == before
    assert find_faults(store.location) == []
    monkeypatch.setattr(vector_search, "SCANNED", 100)
    assert index_vectors(opened._tables)
    assert parts(opened) == [600]
    assert set(opened.finder.nearest(vectors[0], 20).keys[:5]) <= set(before)


def test_a_segment_of_others_is_not_harmed_where_two_make_one(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 100)
    store.write(record("/a.mp4"), pointing(drawn(400, 1)))
    make = vector_search.make_segment

    def slower(table, fragments):
        monkeypatch.setattr(vector_search, "make_segment", make)
        assert add_segment(Tables(store.location))  # another process is quicker
        return make(table, fragments)

    monkeypatch.setattr(vector_search, "make_segment", slower)
    index_vectors(store._tables)
    assert parts(store) == [400]
    assert recall(store, drawn(5, 3)) >= 0.98
    assert find_faults(store.location) == []
