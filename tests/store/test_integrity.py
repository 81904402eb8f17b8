"""What an index claims of its videos is compared with the windows that it has."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.store import integrity
from sureshot.store.index import Store
from sureshot.store.integrity import VectorCheck, compared, window_batches
from sureshot.store.rows import video_rows, window_rows
from sureshot.store.tables import Tables
from tests.encoded import fail, make_store, random_windows, record, spoil


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    return store


@pytest.fixture
def tables(store: Store) -> Tables:
    return Tables(store.location)


def test_a_sound_index_agrees_and_fewer_more_and_other_windows_do_not(store, tables) -> None:
    fail(store, record("/2.mp4", reason="is damaged"))
    (part,) = compared(tables)
    assert (part.lost(), part.damaged, part.strays()) == ([], [], {})
    there = part.stored[record("/1.mp4").id]
    assert there.windows == 3 and there.oldest == there.newest > 1.6e9
    known = store.videos()
    tables.drop("windows", f"video = '{known[0].id}' AND start > 15")
    tables.upsert("windows", window_rows(known[1], random_windows(4, seed=9), store._header))
    tables.drop("videos", f"id = '{known[1].id}'")
    tables.upsert("videos", video_rows([known[1]], store._header))
    (part,) = compared(tables)
    assert {r.path.name for r in part.lost()} == {"0.mp4", "1.mp4"}


def test_batches_hold_every_row_once(tables: Tables) -> None:
    keys = [key for rows in window_batches(tables) for key in rows["key"].to_pylist()]
    assert len(keys) == len(set(keys)) == 9


@pytest.mark.parametrize("part", [1, 5, 100])
def test_parts_are_all_videos_each_once(
    tmp_path: Path, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = make_store(tmp_path / "parts")
    staged = [
        store.stage(record(f"/{number}.mp4"), random_windows(1, seed=number))
        for number in range(12)
    ]
    store.commit(staged)
    fail(store, record("/bad.mp4", reason="is damaged"))
    monkeypatch.setattr(integrity, "_PART", part)
    assert len(list(compared(store._tables))) == {1: 13, 5: 3, 100: 1}[part]
    assert sorted(store.each_video(), key=lambda r: r.path) == store.videos()
    assert store.lost() == []
    store._tables.drop("windows", "path = '/7.mp4'")
    store._tables.drop("videos", "path = '/8.mp4'")
    assert [r.path.name for r in store.lost()] == ["7.mp4"]
    store._tables.use("windows", lambda table: table.update({"written_at": "written_at - 1000"}))
    assert "1 video " in store.sweep()[1]  # a lost one, so that nothing is removed


def test_videos_are_found_by_their_paths_and_sizes(store: Store) -> None:
    fail(store, record("/bad.mp4", size=1, reason="is damaged"))
    store.write(record("/3.mp4", size=1), random_windows(1))
    wanted = [Path("/3.mp4"), Path("/bad.mp4"), Path("/none.mp4")]
    assert set(store.at(wanted)) == set(wanted[:2])
    assert {r.path.name for r in store.of_sizes([1, 2])} == {"3.mp4"}
    assert store.at([]) == {} and store.of_sizes([]) == []


def test_vectors_of_sound_files_are_read_once_and_of_very_many_not(
    store: Store, tables: Tables, monkeypatch: pytest.MonkeyPatch
) -> None:
    check, read = VectorCheck(), []
    sound = integrity.sound
    monkeypatch.setattr(integrity, "sound", lambda rows: read.append(len(rows)) or sound(rows))

    def damaged() -> int:
        return len(tables.use("windows", check.damaged))

    assert (damaged(), damaged()) == (0, 0)
    store.write(record("/new.mp4"), random_windows(2))
    assert (damaged(), read) == (0, [9, 2])
    spoil(store, record("/1.mp4").id, "vector")
    assert (damaged(), damaged()) == (1, 1)
    store.write(record("/1.mp4"), random_windows(3, seed=1))
    assert damaged() == 0
    monkeypatch.setattr(integrity, "MAX_CHECKED", 10)
    check = VectorCheck()
    spoil(store, record("/1.mp4").id, "vector")
    assert damaged() == 0


def trouble(store: Store) -> list[str]:
    """What a search of a process that opens the index now would say."""
    fresh = Store.open(store.location)
    fresh.finder.nearest(np.eye(fresh.dim, dtype=np.float32)[0], 5)
    return fresh.trouble()


def newest(store: Store, name: str) -> Path:
    return min(Path(store.location, f"{name}.lance", "_versions").glob("*.manifest"))


@pytest.mark.parametrize("limit", [integrity.MAX_CHECKED, 0])
def test_a_newest_manifest_that_is_gone_is_reported(
    store: Store, limit: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "MAX_CHECKED", limit)
    assert trouble(store) == []
    newest(store, "windows").unlink()
    gone, said = trouble(store)
    assert "newest version of the table of windows" in gone
    assert "1 video has lost windows, such as /2.mp4. `sureshot index FOLDER`" in said
    newest(store, "videos").unlink()
    # The whole video is gone, as if it had never been written, but for the checksums.
    assert "newest version of the table of videos" in " ".join(trouble(store))


def test_windows_of_a_video_that_was_removed_and_are_back_are_reported(store: Store) -> None:
    store.remove([r for r in store.videos() if r.path.name == "0.mp4"])
    assert trouble(store) == []
    newest(store, "windows").unlink()
    _, said = trouble(store)
    assert "1 video that the index does not list" in said and "`sureshot index" in said


def test_an_open_index_looks_again_with_every_version(store: Store) -> None:
    assert store.trouble() == []
    store._tables.drop("windows", "path = '/1.mp4'")
    assert "lost windows, such as /1.mp4" in store.trouble()[0]
    store.write(record("/1.mp4"), random_windows(2, seed=1))
    assert store.trouble() == []


def test_an_unreadable_table_of_videos_costs_no_search_but_is_reported(store: Store) -> None:
    for path in Path(store.location, "videos.lance", "data").iterdir():
        path.write_bytes(b"")
    said = trouble(store)
    assert said and all("`sureshot index FOLDER`" in sentence for sentence in said)


def test_a_damaged_id_with_a_quote_in_it_is_found(store: Store, tables: Tables) -> None:
    quote = {"video": "concat(left(video, 31), chr(39))"}
    tables.change("windows", lambda table: table.update(quote, where="start > 15"))
    assert "/1.mp4" in {str(video.path) for video in store.lost(thorough=True)}
