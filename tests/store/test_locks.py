"""Of several writers one writes at a time, and a dead one holds no other up."""

import signal
import time
from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store import locks
from sureshot.store.index import Store
from sureshot.store.locks import LOCKS, exclusive, make_locks, staging_lock, write_lock
from sureshot.store.tables import Tables
from tests import processes
from tests.encoded import make_store, random_windows, record


def test_a_place_without_a_folder_and_object_storage_have_no_lock(tmp_path: Path) -> None:
    for place in (str(tmp_path / "none"), "s3://bucket/index"):
        with write_lock(place), staging_lock(place), exclusive(place) as safe:
            assert not safe
        make_locks(place)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("made", [False, True])
def test_a_writer_that_never_ends_is_reported(tmp_path: Path, monkeypatch, made: bool) -> None:
    if made:
        make_locks(str(tmp_path))
        assert {path.name for path in tmp_path.iterdir()} == {*LOCKS}
    monkeypatch.setattr(locks, "_PATIENCE", 0.05)
    refused = pytest.raises(StoreError, match=f"writing to the index at {tmp_path} .*End it")
    with write_lock(str(tmp_path)), refused, write_lock(str(tmp_path)):
        raise AssertionError("held twice")
    with write_lock(str(tmp_path)):
        pass


def test_many_may_stage_and_nothing_is_exclusive_meanwhile(tmp_path: Path) -> None:
    place = str(tmp_path)
    with staging_lock(place), staging_lock(place), exclusive(place) as safe:
        assert not safe
    with exclusive(place) as safe:
        assert safe


def test_a_killed_process_gives_up_its_lock(tmp_path: Path) -> None:
    holder = processes.start(processes.hold, tmp_path)
    while not (tmp_path / "held").exists():
        time.sleep(0.01)
    holder.kill()
    assert processes.finish(holder) == [-signal.SIGKILL]
    with write_lock(str(tmp_path)):
        pass


def test_failures_copies_and_writes_of_one_video_by_several_processes_agree(
    tmp_path: Path,
) -> None:
    make_store(tmp_path / "index").write(record("/v.mp4"), random_windows(2))
    gate = processes.barrier(2)
    work = processes.fail_and_write
    workers = [processes.start(work, tmp_path / "index", gate, 6) for _ in range(2)]
    assert processes.finish(*workers) == [0, 0]
    store = Store.open(tmp_path / "index")
    assert store.lost(thorough=True) == []
    assert store.count() == sum(known.windows for known in store.videos())


def test_a_removal_between_the_two_commits_of_a_write_waits_for_the_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "index")
    store.write(record("/v.mp4"), random_windows(2))
    upsert, removing = Tables.upsert, []

    def slow(self: Tables, name, rows) -> None:
        if name == "videos":
            work = (tmp_path / "index", processes.barrier(1), 1, 0.0)
            removing.append(processes.start(processes.remove, *work))
            removing[0].join(2)  # time enough for one that does not wait
        upsert(self, name, rows)

    with monkeypatch.context() as patch:
        patch.setattr(Tables, "upsert", slow)
        store.write(record("/v.mp4"), random_windows(3, seed=1))
    assert processes.finish(*removing) == [0]
    assert store.lost() == []
    assert store.count() == sum(known.windows for known in store.videos())


def test_readers_do_not_wait(tmp_path: Path) -> None:
    store = make_store(tmp_path / "index")
    store.write(record("/v.mp4"), random_windows(2))
    with write_lock(store.location):
        assert len(Store.open(store.location).windows_of(Path("/v.mp4")).keys) == 2
