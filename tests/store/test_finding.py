"""What a search reads is what was written: a damaged window is left out aloud, or refused."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import StoreError
from sureshot.models.encoders.toy import TinyEncoder
from sureshot.store.index import Store
from sureshot.store.rows import SCHEMA_VERSION, Header
from sureshot.store.tables import Tables
from sureshot.store.vector_search import damage
from tests.encoded import SETTINGS, random_windows, record, spoil

QUERY = np.eye(24, dtype=np.float32)[0]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return filled(tmp_path / "index")


def filled(place: Path, schema: int = SCHEMA_VERSION) -> Store:
    """An index of four videos with three windows each."""
    tiny = TinyEncoder()
    Tables(str(place)).create(
        Header(settings=SETTINGS, fingerprint=tiny.fingerprint, dim=tiny.dim, schema=schema)
    )
    store = Store.open(place)
    for number in range(4):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    return store


def test_a_sound_index_has_no_trouble(store: Store) -> None:
    assert len(store.nearest(QUERY, 5).keys) == 5
    assert store.trouble() == []


@pytest.mark.parametrize(
    ("schema", "column"),
    [
        *((5, name) for name in ("packed", "vector")),
        *((4, name) for name in ("frames", "times", "start", "signatures", "vector")),
    ],
)
def test_a_damaged_window_is_left_out_aloud_and_the_next_best_takes_its_place(
    tmp_path: Path, schema: int, column: str
) -> None:
    store = filled(tmp_path / "of its format", schema)
    before = store.nearest(QUERY, 12)
    spoil(store, record("/1.mp4").id, column)
    spoiled = f"{record('/1.mp4').id}-000001"
    found = store.nearest(QUERY, 11)
    assert sorted(found.keys) == sorted(key for key in before.keys if key != spoiled)
    assert len(store.nearest(QUERY, 12).keys) == 11
    for k in (1, 5):
        expected = [key for key in before.keys if key != spoiled][:k]
        assert Store.open(store.location).nearest(QUERY, k).keys == expected
    (said,) = store.trouble()
    assert "/1.mp4" in said and "sureshot index FOLDER" in said and "left out" in said
    store.write(record("/1.mp4"), random_windows(3, seed=1))
    assert store.nearest(QUERY, 12).keys == before.keys
    assert store.trouble() == []


def test_of_a_video_that_was_named_damage_is_an_error(store: Store) -> None:
    spoil(store, record("/1.mp4").id)
    for read in (
        lambda: store.windows_of(Path("/1.mp4")),
        lambda: store.windows_in(store.videos()),
    ):
        with pytest.raises(StoreError, match=r"windows of /1.mp4 are not what was written.*index"):
            read()
    assert len(store.windows_of(Path("/2.mp4")).keys) == 3


def test_few_damaged_videos_are_named() -> None:
    names = [f"/{number}.mp4" for number in range(5)]
    assert "/0.mp4, /1.mp4, /2.mp4 and 2 more are not" in damage("/index", names)
    assert "windows of /0.mp4 are not" in damage("/index", names[:1])
