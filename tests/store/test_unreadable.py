"""A file of rows that is damaged costs the videos in it, which are encoded again, and no other."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from sureshot.errors import StoreError
from sureshot.store.index import Store
from sureshot.store.tables import NAMES
from tests.encoded import contents, make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An index with a file of windows and a row in a file of its own for each of three videos."""
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4", duration=30.0), random_windows(3, seed=number))
    return store


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def noise(path: Path) -> None:
    path.write_bytes(random.Random(0).randbytes(path.stat().st_size))


def second_file(store: Store, name: str) -> Path:
    """The file with the rows of /1.mp4."""
    folder = Path(store.location) / f"{name}.lance" / "data"
    return sorted(folder.iterdir(), key=lambda path: path.stat().st_mtime_ns)[1]


@pytest.mark.parametrize("damage", [zeros, noise])
@pytest.mark.parametrize("name", NAMES)
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
    lost = [str(one.path) for one in again.lost(thorough=True)]
    if name == "windows":
        assert lost == ["/1.mp4"]
    else:
        assert "1 video had a damaged or lost entry" in said[0]
        assert {one.size for one in again.videos() if str(one.path) == "/1.mp4"} == {-1}
    assert {str(one.path) for one in again.videos()} == {"/0.mp4", "/1.mp4", "/2.mp4"}
    again.write(record("/1.mp4", duration=30.0), random_windows(3, seed=1))
    assert contents(store.location) == right
    assert again.repair() == [] == again.lost(thorough=True)


def test_a_disk_that_is_away_proves_nothing(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    zeros(second_file(store, "windows"))
    opened = Path.open

    def away(path: Path, *arguments: object) -> object:
        if path.suffix == ".lance":
            raise OSError(5, "Input/output error")
        return opened(path, *arguments)

    monkeypatch.setattr(Path, "open", away)
    with pytest.raises(StoreError, match="Input/output error"):
        Store.open(store.location).lost(thorough=True)
    monkeypatch.undo()
    assert [str(one.path) for one in Store.open(store.location).lost()] == ["/1.mp4"]
