"""The index of vectors grows by segments, finds what comparing all would, and survives a kill."""

import signal
import subprocess
import sys
from pathlib import Path

import lance
import numpy as np
import pytest

from sureshot.store import vector_search
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults
from sureshot.store.tables import Tables
from sureshot.store.vector_search import add_segment, due
from tests.encoded import make_store, pointing, record
from tests.paths import SOURCE

KILLED = """
import os, signal, sys, lance
from sureshot.store import segments
from sureshot.store.index import Store
segments.SCANNED = 100
def killed(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)
if sys.argv[2] == "before":
    lance.LanceDataset.commit_existing_index_segments = killed
else:
    segments.make_segment = killed
Store.open(sys.argv[1]).index_vectors()
"""


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
    found = vector_search.segments(table)
    return sorted((sum(rows[n] for n in part if n in rows) for part in found), reverse=True)


def recall(store: Store, queries: np.ndarray) -> float:
    """Share of the exact ten nearest that a search has among its 200 candidates."""
    rows = windows_table(store).to_table(columns=["key", "vector"])
    matrix = np.array(rows["vector"].to_pylist(), np.float32)[:, :24]
    keys = np.array(rows["key"].to_pylist())
    shares = []
    for query in queries:
        best = set(keys[np.argsort(-matrix @ query)[:10]])
        shares.append(len(best & set(store.nearest(query, 200).keys)) / 10)
    return float(np.mean(shares))


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def test_few_new_windows_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 100)
    assert due({0: 60, 1: 40}, []) == frozenset()
    assert due({0: 60, 1: 41}, []) == {0, 1}
    assert due({0: 500, 1: 100}, [frozenset({0})]) == frozenset()


def test_a_new_segment_takes_in_those_that_are_not_much_larger(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 100)
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
    for number in range(2000):
        rows[number] = 7
        if new := due(rows, there):
            made += 7 * len(new)
            there = [part for part in there if not part & new] + [new]
    assert len(there) <= 7
    assert made <= 10 * 7 * 2000  # each window a few times


def test_segments_find_what_comparing_all_finds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 900)
    queries = drawn(30, 100)
    store.write(record("/a.mp4"), pointing(drawn(2500, 1)))
    assert store.index_vectors()
    store.write(record("/b.mp4"), pointing(drawn(1000, 2)))
    assert store.index_vectors()
    assert parts(store) == [2500, 1000]
    store.write(record("/c.mp4"), pointing(drawn(300, 3)))  # compared one by one
    assert not store.index_vectors()
    assert recall(store, queries) >= 0.99
    newest = drawn(300, 3)[5]
    assert Path("/c.mp4") in store.nearest(newest, 3).paths
    store.remove([known for known in store.videos() if known.path.name == "b.mp4"])
    assert Path("/b.mp4") not in store.nearest(drawn(1000, 2)[0], 3000).paths
    assert recall(store, queries) >= 0.99
    store.compact()
    assert store.count() == 2800
    assert recall(store, queries) >= 0.99
    store.write(record("/d.mp4"), pointing(drawn(1600, 4)))
    assert store.index_vectors()
    assert parts(store) == [4400]  # all in one: the new ones are half of them
    assert recall(store, queries) >= 0.99
    assert find_faults(store.location) == []


@pytest.mark.parametrize("when", ["before", "during"])
def test_a_kill_while_a_segment_is_made_loses_nothing(
    store: Store, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    vectors = drawn(600, 1)
    store.write(record("/a.mp4"), pointing(vectors))
    before = store.nearest(vectors[0], 20).keys
    command = [sys.executable, "-c", KILLED, store.location, when]
    ended = subprocess.run(command, env={"PYTHONPATH": str(SOURCE)}, check=False)
    assert ended.returncode == -signal.SIGKILL
    opened = Store.open(store.location)
    assert parts(opened) == []
    assert opened.nearest(vectors[0], 20).keys == before
    assert find_faults(store.location) == []
    monkeypatch.setattr(vector_search, "SCANNED", 100)
    assert opened.index_vectors()
    assert parts(opened) == [600]
    assert set(opened.nearest(vectors[0], 20).keys[:5]) <= set(before)


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
    store.index_vectors()
    assert parts(store) == [400]
    assert recall(store, drawn(5, 3)) >= 0.98
    assert find_faults(store.location) == []


@pytest.mark.slow
def test_many_segments_find_what_comparing_all_finds(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 4000)
    for number in range(12):
        store.write(record(f"/{number}.mp4"), pointing(drawn(5000, number)))
        store.compact()
    assert 1 <= len(parts(store)) <= 4
    assert sum(parts(store)) == 60_000
    assert recall(store, drawn(100, 100)) >= 0.99
