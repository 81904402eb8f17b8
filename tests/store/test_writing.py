"""Staged videos come in together, whoever staged them; nothing is lost or left over."""

import os
import signal
from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.tables import Tables
from sureshot.store.writing import StagedVideo, uncommitted_files
from tests import processes
from tests.encoded import contents, fail, make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def test_staged_videos_are_the_rows_that_writing_gives(store: Store, tmp_path: Path) -> None:
    one = make_store(tmp_path / "one")
    for number in range(3):
        one.write(record(f"/{number}.mp4"), random_windows(number + 1, seed=number))
    fail(one, record("/bad.mp4", reason="is damaged"))
    other = Store.open(store.location)  # as on another machine
    staged = [
        other.stage(record(f"/{number}.mp4"), random_windows(number + 1, seed=number))
        for number in range(3)
    ]
    assert store.count() == 0
    before = store._tables.use("windows", lambda table: table.version)
    store.commit([*staged, StagedVideo(record("/bad.mp4", reason="is damaged"))])
    assert store._tables.use("windows", lambda table: table.version) == before + 1
    assert contents(store.location) == contents(one.location)
    assert store.lost(thorough=True) == []


def test_what_is_written_again_takes_the_place_of_the_old(store: Store) -> None:
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    shorter = store.stage(record("/0.mp4"), random_windows(1, seed=9))
    store.write(record("/other.mp4"), random_windows(1))  # between the staging and the commit
    store.compact()
    store.commit([shorter, StagedVideo(record("/1.mp4", reason="is damaged"))])
    assert [r.windows for r in store.videos()] == [1, 0, 3, 1]
    assert store.count() == 5
    assert store.lost(thorough=True) == []


def test_files_that_are_not_there_are_named_and_change_nothing(store: Store) -> None:
    store.write(record("/old.mp4"), random_windows(3))
    data = Path(store.location, "windows.lance", "data")
    before = set(data.iterdir())
    staged = store.stage(record("/old.mp4"), random_windows(2))
    (fresh,) = set(data.iterdir()) - before
    fresh.unlink()
    with pytest.raises(StoreError, match=r"1 file with encoded windows is not at .*one folder"):
        store.commit([staged])
    assert store.count() == 3


def test_a_row_counts_as_written_after_its_windows_where_a_clock_is_ahead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sureshot.store.rows.time.time", lambda: 4e9)
        staged = store.stage(record("/v.mp4"), random_windows(2))
    store.commit([staged])
    assert store.videos()[0].indexed_at == 4e9
    store.remove(store.videos())  # also though its windows seem to come from the future
    assert (store.count(), store.videos()) == (0, [])


def test_left_over_files_go_once_no_process_may_commit_them(store: Store) -> None:
    tables = Tables(store.location)
    store.write(record("/v.mp4"), random_windows(2))
    staged = store.stage(record("/w.mp4"), random_windows(2))
    with staging_lock(store.location):
        assert Store.open(store.location).clear() == 0
        store.commit([staged])
    store.stage(record("/x.mp4"), random_windows(2))
    assert uncommitted_files(tables, "windows") == 1
    assert store.clear() == 1
    assert uncommitted_files(tables, "windows") == 0
    assert store.count() == 4
    assert store.lost(thorough=True) == []


def test_a_killed_writer_holds_no_left_overs_back(store: Store) -> None:
    worker = processes.start(processes.stage_and_wait, store.location)
    while not uncommitted_files(Tables(store.location), "windows"):
        assert worker.is_alive()
    assert store.clear() == 0
    os.kill(worker.pid, signal.SIGKILL)
    assert processes.finish(worker) == [-signal.SIGKILL]
    assert store.clear() == 1


def test_processes_that_leave_things_out_at_once_lose_no_pattern(store: Store) -> None:
    gate = processes.barrier(2)
    work, place = processes.exclude, Path(store.location)
    processes.finish(*(processes.start(work, place, gate, letter, 6) for letter in "ab"))
    assert store.excluded() == tuple(sorted(f"{letter}{n}" for letter in "ab" for n in range(6)))


def test_patterns_of_what_is_left_out_are_kept_and_forgotten(store: Store) -> None:
    odd = os.fsdecode(b"/caf\xe9/*.mp4")
    store.set_excluded(["*.gif", odd], excluded=True)
    store.set_excluded(["raw"], excluded=True)
    store.write(record("/v.mp4"), random_windows(2))
    store.compact()
    assert Store.open(store.location).excluded() == tuple(sorted(["*.gif", odd, "raw"]))
    store.set_excluded(["raw", "never there"], excluded=False)
    store.set_excluded([], excluded=True)
    assert Store.open(store.location).excluded() == tuple(sorted(["*.gif", odd]))
