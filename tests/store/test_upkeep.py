"""Upkeep keeps an index small and quick, and takes nothing that somebody may still need."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sureshot.store import maintenance, vector_search
from sureshot.store.index import Store
from sureshot.store.rows import checked_videos, checked_windows, video_rows
from sureshot.store.tables import Tables
from tests.encoded import contents, make_store, pointing, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


@pytest.fixture
def tables(store: Store) -> Tables:
    return Tables(store.location)


def age(tables: Tables, seconds: float, video: str, *, claimed: bool = True) -> None:
    """Make the windows of a video look as if they were written long ago."""

    rows = tables.use("windows", lambda table: table.to_table(filter=f"path = '{video}'"))
    when = pc.subtract(rows.column("written_at"), seconds)
    rows = rows.set_column(rows.column_names.index("written_at"), "written_at", when)
    rows = checked_windows(rows)
    tables.upsert("windows", rows)
    if not claimed:
        return
    known = tables.use("videos", lambda table: table.to_table(filter=f"path = '{video}'"))
    sums = pa.array([sum(rows.column("check").to_pylist())], pa.int64())
    at = known.column_names.index("check_windows")
    tables.upsert("videos", checked_videos(known.set_column(at, "check_windows", sums)))


def orphan(store: Store, tables: Tables, video: str, seconds: float) -> None:
    """Windows whose video was never written, as a kill between the two leaves them."""
    store.write(record(video), random_windows(2))
    tables.drop("videos", f"path = '{video}'")
    age(tables, seconds, video, claimed=False)


def test_left_overs_are_swept_once_they_are_ten_minutes_old(store: Store, tables: Tables) -> None:
    store.write(record("/whole.mp4"), random_windows(2))
    age(tables, 5000, "/whole.mp4")
    orphan(store, tables, "/fresh.mp4", 590)
    orphan(store, tables, "/old.mp4", 610)
    assert store.sweep() == (1, "")
    assert {p.name for p in store.nearest(np.eye(24, dtype=np.float32)[0], 100).paths} == {
        "whole.mp4",
        "fresh.mp4",
    }
    assert store.sweep() == (0, "")


def test_left_overs_stay_while_a_row_of_a_video_is_damaged(store: Store, tables: Tables) -> None:
    store.write(record("/whole.mp4"), random_windows(2))
    age(tables, 5000, "/whole.mp4")
    orphan(store, tables, "/old.mp4", 610)
    row = tables.use("videos", lambda table: table.to_table(filter="path = '/whole.mp4'"))
    other = row.set_column(
        row.column_names.index("id"), row.schema.field("id"), pa.array(["0" * 32], pa.string())
    )
    tables.upsert("videos", other)
    tables.drop("videos", "path = '/whole.mp4' and id != '" + "0" * 32 + "'")
    swept, why = store.sweep()
    # By their number alone the windows of both videos belong to nobody.
    assert swept == 0 and "1 damaged row" in why and "`sureshot status --check`" in why
    assert store.count() == 4
    tables.drop("videos", "id = '" + "0" * 32 + "'")
    tables.upsert("videos", row)
    assert store.sweep() == (1, "") and store.count() == 2


def test_windows_of_a_failed_video_are_left_overs(store: Store, tables: Tables) -> None:
    store.write(record("/v.mp4"), random_windows(2))
    age(tables, 5000, "/v.mp4")
    tables.upsert("videos", video_rows([record("/v.mp4", reason="is damaged")], store._header))
    assert store.sweep() == (1, "")
    assert store.count() == 0


def test_windows_written_again_while_a_sweep_looks_stay(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    orphan(store, tables, "/v.mp4", 5000)
    drop = Tables.drop

    def late(self: Tables, name: Any, condition: str) -> None:
        monkeypatch.setattr(Tables, "drop", drop)
        store.write(record("/v.mp4"), random_windows(2))
        drop(self, name, condition)

    monkeypatch.setattr(Tables, "drop", late)
    maintenance.sweep(tables)  # without the turn that keeps others off on a local disk
    assert store.count() == 2


def test_copied_windows_count_from_their_copying(store: Store, tables: Tables) -> None:
    store.write(record("/old.mp4"), random_windows(2))
    age(tables, 5000, "/old.mp4")
    assert store.copy(store.videos()[0], record("/new.mp4"))
    tables.drop("videos", "path = '/new.mp4'")
    assert store.sweep() == (0, "")


def test_compaction_changes_nothing_but_the_number_of_files(store: Store) -> None:
    for number in range(6):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    store.write(record("/1.mp4"), random_windows(2, seed=9))
    store.remove(store.videos()[:1])
    before = contents(store.location)
    store.compact()
    assert contents(store.location) == before
    for name in ("videos", "windows"):
        table = lance.dataset(f"{store.location}/{name}.lance")
        assert len(table.versions()) == 2
        assert len(list(Path(store.location, f"{name}.lance", "data").iterdir())) == 1


def test_compaction_leaves_full_files_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(maintenance._FULL_FILE, "windows", 40)

    def files() -> set[str]:
        return {p.name for p in Path(store.location, "windows.lance", "data").iterdir()}

    for number in range(5):
        store.write(record(f"/{number}.mp4"), random_windows(10))
    store.compact()
    full = files()
    store.write(record("/more.mp4"), random_windows(10))
    store.write(record("/still-more.mp4"), random_windows(10))
    store.compact()
    assert full & files()
    assert store.count() == 70


def test_a_large_index_has_large_files() -> None:
    assert maintenance.full_file(30_000, 2048) == 2048
    assert maintenance.full_file(40_000, 2048) == 4096
    assert maintenance.full_file(1_000_000, 2048) == 65_536
    assert maintenance.full_file(100_000_000, 2048) == 65_536
    assert maintenance.full_file(1_000_000, 65_536) == 65_536


def test_compaction_of_what_is_damaged_is_left_for_next_time(store: Store) -> None:
    store.write(record("/v.mp4"), random_windows(2))
    for file in Path(store.location, "windows.lance", "data").iterdir():
        file.unlink()
    store.compact()
    assert len(store.videos()) == 1


def spread(count: int, seed: int = 0) -> np.ndarray:
    """Unit vectors around a few centres."""
    rng = np.random.default_rng(seed)
    centres = np.random.default_rng(99).standard_normal((count // 50 + 1, 24))
    vectors = centres[rng.integers(0, len(centres), count)] + rng.standard_normal((count, 24))
    return (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype(np.float32)


@pytest.fixture(scope="module")
def large(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of 1500 windows that are not compared one by one."""
    place = tmp_path_factory.mktemp("large") / "index"
    store = make_store(place)
    store.write(record("/first.mp4"), pointing(spread(1500)))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_search, "SCANNED", 1000)
        assert store.index_vectors()
    return place


@pytest.fixture
def indexed(large: Path, tmp_path: Path) -> Store:
    """A copy of it to change."""
    return Store.open(shutil.copytree(large, tmp_path / "large"))


def recall(store: Store, find: Callable[[np.ndarray], Any], queries: np.ndarray) -> float:
    """Share of the exact ten nearest that a search has among its candidates."""
    shares = []
    vectors = lance.dataset(f"{store.location}/windows.lance").to_table(columns=["key", "vector"])
    matrix = np.array(vectors["vector"].to_pylist(), np.float32)[:, :24]
    keys = np.array(vectors["key"].to_pylist())
    for query in queries:
        best = set(keys[np.argsort(-matrix @ query)[:10]])
        shares.append(len(best & set(find(query).keys)) / 10)
    return float(np.mean(shares))


def test_few_windows_are_compared_one_by_one(store: Store) -> None:
    store.write(record("/v.mp4"), random_windows(5))
    assert not store.index_vectors()
    store.compact()
    assert lance.dataset(f"{store.location}/windows.lance").describe_indices() == []


def test_many_windows_are_indexed_by_compaction_and_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(vector_search, "SCANNED", 1000)
    store.write(record("/v.mp4"), pointing(spread(1100)))
    store.compact()
    (index,) = lance.dataset(f"{store.location}/windows.lance").describe_indices()
    assert index.num_rows_indexed == 1100
    assert not store.index_vectors()
    store.write(record("/more.mp4"), pointing(spread(1001, seed=1)))
    assert store.index_vectors()


@pytest.mark.parametrize("noise", [0.5, 5.0])
def test_an_index_of_vectors_keeps_the_best_among_the_candidates(
    indexed: Store, noise: float
) -> None:
    rng = np.random.default_rng(5)
    queries = spread(20) + noise * rng.standard_normal((20, 24)).astype(np.float32)
    queries /= np.linalg.norm(queries, axis=1, keepdims=True)
    assert recall(indexed, lambda q: indexed.nearest(q, 200), queries) >= 0.98


def test_windows_written_after_the_index_are_found(indexed: Store) -> None:
    indexed.write(record("/late.mp4"), pointing(spread(50, seed=3)))
    indexed.compact()
    queries = spread(50, seed=3)
    for number, query in enumerate(queries):
        found = indexed.nearest(query, 10)
        assert (Path("/late.mp4"), 10.0 * number) in zip(found.paths, found.start, strict=True)
    assert recall(indexed, lambda q: indexed.nearest(q, 200), queries) >= 0.98


def test_windows_changed_or_removed_after_the_index_are_not_found(indexed: Store) -> None:
    gone = spread(1500)[1499]
    assert 14_990.0 in indexed.nearest(gone, 5).start
    indexed.write(record("/first.mp4"), pointing(spread(1000, seed=8)))
    assert indexed.count() == 1000
    assert indexed.nearest(gone, 3000).start.max() < 10_000
    indexed.compact()
    assert recall(indexed, lambda q: indexed.nearest(q, 200), spread(20, seed=8)) >= 0.98
    indexed.remove(indexed.videos())
    assert indexed.nearest(gone, 5).keys == []


def test_filters_hold_with_an_index_of_vectors(indexed: Store) -> None:
    indexed.write(record("/few/v.mp4"), pointing(-spread(7, seed=4)))
    query = spread(1)[0]
    assert set(indexed.nearest(query, 7, under=Path("/few")).paths) == {Path("/few/v.mp4")}
    assert len(indexed.nearest(query, 7, under=Path("/few")).keys) == 7
    found = indexed.nearest(query, 3000, exclude=Path("/few/v.mp4"))
    assert set(found.paths) == {Path("/first.mp4")}


def test_vectors_of_any_size_are_indexed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tests.encoded import SETTINGS

    monkeypatch.setattr(vector_search, "SCANNED", 10)
    store = Store.create(tmp_path / "odd", SETTINGS, "f", 5)
    vectors = np.eye(5, dtype=np.float32)[np.arange(20) % 5]
    store.write(record("/v.mp4"), pointing(list(vectors)))
    assert store.index_vectors()
    assert len(store.nearest(vectors[0], 4).keys) == 4


def test_clocks_of_machines_that_share_a_storage_may_differ() -> None:
    assert maintenance.in_flight("/home/ann/index") == 600
    assert maintenance.in_flight("s3://films/index") == 3600
