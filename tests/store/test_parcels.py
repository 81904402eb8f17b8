"""Parcels of many videos come in together, whoever packed them; nothing is lost or left over."""

import os
import signal
from pathlib import Path

import pytest

from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.tables import Tables
from sureshot.store.writing import StagedVideo, unnamed
from tests import processes
from tests.encoded import contents, make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def test_parcels_of_others_are_the_rows_that_writing_gives(store: Store, tmp_path: Path) -> None:
    one = make_store(tmp_path / "one")
    for number in range(3):
        one.write(record(f"/{number}.mp4"), random_windows(number + 1, seed=number))
    one.fail(record("/bad.mp4", reason="is damaged"))
    other = Store.open(store.location)  # as on another machine
    parcels = [
        other.stage(record(f"/{number}.mp4"), random_windows(number + 1, seed=number))
        for number in range(3)
    ]
    assert store.count() == 0
    store.commit([*parcels, StagedVideo(record("/bad.mp4", reason="is damaged"))])
    assert contents(store.location) == contents(one.location)
    assert store.lost(thorough=True) == []


def test_what_is_written_again_takes_the_place_of_the_old(store: Store) -> None:
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    shorter = store.stage(record("/0.mp4"), random_windows(1, seed=9))
    store.commit([shorter, StagedVideo(record("/1.mp4", reason="is damaged"))])
    assert {r.path.name: r.windows for r in store.videos()} == {"0.mp4": 1, "1.mp4": 0, "2.mp4": 3}
    assert store.count() == 4
    assert store.lost(thorough=True) == []


def test_a_row_counts_as_written_after_its_windows_where_a_clock_is_ahead(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        patch.setattr("sureshot.store.rows.time.time", lambda: 4e9)
        parcel = store.stage(record("/v.mp4"), random_windows(2))
    store.commit([parcel])
    assert store.videos()[0].indexed_at == 4e9
    store.remove(store.videos())  # also though its windows seem to come from the future
    assert (store.count(), store.videos()) == (0, [])


def test_left_over_files_go_once_nobody_may_commit_them(store: Store) -> None:
    tables = Tables(store.location)
    store.write(record("/v.mp4"), random_windows(2))
    parcel = store.stage(record("/w.mp4"), random_windows(2))
    with staging_lock(store.location):
        assert Store.open(store.location).clear() == 0
        store.commit([parcel])
    store.stage(record("/x.mp4"), random_windows(2))
    assert unnamed(tables, "windows") == 1
    assert store.clear() == 1
    assert unnamed(tables, "windows") == 0
    assert store.count() == 4
    assert store.lost(thorough=True) == []


def test_a_killed_writer_holds_no_left_overs_back(store: Store) -> None:
    worker = processes.start(processes.pack_and_wait, store.location)
    while not unnamed(Tables(store.location), "windows"):
        assert worker.is_alive()
    assert store.clear() == 0
    os.kill(worker.pid, signal.SIGKILL)
    assert processes.finish(worker) == [-signal.SIGKILL]
    assert store.clear() == 1
