"""The newest version of a table whose files are all there is used; a broken newer one is moved."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path

import lance
import pytest

from sureshot.errors import StoreError
from sureshot.store.checksums import Checksums
from sureshot.store.index import Store
from sureshot.store.tables import Tables, is_whole, move_aside, versions
from tests.encoded import fail, make_store, random_windows, record


@pytest.fixture
def place(tmp_path: Path) -> Path:
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(3, seed=number))
    store.compact()
    store.write(record("/last.mp4"), random_windows(2))
    return tmp_path / "index"


def newest(table: Path) -> Path:
    return min((table / "_versions").glob("*.manifest"))  # they are named by what is left


def newest_data(table: Path) -> Path:
    return max((table / "data").iterdir(), key=lambda p: p.stat().st_mtime_ns)


def empty(path: Path) -> None:
    os.truncate(path, 0)


def cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def blank(path: Path) -> None:
    """What a loss of power leaves of a file whose length alone had reached the disk."""
    path.write_bytes(bytes(path.stat().st_size))


def garble(path: Path) -> None:
    path.write_bytes(os.urandom(path.stat().st_size))


BROKEN: list[tuple[Callable[[Path], Path], Callable[[Path], None]]] = [
    (newest, empty),
    (newest, cut),
    (newest, garble),
    (newest, blank),
    (newest_data, empty),
    (newest_data, cut),
    (newest_data, Path.unlink),
]


@pytest.mark.parametrize(("file", "damage"), BROKEN)
@pytest.mark.parametrize("name", ["videos", "windows"])
def test_with_a_broken_newest_version_the_one_before_is_used_and_index_goes_on_from_it(
    place: Path, name: str, file, damage
) -> None:
    damage(file(place / f"{name}.lance"))
    store = Store.open(place)
    assert len(store.windows_of(Path("/1.mp4")).keys) == 3
    store.videos()
    said, also = store.trouble()
    assert ("lost windows" if name == "windows" else "does not list") in also
    assert f"newest version of the table of {name}" in said and "sureshot index FOLDER" in said
    with pytest.raises(StoreError, match="Until then nothing else can be changed"):
        store.remove(store.videos()) if name == "videos" else store.write(
            record("/new.mp4"), random_windows(1)
        )
    assert any("was damaged, so the one before it was taken" in line for line in store.repair())
    assert store._tables.trouble() == []
    lost = {known.path.name for known in store.lost(thorough=True)}
    assert len(store.trouble()) == len(lost)
    assert lost == ({"last.mp4"} if name == "windows" else set())
    store.write(record("/last.mp4"), random_windows(2))
    store.compact()
    again = Store.open(place)
    assert (again.lost(thorough=True), again.trouble()) == ([], [])
    assert again.count() == 11 and len(again.videos()) == 4
    assert again.repair() == []
    assert not list(place.glob("*.broken-*"))  # gone with the next mend


def test_after_compaction_both_versions_hold_everything(place: Path) -> None:
    store = Store.open(place)
    store.compact()
    for name in ("videos", "windows"):
        assert len(versions(place / f"{name}.lance")) == 2
        empty(newest(place / f"{name}.lance"))
    again = Store.open(place)
    assert again.count() == 11 and len(again.videos()) == 4
    assert len(again.trouble()) == 2
    assert len(again.repair()) == 2
    assert again.lost(thorough=True) == []


def test_a_version_is_whole_only_with_all_its_files(place: Path) -> None:
    table = place / "windows.lance"
    store = Store.open(place)
    store._tables.drop("windows", "start > 15 AND path = '/1.mp4'")
    assert is_whole(table, lance.dataset(table))
    for folder in ("data", "_deletions"):
        for file in sorted((table / folder).iterdir()):
            kept = shutil.copy(file, place / "kept")
            empty(file)
            held = is_whole(table, lance.dataset(table))
            shutil.move(kept, file)
            if not held:
                break
        else:
            raise AssertionError(f"no file of {folder} is needed")
    assert is_whole(table, lance.dataset(table))


def test_moving_aside_goes_back_to_a_version_and_on_from_it(place: Path) -> None:
    table = place / "videos.lance"
    last = versions(table)[0]
    rows = lance.dataset(table, version=last - 1).count_rows()
    Checksums(table).forget(moved := move_aside(table, above=last - 1))
    assert len(moved) == 1
    assert (place / f"videos.lance.broken-{last}").exists()
    assert (lance.dataset(table).version, lance.dataset(table).count_rows()) == (last - 1, rows)
    fail(Store.open(place), record("/more.mp4", reason="is empty"))
    assert versions(table)[0] == last


@pytest.mark.parametrize("damage", [blank, garble])
def test_a_table_whose_newest_manifest_is_broken_is_still_ours(
    place: Path, damage: Callable[[Path], None]
) -> None:
    damage(newest(place / "windows.lance"))
    assert Tables(str(place)).is_ours("windows")
