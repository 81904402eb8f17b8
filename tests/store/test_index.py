"""The index gives back what it was given, finds the nearest, and loses nothing when it fails."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import Float

from sureshot.errors import StoreError
from sureshot.models.encoders.base import mean_pool
from sureshot.paths import index_place
from sureshot.store.index import Store
from tests.encoded import SETTINGS, contents, fail, make_store, pointing, random_windows, record

AXES = np.eye(24, dtype=np.float32)


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def paths(store: Store, **wanted) -> set[str]:
    """Paths of all windows that a search may find."""
    return {os.fspath(p) for p in store.finder.nearest(AXES[0], 1000, **wanted).paths}


def test_an_empty_index_can_be_searched(store: Store) -> None:
    assert store.finder.nearest(AXES[0], 5).keys == []
    assert store.windows_of(Path("/v.mp4")).keys == []
    assert (store.videos(), store.count(), store.sweep()) == ([], 0, (0, ""))
    store.compact()


def test_an_opened_index_knows_how_it_was_made(tmp_path: Path) -> None:
    assert not Store.exists(tmp_path / "index")
    with pytest.raises(StoreError, match=rf"no index at {tmp_path}/index.*sureshot index FOLDER"):
        Store.open(tmp_path / "index")
    made = make_store(tmp_path / "index", replace(SETTINGS, frames=5, scenes=False))
    assert Store.exists(tmp_path / "index")
    opened = Store.open(tmp_path / "index")
    assert opened.settings == made.settings == replace(SETTINGS, frames=5, scenes=False)
    assert (opened.fingerprint, opened.dim) == (made.fingerprint, made.dim)


def test_other_settings_and_models_are_refused_with_what_to_do(store: Store) -> None:
    with pytest.raises(StoreError, match=r"other settings \(frames = 12\).*--db.*sureshot reset"):
        make_store(store.location, replace(SETTINGS, model="/models/tiny", frames=5))
    with pytest.raises(StoreError, match=r"model 'tiny', not by 'clip'.*--model tiny"):
        store.check_model("clip", "another")
    with pytest.raises(StoreError, match=r"another version of the model 'tiny'") as refused:
        Store.create(store.location, SETTINGS, "another", 24)
    assert "--model" not in str(refused.value)
    assert "Index again, into another place (--db) or after `sureshot reset`." in str(refused.value)
    store.check_model("/models/tiny", store.fingerprint)  # the same one under another name
    again = make_store(store.location, replace(SETTINGS, model="/models/tiny"))
    assert again.settings == SETTINGS


def test_videos_come_back_in_the_order_of_their_paths(store: Store) -> None:
    for name in ("/b.mp4", "/a/z.mp4", "/a.mp4"):
        store.write(record(name, digest=name, note="n", duration=2.5), random_windows(2))
    fail(store, record("/a/b.mp4", reason="is empty", transient=True))
    known = store.videos()
    assert [str(r.path) for r in known] == ["/a/b.mp4", "/a/z.mp4", "/a.mp4", "/b.mp4"]
    assert [r.windows for r in known] == [0, 2, 2, 2]
    assert (known[0].reason, known[0].transient) == ("is empty", True)
    assert (known[3].digest, known[3].note, known[3].duration) == ("/b.mp4", "n", 2.5)


def test_windows_come_back_in_the_order_of_time(store: Store) -> None:
    windows = random_windows(12)
    store.write(record("/v.mp4"), [windows[i] for i in np.random.default_rng(0).permutation(12)])
    back = store.windows_of(Path("/v.mp4"))
    assert back.start.tolist() == [w.start for w in windows]
    for number, window in enumerate(windows):
        np.testing.assert_allclose(back.frames[number], window.frames, rtol=5e-4, atol=1e-7)


def test_another_version_or_a_failure_replaces_a_video_without_rest(store: Store) -> None:
    store.write(record("/other.mp4"), random_windows(4))
    store.write(record("/v.mp4"), random_windows(5))
    store.write(record("/v.mp4", size=7), random_windows(2, seed=1))
    assert store.windows_of(Path("/v.mp4")).start.tolist() == [0, 10]
    assert (store.count(), [r.windows for r in store.videos()]) == (6, [4, 2])
    fail(store, record("/v.mp4", reason="is damaged"))
    assert (store.count(), [r.reason for r in store.videos()]) == (4, ["", "is damaged"])
    store.write(record("/v.mp4"), random_windows(1))
    assert [(r.reason, r.windows) for r in store.videos()] == [("", 4), ("", 1)]


def test_a_copy_has_the_windows_of_its_twin(store: Store) -> None:
    dated = {"shot": "2024-05-31T14:03:22", "shot_from": "exif"}
    store.write(record("/old.mp4", duration=30.0, note="n", **dated), random_windows(3))
    old = store.videos()[0]
    assert store.copy([(old, record("/new.mp4", mtime_ns=9))]) != [None]
    new = next(r for r in store.videos() if r.path == Path("/new.mp4"))
    assert (new.windows, new.duration, new.note, new.mtime_ns) == (3, 30.0, "n", 9)
    assert new.date == old.date and new.date.source == "exif"
    one, two = store.windows_of(Path("/old.mp4")), store.windows_of(Path("/new.mp4"))
    np.testing.assert_array_equal(one.frames, two.frames)
    assert set(two.paths) == {Path("/new.mp4")}
    assert not set(one.keys) & set(two.keys)


def test_a_twin_that_another_process_took_away_is_not_copied(store: Store) -> None:
    store.write(record("/old.mp4"), random_windows(3))
    store.write(record("/new.mp4"), random_windows(2))
    old = store.videos()[1]
    store.remove([old])
    assert store.copy([(old, record("/new.mp4"))]) == [None]
    assert len(store.windows_of(Path("/new.mp4")).keys) == 2


def test_touching_a_video_leaves_its_windows_alone(store: Store) -> None:
    store.write(record("/v.mp4"), random_windows(3))
    before = contents(store.location)[1]
    store.touch([replace(store.videos()[0], mtime_ns=99)])
    assert store.videos()[0].mtime_ns == 99
    assert store.videos()[0].windows == 3
    assert contents(store.location)[1] == before


def test_removed_videos_are_gone_with_their_windows(store: Store) -> None:
    for number in range(4):
        store.write(record(f"/{number}.mp4"), random_windows(2))
    store.remove(store.videos()[1:3])
    store.remove([])
    store.remove([record("/never-there.mp4")])
    assert [str(r.path) for r in store.videos()] == ["/0.mp4", "/3.mp4"]
    assert paths(store) == {"/0.mp4", "/3.mp4"}


def test_the_nearest_are_those_of_a_comparison_one_by_one(store: Store) -> None:
    rng = np.random.default_rng(0)
    for number in range(6):
        store.write(record(f"/{number}.mp4"), random_windows(10, seed=number))
    everything = store.finder.nearest(AXES[0], 1000)
    pooled = mean_pool(everything.frames, everything.mask)
    for _ in range(10):
        query: Float[np.ndarray, " dim"] = rng.standard_normal(24).astype(np.float32)
        query /= np.linalg.norm(query)
        found = store.finder.nearest(query, 7)
        scores = mean_pool(found.frames, found.mask) @ query
        assert (np.diff(scores) <= 2e-3).all()  # in order, but for the rounding of 16 bits
        np.testing.assert_allclose(scores, np.sort(pooled @ query)[::-1][:7], atol=2e-3)


@pytest.mark.parametrize(
    ("folder", "found"),
    [
        ("/a/b", {"/a/b/1.mp4", "/a/b/c/2.mp4"}),
        ("/a/b/", {"/a/b/1.mp4", "/a/b/c/2.mp4"}),
        ("/a/b/1.mp4", {"/a/b/1.mp4"}),
        ("/a/b/1", set()),
        ("/A/B", set()),
        ("/", {"/a/b/1.mp4", "/a/b/c/2.mp4", "/a/bc/3.mp4"}),
    ],
)
def test_under_means_at_or_below_and_no_sibling(store: Store, folder: str, found: set) -> None:
    for name in ("/a/b/1.mp4", "/a/b/c/2.mp4", "/a/bc/3.mp4"):
        store.write(record(name), random_windows(1))
    assert paths(store, selection=Path(folder)) == found


@pytest.mark.parametrize(
    "name",
    [b"it's", b'"100%"', b"a_b", b"back\\slash", b"\xe9", "é視\U0001f3ac".encode(), b"-- ;"],
)
def test_any_name_can_be_searched_under(store: Store, name: bytes) -> None:
    folder = os.fsdecode(b"/v/" + name)
    store.write(record(f"{folder}/1.mp4"), random_windows(2))
    store.write(record("/v/axb/1.mp4"), random_windows(2))
    assert paths(store, selection=Path(folder)) == {f"{folder}/1.mp4"}
    assert len(store.windows_of(Path(folder) / "1.mp4").keys) == 2
    assert paths(store, exclude=Path(folder) / "1.mp4") == {"/v/axb/1.mp4"}
    store.remove([r for r in store.videos() if os.fspath(r.path).startswith(folder)])
    assert paths(store) == {"/v/axb/1.mp4"}


def test_under_and_exclude_leave_as_many_as_are_asked_for(store: Store) -> None:
    store.write(record("/near.mp4"), pointing([AXES[0]] * 20))
    store.write(record("/far.mp4"), pointing([AXES[1]] * 5))
    assert len(store.finder.nearest(AXES[0], 5, selection=Path("/far.mp4")).keys) == 5
    assert len(store.finder.nearest(AXES[0], 5, exclude=Path("/near.mp4")).keys) == 5


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.geteuid() or not shutil.which("mount") or subprocess.run(command, check=False).returncode:
        pytest.skip("needs the right to mount a file system")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_loses_nothing_and_goes_on_once_there_is_space(small_disk: Path) -> None:
    store = make_store(small_disk / "index")
    store.write(record("/v.mp4"), random_windows(3))
    filler = small_disk / "filler"
    filler.write_bytes(b"x" * 2_400_000)
    with pytest.raises(StoreError, match=rf"{small_disk}/index.*free some space") as caught:
        for number in range(100):
            store.write(record(f"/{number}.mp4"), random_windows(100))
    assert "\n" not in str(caught.value)
    store.compact()  # upkeep is quiet about it
    reader = Store.open(small_disk / "index")
    done = reader.videos()
    assert reader.count() == sum(r.windows for r in done)
    assert len(reader.windows_of(Path("/v.mp4")).keys) == 3
    filler.unlink()
    store.write(record("/after.mp4"), random_windows(100))
    assert len(reader.videos()) == len(done) + 1
    assert reader.count() == sum(r.windows for r in reader.videos())


def test_many_writes_are_compacted_on_the_way(store: Store) -> None:
    for number in range(70):
        fail(store, record(f"/{number}.mp4", reason="is damaged"))
    assert len(list(Path(store.location, "videos.lance", "data").iterdir())) < 20
    assert len(store.videos()) == 70


def test_a_window_takes_the_space_of_its_numbers_and_little_more(tmp_path: Path) -> None:
    # Sizes of the bundled encoder.
    store = Store.create(tmp_path / "large", SETTINGS, "f", 256)
    store.write(record("/v.mp4"), random_windows(30, frames=12, dim=256))
    store.compact()
    store.compact()  # the version before is kept
    numbers = 2 * (256 + 12 * 256) + 12 * 288
    assert numbers < store.bytes_on_disk() / 30 < 1.1 * numbers


def test_windows_and_videos_that_can_be_found_are_counted(store: Store) -> None:
    assert store.count_videos() == store.count() == 0
    for path, windows in (("/v/a.mp4", 2), ("/v/b/c.mp4", 3), ("/v-2/d.mp4", 1)):
        store.write(record(path), random_windows(windows))
    fail(store, record("/v/e.mp4", reason="broken"))
    for folder, videos, windows in (
        (None, 3, 6),
        (Path("/v"), 2, 5),
        (Path("/v/b/"), 1, 3),
        (Path("/v/a.mp4"), 1, 2),
        (Path("/x"), 0, 0),
    ):
        assert (store.count_videos(folder), store.count(folder)) == (videos, windows)


@pytest.mark.skipif(os.name != "posix", reason="modes are those of POSIX")
def test_an_index_in_the_data_folder_is_private_and_one_elsewhere_as_others_are(
    tmp_path, monkeypatch
):
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    before = os.umask(0o022)
    try:
        own, shared = make_store(index_place()), make_store(tmp_path / "shared")
    finally:
        os.umask(before)
    assert Path(own.location).stat().st_mode & 0o777 == 0o700
    assert Path(shared.location).stat().st_mode & 0o777 == 0o755
