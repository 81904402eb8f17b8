"""Videos read in parts are all videos, each once."""

from pathlib import Path

import pytest

from sureshot.store import integrity
from sureshot.store.index import Store
from tests.encoded import make_store, random_windows, record


@pytest.fixture
def store(tmp_path: Path) -> Store:
    store = make_store(tmp_path / "index")
    for number in range(12):
        store.write(record(f"/{number}.mp4", size=number % 3), random_windows(1, seed=number))
    store.fail(record("/bad.mp4", size=1, reason="is damaged"))
    return store


@pytest.mark.parametrize("part", [1, 5, 100])
def test_parts_are_all_videos_each_once(
    store: Store, part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(integrity, "_PART", part)
    assert len(list(integrity.parts_of_videos(store._tables, "id"))) == {1: 13, 5: 3, 100: 1}[part]
    assert sorted(store.each_video(), key=lambda r: r.path) == store.videos()
    assert store.lost() == []
    store._tables.drop("windows", "path = '/7.mp4'")
    store._tables.drop("videos", "path = '/8.mp4'")
    assert [r.path.name for r in store.lost()] == ["7.mp4"]
    store._tables.use("windows", lambda table: table.update({"written_at": "written_at - 1000"}))
    assert "1 video " in store.sweep()[1]  # a lost one, so that nothing is removed


def test_videos_are_found_by_their_paths_and_sizes(store: Store) -> None:
    wanted = [Path("/3.mp4"), Path("/bad.mp4"), Path("/none.mp4")]
    assert set(store.at(wanted)) == set(wanted[:2])
    assert store.at([]) == {}
    assert {r.path.name for r in store.of_sizes([1])} == {"1.mp4", "4.mp4", "7.mp4", "10.mp4"}
    assert store.of_sizes([]) == []
