"""A check of a whole index names each fault with its mend, and a sound index has none."""

import os
import time
from pathlib import Path
from unittest.mock import Mock

import pytest

from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults
from sureshot.store.tables import Tables
from tests.encoded import make_store, random_windows, record, spoil


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    store.fail(record("/bad.mp4", reason="is damaged"))
    store.compact()
    return store


def the_fault(store: Store) -> tuple[str, str]:
    """The only fault there is."""
    (fault,) = find_faults(store.location)
    return fault.what, fault.fix


def test_a_sound_index_has_no_fault_and_the_check_says_how_far_it_is(store: Store) -> None:
    progress = Mock()
    assert find_faults(store.location, progress) == []
    seen = [call.args[1:] for call in progress.update.call_args_list]
    assert seen[0] == (0, 9) and seen[-1] == (9, 9)


@pytest.mark.parametrize("column", ["packed", "start", "vector", "video", "written_at", "check"])
def test_a_changed_window_is_named(store: Store, column: str) -> None:
    spoil(store, record("/1.mp4").id, column)
    found = find_faults(store.location)
    assert any("1 window of /1.mp4 is not what was written." in fault.what for fault in found)
    assert all("sureshot index" in fault.fix for fault in found)
    store.write(record("/1.mp4"), random_windows(3, seed=1))
    assert find_faults(store.location) == []


def test_lost_windows_are_named(store: Store) -> None:
    store._tables.drop("windows", "path = '/1.mp4' AND start > 5")
    what, mend = the_fault(store)
    assert "Other windows are stored than the index claims, or none, of /1.mp4." in what
    assert "sureshot index FOLDER" in mend


def test_windows_of_nobody_are_named_once_they_are_old(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store._tables.drop("videos", "path = '/1.mp4'")
    assert find_faults(store.location) == []  # another process may be about to write the row
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 1000)
    what, mend = the_fault(store)
    assert "Windows of 1 video belong to no indexed video." in what
    assert "removes them" in mend


def test_a_damaged_row_is_counted(store: Store) -> None:
    Tables(store.location).use("videos", lambda table: table.update({"size": "7"}, "path='/1.mp4'"))
    assert "1 damaged row" in the_fault(store)[0]


@pytest.mark.parametrize("newest", [True, False])
def test_a_broken_version_is_named(store: Store, newest: bool) -> None:
    manifests = sorted(Path(store.location, "videos.lance", "_versions").glob("*.manifest"))
    os.truncate(manifests[0 if newest else 1], 0)
    what, mend = the_fault(store)
    assert ("The newest version" if newest else "The version before the newest") in what
    assert mend


def test_what_a_killed_process_left_is_named(store: Store) -> None:
    (Path(store.location) / "windows.lance.gone-1").mkdir()
    what, mend = the_fault(store)
    assert "windows.lance.gone-1" in what and "sureshot index FOLDER" in mend
