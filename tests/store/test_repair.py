"""Damage costs the videos in it, which are encoded again; deletion is whole or says so."""

import os
import random
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from sureshot.errors import StoreError
from sureshot.store.index import Store
from sureshot.store.locks import LOCKS
from sureshot.store.repair import leftovers, tidy
from sureshot.store.tables import Tables
from tests import processes
from tests.encoded import contents, fail, flipped, make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An index with a file of windows and a row in a file of its own for each of three videos."""
    store = make_store(tmp_path / "index")
    for number in range(3):
        known = record(f"/{number}.mp4", duration=30.0, digest="d", note="n")
        store.write(known, random_windows(3, seed=number))
    return store


def spoil_row(store: Store, column: str) -> None:
    """Change a value of the row of /1.mp4 without its checksum."""
    tables = Tables(store.location)
    row = tables.use("videos", lambda table: table.to_table(filter="path = '/1.mp4'"))
    field = row.schema.field(column)
    (value,) = row.column(column).to_pylist()
    row = row.set_column(
        row.column_names.index(column), field, pa.array([flipped(value)], field.type)
    )
    tables.drop("videos", "path = '/1.mp4'")
    tables.upsert("videos", row)


@pytest.mark.parametrize("column", ["id", "path", "size", "windows", "check_windows", "check"])
def test_a_damaged_row_is_reported_and_made_again(store: Store, column: str) -> None:
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
    before = store.videos()
    assert store.repair() == []
    assert store.videos() == before
    fail(store, record("/1.mp4", reason="is damaged"))
    spoil_row(store, "reason")
    assert len(store.repair()) == 1
    assert [known.path.name for known in store.videos()] == ["0.mp4", "2.mp4"]
    assert store.count() == 6


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def noise(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(path.stat().st_size))


def second_file(store: Store, name: str) -> Path:
    """The file with the rows of /1.mp4."""
    folder = Path(store.location) / f"{name}.lance" / "data"
    return sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)[1]


@pytest.mark.parametrize(
    ("name", "damage"),
    [
        ("videos", zeros),
        ("windows", noise),
        pytest.param("videos", noise, marks=pytest.mark.slow),
        pytest.param("windows", zeros, marks=pytest.mark.slow),
    ],
)
def test_a_file_that_cannot_be_read_costs_what_is_in_it(
    store: Store, name: str, damage: Callable[[Path], None]
) -> None:
    right = contents(store.location)
    damage(second_file(store, name))
    with pytest.raises(StoreError, match=r"`sureshot index FOLDER` encodes again"):
        broken = Store.open(store.location)
        broken.windows_of(Path("/1.mp4"))
        broken.videos()
    again = Store.open(store.location)
    said = again.repair()
    lost = [video.path.name for video in again.lost(thorough=True)]
    if name == "windows":
        assert lost == ["1.mp4"]
    else:
        assert "1 video had a damaged or lost entry" in said[-1]
        assert {video.size for video in again.videos() if video.path.name == "1.mp4"} == {-1}
    assert {video.path.name for video in again.videos()} == {"0.mp4", "1.mp4", "2.mp4"}
    known = record("/1.mp4", duration=30.0, digest="d", note="n")
    again.write(known, random_windows(3, seed=1))
    assert contents(store.location) == right
    assert again.repair() == [] == again.lost(thorough=True)


def test_a_disk_that_is_away_proves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros(second_file(store, "windows"))
    opened = Path.open

    def away(path: Path, *arguments: object, **named: object) -> object:
        if path.suffix == ".lance":
            raise OSError(5, "Input/output error")
        return opened(path, *arguments, **named)

    monkeypatch.setattr(Path, "open", away)
    with pytest.raises(StoreError, match="Input/output error"):
        Store.open(store.location).lost(thorough=True)
    monkeypatch.undo()
    assert [str(video.path) for video in Store.open(store.location).lost()] == ["/1.mp4"]


def test_a_deletion_killed_at_any_step_leaves_what_works_or_says_what_to_do(
    store: Store, tmp_path: Path
) -> None:
    before, whole = contents(store.location), Path(store.location)
    (whole / "trust.json").write_text("{}")
    ended = 0
    for step in range(6):
        place = shutil.copytree(whole, tmp_path / str(step))
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
            complete = Store.open(place, complete=True)
            assert contents(place)[1] == before[1]
            assert complete.lost() == [] and len(complete.videos()) == 3
        else:
            assert contents(place) == before
        Store.delete(place)
        assert not place.exists()
    assert ended == 1


def test_what_kills_leave_is_cleared_but_not_what_is_being_made(store: Store) -> None:
    place = Path(store.location)
    names = ["windows.lance.new-1", "videos.lance.gone-2", "videos.lance.broken-7"]
    for name in (*names[:2], "windows.lance.new-fresh", "windows.lance.bak"):
        shutil.copytree(place / "videos.lance", place / name)
    os.utime(place / names[0], (time.time() - 1000,) * 2)
    (place / names[2]).write_text("")
    (place / "trust.json").write_text("{}")
    (place / "trust.json.gone-5").write_text("{}")
    found = [path.name for path in leftovers(store.location)]
    assert found == sorted([*names, "trust.json.gone-5"])
    store.repair()
    kept = {"trust.json", "videos.lance", "windows.lance", "windows.lance.bak", *LOCKS}
    assert {path.name for path in place.iterdir()} == kept | {"windows.lance.new-fresh"}
    tidy(store.location, at_once=True)
    assert {path.name for path in place.iterdir()} == kept
    assert leftovers("s3://bucket/index") == []
