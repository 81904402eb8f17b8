"""Rows of videos that are damaged or lost are made anew, and no video is lost with them."""

from pathlib import Path

import pyarrow as pa
import pytest

from sureshot.store.index import Store
from sureshot.store.tables import Tables
from tests.encoded import flipped, make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        known = record(f"/{number}.mp4", duration=30.0, digest="d", note="n")
        store.write(known, random_windows(3, seed=number))
    return store


def spoil_row(store: Store, column: str) -> None:
    """Change a value of the row of /1.mp4 behind the back of its checksum."""
    tables = Tables(store.location)
    row = tables.use("videos", lambda table: table.to_table(filter="path = '/1.mp4'"))
    field = row.schema.field(column)
    (value,) = row.column(column).to_pylist()
    row = row.set_column(
        row.column_names.index(column), field, pa.array([flipped(value)], field.type)
    )
    tables.drop("videos", "path = '/1.mp4'")
    tables.upsert("videos", row)


@pytest.mark.parametrize(
    "column", ["id", "path", "size", "windows", "digest", "reason", "check_windows", "check"]
)
def test_a_damaged_row_is_told_of_and_made_anew(store: Store, column: str) -> None:
    spoil_row(store, column)
    reader = Store.open(store.location)
    assert [known.path.name for known in reader.videos()] == ["0.mp4", "2.mp4"]
    (said,) = reader.trouble()
    assert "1 damaged row" in said and "sureshot index FOLDER" in said
    assert reader.sweep() == (0, "")  # nothing is old enough to be swept
    (said,) = store.repair()
    assert said.startswith("1 video had a damaged or lost entry")
    first, made, last = store.videos()
    assert (made.path, made.windows, made.duration) == (Path("/1.mp4"), 3, 30.0)
    assert (made.size, made.digest) == (-1, "")  # so its file counts as changed
    assert (first.size, last.size) == (100, 100)
    assert (store.lost(thorough=True), store.trouble(), store.repair()) == ([], [], [])


def test_a_damaged_row_of_a_failed_video_is_forgotten(store: Store) -> None:
    store.fail(record("/1.mp4", reason="is damaged"))
    spoil_row(store, "reason")
    assert len(store.repair()) == 1
    assert [known.path.name for known in store.videos()] == ["0.mp4", "2.mp4"]
    assert store.count() == 6


def test_a_sound_index_is_left_as_it_is(store: Store) -> None:
    before = store.videos()
    assert store.repair() == []
    assert store.videos() == before
