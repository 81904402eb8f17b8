"""Upkeep takes nothing that may still be needed, and a check names each fault with its fix."""

import os
import time
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import lance
import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pytest

from sureshot.store import maintenance, vector_search
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults
from sureshot.store.rows import video_rows, with_checksums
from sureshot.store.tables import Tables
from tests.encoded import contents, fail, make_store, random_windows, record, spoil


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
    rows = with_checksums(rows)
    tables.upsert("windows", rows)
    if not claimed:
        return
    known = tables.use("videos", lambda table: table.to_table(filter=f"path = '{video}'"))
    sums = pa.array([sum(rows.column("check").to_pylist())], pa.int64())
    at = known.column_names.index("check_windows")
    tables.upsert("videos", with_checksums(known.set_column(at, "check_windows", sums)))


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
    found = store.finder.nearest(np.eye(24, dtype=np.float32)[0], 100)
    assert {path.name for path in found.paths} == {"whole.mp4", "fresh.mp4"}
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
    # By their ids alone the windows of both videos belong to none.
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
    maintenance.sweep(tables)  # without the lock that keeps others off on a local disk
    assert store.count() == 2


def files(store: Store, name: str = "windows") -> set[str]:
    return {p.name for p in Path(store.location, f"{name}.lance", "data").iterdir()}


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
        assert len(files(store, name)) == 1


def test_compaction_leaves_full_files_alone(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(maintenance._FULL_FILE, "windows", 40)
    for number in range(5):
        store.write(record(f"/{number}.mp4"), random_windows(10))
    store.compact()
    full = files(store)
    store.write(record("/more.mp4"), random_windows(10))
    store.write(record("/still-more.mp4"), random_windows(10))
    store.compact()
    assert full & files(store)
    assert store.count() == 70


def test_a_large_index_has_large_files() -> None:
    sizes = [(30_000, 2048), (40_000, 2048), (10**6, 2048), (10**8, 2048), (10**6, 65_536)]
    assert [maintenance.full_file(*size) for size in sizes] == [2048, 4096, *[65_536] * 3]


def test_many_windows_are_indexed_by_compaction_and_few_are_not(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(record("/v.mp4"), random_windows(60))
    for count, scanned in ((0, 100), (1, 50)):
        monkeypatch.setattr(vector_search, "SCANNED", scanned)
        store.compact()
        found = lance.dataset(f"{store.location}/windows.lance").describe_indices()
        assert [index.num_rows_indexed for index in found] == [60] * count


@pytest.fixture
def checked(store: Store) -> Store:
    """An index of three videos and a failed one, compacted."""
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    fail(store, record("/bad.mp4", reason="is damaged"))
    store.compact()
    return store


def the_fault(store: Store) -> tuple[str, str]:
    """The only fault there is."""
    (fault,) = find_faults(store.location)
    return fault.what, fault.fix


def test_a_sound_index_has_no_fault_and_the_check_says_how_far_it_is(checked: Store) -> None:
    progress = Mock()
    assert find_faults(checked.location, progress) == []
    seen = [call.args[1:] for call in progress.update.call_args_list]
    assert seen[0] == (0, 9) and seen[-1] == (9, 9)


@pytest.mark.parametrize("column", ["packed", "start", "vector", "video", "written_at", "check"])
def test_a_changed_window_is_named(checked: Store, column: str) -> None:
    spoil(checked, record("/1.mp4").id, column)
    found = find_faults(checked.location)
    assert any("1 window of /1.mp4 is not what was written." in fault.what for fault in found)
    assert all("sureshot index" in fault.fix for fault in found)
    checked.write(record("/1.mp4"), random_windows(3, seed=1))
    assert find_faults(checked.location) == []


def test_lost_windows_and_damaged_rows_are_named(checked: Store) -> None:
    checked._tables.drop("windows", "path = '/1.mp4' AND start > 5")
    what, fix = the_fault(checked)
    assert "Other windows are stored than the index claims, or none, of /1.mp4." in what
    assert "sureshot index FOLDER" in fix
    checked._tables.use("videos", lambda table: table.update({"size": "7"}, "path='/1.mp4'"))
    assert "1 damaged row" in the_fault(checked)[0]


def test_windows_of_no_video_are_named_once_they_are_old(
    checked: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    checked._tables.drop("videos", "path = '/1.mp4'")
    assert find_faults(checked.location) == []  # another process may be about to write the row
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1000)
    what, fix = the_fault(checked)
    assert "Windows of 1 video belong to no indexed video." in what
    assert "removes them" in fix


@pytest.mark.parametrize("newest", [True, False])
def test_a_broken_version_is_named(checked: Store, newest: bool) -> None:
    manifests = sorted(Path(checked.location, "videos.lance", "_versions").glob("*.manifest"))
    os.truncate(manifests[0 if newest else 1], 0)
    what, fix = the_fault(checked)
    assert ("The newest version" if newest else "The version before the newest") in what
    assert fix


def test_what_a_killed_process_left_is_named(checked: Store) -> None:
    (Path(checked.location) / "windows.lance.gone-1").mkdir()
    what, fix = the_fault(checked)
    assert "windows.lance.gone-1" in what and "sureshot index FOLDER" in fix
