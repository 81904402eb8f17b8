"""Staged rows are nobody's until they are put in; those they replace go with the same commit."""

from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store.index import Store
from sureshot.store.rows import window_rows
from sureshot.store.tables import Tables
from sureshot.store.writing import put, stage, unnamed
from tests.encoded import make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    store.write(record("/old.mp4"), random_windows(3))
    return store


def staged(store: Store, path: str, count: int) -> list[str]:
    rows = window_rows(record(path), random_windows(count, seed=count), store._header)
    return stage(Tables(store.location), "windows", rows)


def test_staged_rows_are_seen_once_they_are_put_in(store: Store) -> None:
    tables = Tables(store.location)
    files = staged(store, "/new.mp4", 2)
    assert (store.count(), unnamed(tables, "windows")) == (3, 1)
    before = tables.use("windows", lambda table: table.version)
    put(tables, "windows", files, instead=f"video = '{record('/old.mp4').id}'")
    assert (store.count(), unnamed(tables, "windows")) == (2, 0)
    assert tables.use("windows", lambda table: table.version) == before + 1


def test_rows_staged_before_others_wrote_are_put_in_beside_theirs(store: Store) -> None:
    files = staged(store, "/new.mp4", 2)
    store.write(record("/other.mp4"), random_windows(1))
    store.compact()
    put(Tables(store.location), "windows", files, instead="start < 0")
    assert store.count() == 6


def test_files_that_are_not_there_are_told_of_and_change_nothing(store: Store) -> None:
    tables = Tables(store.location)
    files = staged(store, "/new.mp4", 2)
    for path in Path(store.location, "windows.lance", "data").iterdir():
        named = tables.use(
            "windows", lambda t: [f.path for p in t.get_fragments() for f in p.data_files()]
        )
        if path.name not in named:
            path.unlink()
    with pytest.raises(StoreError, match=r"1 file with encoded windows is not at .*one folder"):
        put(tables, "windows", files, instead="start >= 0")
    assert store.count() == 3
