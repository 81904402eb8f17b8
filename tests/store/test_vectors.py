"""A changed vector is found before it moves a window in a ranking; each file is read once."""

from pathlib import Path
from typing import Any

import pytest

from sureshot.store import integrity
from sureshot.store.index import Store
from sureshot.store.integrity import VectorCheck
from sureshot.store.tables import Tables
from tests.encoded import make_store, random_windows, record, spoil


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    return store


def damaged(check: VectorCheck, store: Store) -> list[str]:
    return Tables(store.location).use("windows", check.damaged).column("path").to_pylist()


def test_a_changed_vector_is_named_until_its_video_is_written_again(store: Store) -> None:
    check = VectorCheck()
    assert damaged(check, store) == []
    spoil(store, record("/1.mp4").id, "vector")
    assert damaged(check, store) == damaged(check, store) == ["/1.mp4"]
    store.write(record("/1.mp4"), random_windows(3, seed=1))
    assert damaged(check, store) == []


def test_sound_files_are_read_once(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    check, read = VectorCheck(), []
    sound_vectors = integrity.sound_vectors

    def counted(rows: Any) -> Any:
        read.append(len(rows))
        return sound_vectors(rows)

    monkeypatch.setattr(integrity, "sound_vectors", counted)
    damaged(check, store)
    damaged(check, store)
    store.write(record("/new.mp4"), random_windows(2))
    damaged(check, store)
    assert read == [9, 2]


def test_very_many_are_left_to_a_whole_check(store: Store, monkeypatch) -> None:
    spoil(store, record("/1.mp4").id, "vector")
    monkeypatch.setattr(integrity, "MOST", 8)
    assert damaged(VectorCheck(), store) == []
