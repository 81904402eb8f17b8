"""An index is deleted whole, and a kill on the way leaves one that works or says what to do."""

import os
import shutil
import signal
import time
from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store.index import Store
from sureshot.store.locks import LOCKS
from sureshot.store.repair import delete_index, leftovers, tidy
from tests import processes
from tests.encoded import contents, make_store, random_windows, record


def filled(place: Path) -> Store:
    store = make_store(place)
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(2, seed=number))
    (place / "trust.json").write_text("{}")
    return store


def test_a_deletion_killed_at_any_step_leaves_what_works_or_says_what_to_do(
    tmp_path: Path,
) -> None:
    before = contents(filled(tmp_path / "whole").location)
    ended = 0
    for step in range(6):
        place = tmp_path / str(step)
        filled(place)
        code = processes.finish(processes.start(processes.reset, place, step))
        ended += code == [0]
        if code == [0]:
            assert not place.exists()
            continue
        assert code == [-signal.SIGKILL]
        if not Store.exists(place):
            assert not (place / "trust.json").exists()
        elif step:
            with pytest.raises(StoreError, match=r"half made.*sureshot index.*sureshot reset"):
                Store.open(place)
            whole = Store.open(place, complete=True)
            assert contents(place)[1] == before[1]
            assert whole.lost() == [] and len(whole.videos()) == 3
        else:
            assert contents(place) == before
        Store.delete(place)
        assert not place.exists()
    assert ended == 1


def names_in(place: Path) -> list[str]:
    """What lies in the folder of an index, but for its locks."""
    return sorted(path.name for path in place.iterdir() if path.name not in LOCKS)


def test_what_kills_leave_is_cleared_but_not_what_is_being_made(tmp_path: Path) -> None:
    store = filled(tmp_path / "index")
    place = Path(store.location)
    names = ["windows.lance.new-1", "videos.lance.gone-2", "videos.lance.broken-7"]
    for name in (*names[:2], "windows.lance.new-fresh", "windows.lance.bak"):
        shutil.copytree(place / "videos.lance", place / name)
    os.utime(place / names[0], (time.time() - 1000,) * 2)
    (place / names[2]).write_text("")
    (place / "trust.json.gone-5").write_text("{}")
    assert [path.name for path in leftovers(store.location)] == sorted(
        [*names, "trust.json.gone-5"]
    )
    store.repair()
    kept = ["trust.json", "videos.lance", "windows.lance", "windows.lance.bak"]
    assert names_in(place) == sorted([*kept, "windows.lance.new-fresh"])
    tidy(store.location, at_once=True)
    assert names_in(place) == kept
    assert leftovers("s3://bucket/index") == []


def test_a_storage_other_than_s3_is_not_deleted() -> None:
    with pytest.raises(StoreError, match="tools of that storage"):
        delete_index("gs://bucket/index")
