"""Damage of any file of a table is seen before Lance reads it: nothing wrong, no process ends."""

import os
import random
import shutil
from pathlib import Path

import lance
import numpy as np
import pytest

from sureshot.errors import StoreError
from sureshot.store import checksums, vector_search
from sureshot.store.checksums import FILE, Checksums
from sureshot.store.index import Store
from sureshot.store.maintenance import find_faults
from tests.encoded import make_store, random_windows, record
from tests.processes import error_of

QUERY = np.full(24, 0.2, np.float32)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An index of four videos with an index of vectors, the last video added after compaction."""
    place = tmp_path_factory.mktemp("sound") / "index"
    store = make_store(place)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(vector_search, "SCANNED", 5)
        for number in range(3):
            store.write(record(f"/{number}.mp4"), random_windows(4, seed=number))
        store.compact()
    store.write(record("/last.mp4"), random_windows(2, seed=7))
    return place


@pytest.fixture
def place(sound: Path, tmp_path: Path) -> Path:
    return shutil.copytree(sound, tmp_path / "index")


def flip(path: Path, draw: random.Random) -> None:
    data = bytearray(path.read_bytes())
    data[draw.randrange(len(data))] ^= 1 << draw.randrange(8)
    path.write_bytes(data)


def newest_manifest(place: Path, name: str) -> Path:
    return min((place / f"{name}.lance" / "_versions").glob("*.manifest"))


def largest(folder: Path) -> Path:
    return max((p for p in folder.rglob("*") if p.is_file()), key=lambda p: p.stat().st_size)


@pytest.mark.parametrize("name", [pytest.param("videos", marks=pytest.mark.slow), "windows"])
def test_one_bit_of_the_newest_manifest_or_all_of_it_costs_one_commit_and_is_reported(
    sound: Path, tmp_path: Path, name: str
) -> None:
    for seed in range(25):
        place = shutil.copytree(sound, tmp_path / str(seed))
        if seed:
            flip(newest_manifest(place, name), random.Random(seed))
        else:
            newest_manifest(place, name).unlink()
        store = Store.open(place)
        assert len(store.finder.nearest(QUERY, 99).keys) == (14 if name == "videos" else 12)
        assert len(store.videos()) == (3 if name == "videos" else 4)
        rows = "3 videos where the newest had 4" if name == "videos" else "12 windows where"
        assert f"newest version of the table of {name}" in store.trouble()[0]
        assert f"which has {rows}" in store.trouble()[0]
        assert any("newest version" in fault.what for fault in find_faults(str(place)))
        assert any("was damaged" in line for line in store.repair())
        for lost in store.lost(thorough=True):
            assert lost.path == Path("/last.mp4")
        store.write(record("/last.mp4"), random_windows(2, seed=7))
        again = Store.open(place)
        assert (again.count(), len(again.videos()), again.trouble()) == (14, 4, [])
        assert again.lost(thorough=True) == []


def test_a_newest_manifest_without_checksum_and_header_is_not_used(place: Path) -> None:
    (place / "windows.lance" / FILE).unlink()
    lance.dataset(place / "windows.lance").update_schema_metadata({}, replace=True)
    assert Store.open(place).count() == 14
    assert "newest version of the table of windows" in Store.open(place).trouble()[0]


def read_all(place: Path) -> None:
    store = Store.open(place)
    store.videos()
    store.finder.nearest(QUERY, 5)


@pytest.mark.parametrize("name", [pytest.param("videos", marks=pytest.mark.slow), "windows"])
def test_a_file_at_which_lance_ends_the_process_is_refused_and_its_videos_come_again(
    place: Path, name: str
) -> None:
    path = largest(place / f"{name}.lance" / "data")
    data = bytearray(path.read_bytes())
    data[-16:-12] = b"\xff" * 4  # how many buffers there are, for which Lance asks the system
    path.write_bytes(data)
    said = error_of(read_all, place)  # it has an end with a code of its own
    assert said.startswith("StoreError: Cannot read the index at") and "sureshot index" in said
    with pytest.raises(StoreError, match=f"a file of {name} is not what was written"):
        find_faults(str(place))
    store = Store.open(place)
    said = "; ".join(store.repair())
    assert f"1 file of the table of {name} had damage" in said
    many = (
        "3 videos had a damaged or lost entry in the index, which was made again; each is encoded"
    )
    assert name == "windows" or many in said
    lost = store.lost(thorough=True)
    assert len(lost) == (3 if name == "windows" else 0)
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(4, seed=number))
    again = Store.open(place)
    assert (again.count(), len(again.videos()), again.trouble()) == (14, 4, [])
    assert find_faults(str(place)) == []


@pytest.mark.parametrize("name", ["videos", "windows"])
def test_of_a_damaged_file_what_is_sound_stays(place: Path, name: str) -> None:
    path = largest(place / f"{name}.lance" / "data")
    data = path.read_bytes()
    what = b"/1.mp4"  # of one video, in both tables
    assert what in data
    path.write_bytes(data.replace(what, b"/!.mp4"))
    store = Store.open(place)
    store.videos()
    store.finder.nearest(QUERY, 99)
    assert any(f"A file of the table of {name}" in sentence for sentence in store.trouble())
    assert any(f"file of the table of {name}" in fault.what for fault in find_faults(str(place)))
    assert f"1 file of the table of {name} had damage" in "; ".join(store.repair())
    known = {video.path.name: video.size for video in store.videos()}
    assert (known["0.mp4"], known["2.mp4"], known["1.mp4"]) == (
        100,
        100,
        -1 if name == "videos" else 100,
    )
    lost = {video.path.name for video in store.lost(thorough=True)}
    assert lost == (set() if name == "videos" else {"1.mp4"})
    assert not any("file of the table" in fault.what for fault in find_faults(str(place)))


def test_without_its_index_of_vectors_a_search_compares_all(place: Path, monkeypatch) -> None:
    right = Store.open(place).finder.nearest(QUERY, 14).keys
    flip(largest(place / "windows.lance" / "_indices"), random.Random(0))
    store = Store.open(place)
    assert store.finder.nearest(QUERY, 14).keys == right
    assert "index of vectors" in store.trouble()[0] and "sureshot index" in store.trouble()[0]
    assert any("index of vectors" in fault.what for fault in find_faults(str(place)))
    monkeypatch.setattr(vector_search, "SCANNED", 5)
    assert store.repair() == ["The index of vectors was damaged and was made again."]
    assert (
        find_faults(str(place)) == []
        and len(Store.open(place).finder.nearest(QUERY, 14).keys) == 14
    )


def test_damage_that_changes_no_time_is_seen_in_small_files_and_by_a_check(
    place: Path, monkeypatch
) -> None:
    path = largest(place / "windows.lance" / "data")
    name, before = f"data/{path.name}", path.stat()
    flip(path, random.Random(0))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    sums = Checksums(place / "windows.lance")
    assert sums.damaged([name]) == {name}
    monkeypatch.setattr(checksums, "_READ_ANYWAY", 0)
    assert sums.damaged([name]) == set()
    assert sums.damaged([name], thorough=True) == {name}


def test_a_copy_with_other_times_is_read_once_and_is_sound(place: Path, monkeypatch) -> None:
    for path in place.rglob("*"):
        os.utime(path, (1e9, 1e9))
    assert Store.open(place).finder.nearest(QUERY, 5).keys
    monkeypatch.setattr(checksums, "_READ_ANYWAY", 0)
    read = []
    crc = checksums._crc
    monkeypatch.setattr(checksums, "_crc", lambda path: read.append(path) or crc(path))
    assert Store.open(place).finder.nearest(QUERY, 5).keys
    assert read == []


def test_damaged_checksums_say_nothing(sound: Path, tmp_path: Path) -> None:
    for seed in range(10):
        place, draw = shutil.copytree(sound, tmp_path / str(seed)), random.Random(seed)
        path = place / "windows.lance" / FILE
        flip(path, draw)
        path.write_bytes(path.read_bytes()[: draw.randrange(len(path.read_bytes()))])
        store = Store.open(place)
        assert (len(store.finder.nearest(QUERY, 99).keys), store.trouble()) == (14, [])
        store.write(record("/new.mp4"), random_windows(3))  # its lines are not spoilt by the cut
        flip(newest_manifest(place, "windows"), draw)
        assert "newest version" in Store.open(place).trouble()[0]


def test_checksums_of_files_that_are_gone_go_with_compaction(place: Path) -> None:
    store = Store.open(place)
    for number in range(5):
        store.write(record("/last.mp4"), random_windows(2, seed=number))
    store.compact()
    for name in ("videos", "windows"):
        table = place / f"{name}.lance"
        names = [line.split()[4] for line in (table / FILE).read_text().splitlines() if line]
        assert names and all((table / name).exists() for name in names)
