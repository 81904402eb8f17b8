"""A table that opens but has other rows than the index claims is told of by whoever searches."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.store import integrity
from sureshot.store.index import Store
from sureshot.store.integrity import on_lost
from tests.encoded import make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(2, seed=number))
    return store


def told(store: Store) -> list[str]:
    """What a search of a process that opens the index now would say."""
    fresh = Store.open(store.location)
    fresh.nearest(np.eye(fresh.dim, dtype=np.float32)[0], 5)
    return fresh.trouble()


def newest(store: Store, name: str) -> Path:
    return min(Path(store.location, f"{name}.lance", "_versions").glob("*.manifest"))


@pytest.mark.parametrize("most", [integrity.MOST, 0])
def test_a_newest_manifest_that_is_gone_is_told_of(
    store: Store, most: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "MOST", most)
    assert told(store) == []
    newest(store, "windows").unlink()
    (said,) = told(store)
    assert "1 video has lost windows, such as /2.mp4. `sureshot index FOLDER`" in said
    newest(store, "videos").unlink()
    assert told(store) == []  # the whole video is gone, as if it had never been written


def test_windows_of_a_video_that_was_removed_and_are_back_are_told_of(store: Store) -> None:
    store.remove([r for r in store.videos() if r.path.name == "0.mp4"])
    assert told(store) == []
    newest(store, "windows").unlink()
    (said,) = told(store)
    assert "1 video that the index does not list" in said and "`sureshot index" in said


def test_an_open_index_looks_again_with_every_version(store: Store) -> None:
    assert store.trouble() == []
    store._tables.drop("windows", "path = '/1.mp4'")
    assert "lost windows, such as /1.mp4" in store.trouble()[0]
    store.write(record("/1.mp4"), random_windows(2, seed=1))
    assert store.trouble() == []


def test_an_unreadable_table_of_videos_costs_no_search_but_is_told_of(store: Store) -> None:
    for path in Path(store.location, "videos.lance", "data").iterdir():
        path.write_bytes(b"")
    said = told(store)
    assert said and all("`sureshot index FOLDER`" in sentence for sentence in said)


def test_nothing_lost_is_not_told_of() -> None:
    assert on_lost([]) == []
    assert on_lost([record("/a.mp4"), record("/b.mp4")])[0].startswith("2 videos have lost")
