"""An index that is deleted while others use it: nothing of it stays, and each says what was."""

import contextlib
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sureshot import files
from sureshot.errors import StoreError
from sureshot.store import locks, maintenance, repair
from sureshot.store.index import Store
from sureshot.store.locks import write_lock
from sureshot.store.maintenance import find_faults
from sureshot.store.tables import Tables
from tests import processes
from tests.encoded import contents, make_store, random_windows, record

DELETED = r"another process has deleted it\. `sureshot index FOLDER`"


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store = make_store(tmp_path / "index")
    store.repair()  # as each run of `index` does first
    store.write(record("/1.mp4"), random_windows(3))
    return tmp_path / "index"


@pytest.mark.parametrize("act", ["compact", "write"])
def test_an_index_is_not_deleted_between_the_steps_of_a_writer(
    place: Path, monkeypatch: pytest.MonkeyPatch, act: str
) -> None:
    store, refused = Store.open(place), []

    def step(self: Tables, *arguments: Any, **more: Any) -> Any:
        if not refused:
            with pytest.raises(StoreError, match=r"writing to the index at .* not deleted.*again"):
                Store.delete(place)
            refused.append(True)
        return use(self, *arguments, **more)

    use = Tables.use
    monkeypatch.setattr(repair, "_PATIENCE", 0.05)
    monkeypatch.setattr(Tables, "use", step)
    if act == "write":
        store.write(record("/2.mp4"), random_windows(2))
    else:
        store.compact()
    assert refused
    monkeypatch.setattr(Tables, "use", use)
    assert len(contents(place)[0]) == (2 if act == "write" else 1)
    assert find_faults(str(place)) == []
    Store.delete(place)
    assert not place.exists()


def test_a_deletion_waits_for_an_index_that_is_being_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    deleting, create = [], Tables._create_local

    def slow(self: Tables, name: Any, schema: Any) -> None:
        if name == "videos":
            deleting.append(processes.start(processes.reset, tmp_path / "index", -1))
            deleting[0].join(2)  # time enough for one that does not wait
        create(self, name, schema)

    monkeypatch.setattr(Tables, "_create_local", slow)
    with contextlib.suppress(StoreError):  # the deletion may be over before it is opened
        make_store(tmp_path / "index")
    assert processes.finish(*deleting) == [0]
    assert not (tmp_path / "index").exists()


def test_an_index_is_made_again_once_the_old_one_is_gone(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    making, tidy = [], repair.tidy

    def slow(location: str, **more: Any) -> None:
        making.append(processes.start(processes.make_and_check, place))
        making[0].join(2)  # time enough for one that does not wait
        tidy(location, **more)

    monkeypatch.setattr(repair, "tidy", slow)
    Store.delete(place)
    assert processes.finish(*making) == [0]
    assert find_faults(str(place)) == []


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "replaced"])
def test_who_waited_for_a_deleted_index_locks_the_new_one_or_none(
    place: Path, monkeypatch: pytest.MonkeyPatch, again: bool
) -> None:
    waits, swapped, has, may_end = (threading.Event() for _ in range(4))
    errors: list[OSError] = []

    def wait() -> None:
        try:
            with write_lock(str(place)):
                has.set()
                may_end.wait(60)
        except FileNotFoundError as error:
            errors.append(error)
            has.set()

    def pause(_: float) -> None:
        waits.set()
        swapped.wait(60)

    clock = type("", (), {"sleep": pause, "monotonic": time.monotonic})
    thread = threading.Thread(target=wait)
    with write_lock(str(place)):
        monkeypatch.setattr(files, "time", clock)
        thread.start()
        assert waits.wait(60)
        place.rename(place.parent / "old")
        if again:
            make_store(place)
        swapped.set()
        assert has.wait(60)
    try:
        assert bool(errors) != again
        if again:
            monkeypatch.setattr(locks, "_PATIENCE", 0.0)
            with pytest.raises(StoreError, match="has been writing"), write_lock(str(place)):
                raise AssertionError("held twice")
    finally:
        may_end.set()
        thread.join()


@pytest.mark.parametrize(
    "read",
    [
        Store.videos,
        Store.count,
        Store.excluded,
        Store.repair,
        Store.missing_shards,
        lambda store: store.finder.nearest(np.ones(24, np.float32), 1),
        lambda store: store.write(record("/2.mp4"), random_windows(1)),
        lambda store: store.remove([record("/1.mp4")]),
        lambda store: store.set_excluded(["x"], excluded=True),
    ],
)
def test_whoever_has_a_deleted_index_open_says_so(
    place: Path, read: Callable[[Store], Any]
) -> None:
    store = Store.open(place)
    Store.delete(place)
    with pytest.raises(StoreError, match=DELETED):
        read(store)
    assert store.bytes_on_disk() == 0
    store.compact()
    assert not [*place.parent.rglob("*.lance")]


def test_while_an_index_is_made_again_the_old_one_counts_as_deleted(
    place: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, create = Store.open(place), Tables._create_local

    def between(self: Tables, name: Any, schema: Any) -> None:
        if name == "videos":
            with pytest.raises(StoreError, match=DELETED):
                store.videos()
        create(self, name, schema)

    monkeypatch.setattr(Tables, "_create_local", between)
    Store.delete(place)
    make_store(place)


@pytest.mark.parametrize("again", [False, True], ids=["deleted", "replaced"])
@pytest.mark.parametrize("step", ["_of_tables", "damaged_windows", "_of_search"])
def test_a_check_of_an_index_that_is_deleted_meanwhile_finds_no_fault(
    place: Path, monkeypatch: pytest.MonkeyPatch, step: str, again: bool
) -> None:
    done = getattr(maintenance, step)

    def deleted_before(*arguments: Any) -> Any:
        Store.delete(place)
        if again:
            make_store(place)
        return done(*arguments)

    monkeypatch.setattr(maintenance, step, deleted_before)
    with pytest.raises(StoreError, match=DELETED):
        find_faults(str(place))
