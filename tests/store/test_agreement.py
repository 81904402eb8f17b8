"""What a video claims is held against what is stored of it."""

from pathlib import Path

import pytest

from sureshot.store.index import Store
from sureshot.store.integrity import (
    disagreeing,
    owners,
    stored_by_video,
    videos_of_damaged_windows,
    window_batches,
)
from sureshot.store.tables import Tables
from tests.encoded import make_store, random_windows, record, spoil


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    return store


@pytest.fixture
def tables(store: Store) -> Tables:
    return Tables(store.location)


def test_a_sound_index_agrees(store: Store, tables: Tables) -> None:
    store.fail(record("/2.mp4", reason="is damaged"))
    assert disagreeing(store.videos(), stored_by_video(tables)) == []
    there = stored_by_video(tables)[record("/1.mp4").id]
    assert (there.windows, there.check) == (3, store.videos()[1].check_windows)
    assert there.oldest == there.newest > 1.6e9


def test_fewer_more_and_other_windows_disagree(store: Store, tables: Tables) -> None:
    records = store.videos()
    tables.drop("windows", f"video = '{records[0].id}' AND start > 15")
    store.write(records[1], random_windows(3, seed=9))  # as many, but of another time
    assert disagreeing(records, stored_by_video(tables)) == records[:2]


def test_damaged_windows_name_their_video(store: Store, tables: Tables) -> None:
    assert videos_of_damaged_windows(tables) == set()
    spoil(store, record("/1.mp4").id, "packed")
    assert videos_of_damaged_windows(tables) == {record("/1.mp4").id}


def test_batches_hold_every_row_once(tables: Tables) -> None:
    batches = list(window_batches(tables, ("key", "video", "no such column")))
    assert sum(len(rows) for rows in batches) == 9
    assert {name for rows in batches for name in rows.column_names} == {"key", "video"}
    found = set().union(*(owners(rows) for rows in batches))
    assert found == {record(f"/{number}.mp4").id for number in range(3)}
