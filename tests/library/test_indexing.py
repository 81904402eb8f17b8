"""An index follows its folders: nothing is done twice, nothing is lost, whatever ends a run."""

import os
import shutil
import signal
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from jaxtyping import UInt8
from PIL import Image

import sureshot
from sureshot.errors import QueryError, StoreError, SureshotError
from sureshot.library import indexing, status
from sureshot.library.encoding import VideoProgress, content_digest
from sureshot.library.index_result import Indexed
from sureshot.library.indexing import Run, index
from sureshot.library.search import Searcher
from sureshot.media import discover
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.paths import Shard
from sureshot.store import integrity
from sureshot.store.index import Store
from sureshot.store.locks import staging_lock
from sureshot.store.rows import IndexSettings, VideoRecord
from sureshot.store.writing import StagedVideo
from tests import processes
from tests.clips import coloured
from tests.encoded import contents, make_store, random_windows, record, spoil

CLIPS = 8


class Counting(TinyEncoder):
    """Counts the windows that were decoded for it."""

    def __init__(self) -> None:
        super().__init__()
        self.windows = 0

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 16 16"]:
        self.windows += 1
        return super().prepare(frames)


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Clips of two or three colours, in two folders."""
    folder = tmp_path_factory.mktemp("clips")
    names = list(COLOURS)
    for number in range(CLIPS):
        target = folder / ("a" if number % 2 else "b") / f"{number}.mp4"
        target.parent.mkdir(exist_ok=True)
        chosen = [names[(number + i) % 8] for i in range(2 + number % 2)]
        coloured(target, chosen, rate=5)
    return folder


@pytest.fixture(scope="module")
def whole(clips: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[list, ...]:
    """What an index of them holds that was made without interruption."""
    place = tmp_path_factory.mktemp("whole") / "index"
    Run(make_store(place), TinyEncoder(), [clips]).ingest()
    videos, windows, words = contents(place)
    assert len(videos) == CLIPS
    assert len(windows) == sum(2 + number % 2 for number in range(CLIPS))
    assert len(words) == CLIPS  # that they have no subtitles
    return videos, windows, words


@pytest.fixture
def library(clips: Path, tmp_path: Path) -> Path:
    """A copy of three of the clips, to change."""
    folder = tmp_path / "library"
    for number in range(3):
        target = folder / ("a" if number % 2 else "b") / f"{number}.mp4"
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(clips / target.parent.name / target.name, target)
    return folder


@pytest.fixture
def store(tmp_path: Path) -> Store:
    return make_store(tmp_path / "index")


def run(store: Store, *paths: Path, **options) -> tuple[Indexed, int]:
    """The result of a run, and how many windows it decoded."""
    encoder = Counting()
    return Run(store, encoder, list(paths), **options).ingest(), encoder.windows


def known(store: Store) -> dict[str, VideoRecord]:
    return {r.path.name: r for r in store.videos()}


def later(path: Path) -> None:
    """A file as it looks after `touch`."""
    stat = path.stat()
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))


def test_a_first_run_indexes_all_and_says_so(store: Store, library: Path) -> None:
    result, decoded = run(store, library)
    assert (result.found, result.indexed, result.windows, decoded) == (3, 3, 7, 7)
    assert result.seconds == pytest.approx(14, abs=0.5)
    assert result.bytes_done == result.bytes_found == sum(r.size for r in store.videos())
    assert not result.failed
    assert not result.interrupted
    assert result.elapsed > 0
    for each in store.videos():
        assert each.digest
        assert each.duration == pytest.approx(2 * each.windows, abs=0.3)


def test_a_second_run_does_nothing(store: Store, library: Path) -> None:
    run(store, library)
    before = contents(store.location)
    versions = sorted(p.name for p in Path(store.location).rglob("*.manifest"))
    result, decoded = run(store, library)
    assert (result.unchanged, result.indexed, decoded) == (3, 0, 0)
    assert contents(store.location) == before
    assert sorted(p.name for p in Path(store.location).rglob("*.manifest")) == versions


def test_a_file_of_the_same_size_and_time_is_not_even_read(store: Store, library: Path) -> None:
    run(store, library)
    for path in library.rglob("*.mp4"):
        stat = path.stat()
        path.write_bytes(b"\0" * stat.st_size)
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    result, decoded = run(store, library)
    assert (result.unchanged, decoded) == (3, 0)
    result, _ = run(store, library, force=True)
    assert len(result.failed) == 3 and store.count() == 0


def test_a_touched_file_is_not_encoded_again_and_is_known_from_then_on(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, library)
    windows = contents(store.location)[1]
    later(library / "b" / "0.mp4")
    result, decoded = run(store, library)
    assert (result.unchanged, result.copied, result.indexed, decoded) == (3, 0, 0, 0)
    assert contents(store.location)[1] == windows
    assert known(store)["0.mp4"].mtime_ns == (library / "b" / "0.mp4").stat().st_mtime_ns

    def unread(source: object) -> str:
        raise AssertionError(f"{source} was read again")

    monkeypatch.setattr("sureshot.library.indexing.content_digest", unread)
    assert run(store, library)[0].unchanged == 3


def test_a_changed_file_is_indexed_again_without_rest(store: Store, library: Path) -> None:
    run(store, library)
    coloured(library / "a" / "1.mp4", ["white"], rate=5)
    result, decoded = run(store, library)
    assert (result.unchanged, result.indexed, decoded) == (2, 1, 1)
    assert store.windows_of(library / "a" / "1.mp4").start.tolist() == [0]
    assert store.count() == 5
    assert known(store)["1.mp4"].windows == 1


def test_a_moved_file_is_recognised(store: Store, library: Path) -> None:
    run(store, library)
    before = store.windows_of(library / "a" / "1.mp4")
    (library / "a" / "1.mp4").rename(library / "moved.mkv")
    result, decoded = run(store, library)
    assert (result.moved, result.copied, result.indexed, decoded) == (1, 0, 0, 0)
    assert set(known(store)) == {"0.mp4", "2.mp4", "moved.mkv"}
    after = store.windows_of(library / "moved.mkv")
    np.testing.assert_array_equal(after.frames, before.frames)
    assert store.count() == 7
    assert run(store, library)[0].unchanged == 3


@pytest.mark.parametrize("name", ["copy", "remove"])
@pytest.mark.parametrize("done", [True, False])
def test_a_move_that_is_interrupted_leaves_the_video_in_one_place(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch, name: str, done: bool
) -> None:
    run(store, library)
    (library / "a" / "1.mp4").rename(library / "moved.mkv")
    whole = getattr(Store, name)

    def interrupted(self: Store, *arguments) -> None:
        monkeypatch.setattr(Store, name, whole)
        if done:
            whole(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, name, interrupted)
    assert run(store, library)[0].interrupted
    result, decoded = run(store, library)
    assert (result.missing, result.warnings, decoded) == (0, [], 0)
    assert set(known(store)) == {"0.mp4", "2.mp4", "moved.mkv"}


def test_no_index_is_made_in_the_place_of_a_disk_that_is_not_there(
    tmp_path: Path, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = tmp_path / "mnt" / "disk"
    disk.mkdir(parents=True)
    monkeypatch.setattr(discover, "_FOR_DISKS", {str(disk.parent)})
    for verb in (partial(sureshot.index, library, model="tiny"), sureshot.open_index):
        with pytest.raises(StoreError, match="on a disk that is not there"):
            verb(db=disk / "index")
    found = {check.name: check for check in sureshot.library.examine(disk / "index")}["index"]
    assert found.state == "broken" and "on a disk that is not there" in found.detail
    assert not list(disk.iterdir())
    (disk / "index").mkdir()  # by somebody for whom it is no disk
    assert sureshot.index(library, db=disk / "index", model="tiny").indexed == 3


def test_a_file_moved_and_copied_at_once_is_recognised_twice(store: Store, library: Path) -> None:
    run(store, library)
    (library / "a" / "1.mp4").rename(library / "one.mp4")
    shutil.copy(library / "one.mp4", library / "two.mp4")
    result, decoded = run(store, library)
    assert (result.moved, result.copied, decoded) == (1, 1, 0)
    assert set(known(store)) == {"0.mp4", "2.mp4", "one.mp4", "two.mp4"}
    assert store.count() == 10


def test_a_folder_that_moved_takes_a_few_commits_however_much_is_in_it(
    store: Store, library: Path
) -> None:
    clip = (library / "b" / "2.mp4").read_bytes()
    for number in range(3, 15):
        (library / "b" / f"{number}.mp4").write_bytes(clip + bytes(number))
    run(store, library)
    before = store._tables.use("windows", lambda table: table.version)
    (library / "b").rename(library / "c")
    result, decoded = run(store, library)
    assert (result.moved, result.unchanged, decoded) == (14, 1, 0)
    assert store._tables.use("windows", lambda table: table.version) - before < 10
    assert {r.path for r in store.videos()} == {*library.rglob("*.mp4")}


def test_a_new_file_is_compared_only_with_what_has_its_content(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    compared = []

    class Digest(str):
        __hash__ = str.__hash__

        def __eq__(self, other: object) -> bool:
            compared.append(other)
            return str.__eq__(self, other)

    def counted(store: Store, sizes: set[int]) -> list[VideoRecord]:
        return [replace(known, digest=Digest(known.digest)) for known in of_sizes(store, sizes)]

    of_sizes = Store.of_sizes
    monkeypatch.setattr(Store, "of_sizes", counted)
    new = tmp_path / "new"
    new.mkdir()
    for number in range(40):
        (new / f"{number}.mp4").write_bytes(bytes([number]) * 100)
    (source,) = discover.discover([new / "7.mp4"])
    digests = [str(number) for number in range(39)] + [content_digest(source)]
    known = [record(f"/{number}.mp4", digest=digest) for number, digest in enumerate(digests)]
    store.commit([store.stage(one, random_windows(1)) for one in known])
    run = Run(store, TinyEncoder(), [new])
    left = {source.path.name for source in run.todo(run.find())}
    assert left == {f"{number}.mp4" for number in range(40)} - {"7.mp4"}
    assert run.result.copied + run.result.moved == 1 and len(compared) < 40


def test_a_run_for_one_file_looks_at_no_other_video_of_the_index(
    store: Store, library: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = [record(f"/elsewhere/{number}.mp4") for number in range(20)]
    store.commit([store.stage(one, random_windows(1)) for one in known])
    made, video_record = [], integrity.video_record

    def counted(row: dict) -> VideoRecord:
        made.append(row["path"])
        return video_record(row)

    monkeypatch.setattr(integrity, "video_record", counted)
    assert Run(store, TinyEncoder(), [library / "a"]).ingest().indexed == 1
    assert {Path(path).parent for path in made} == {library / "a"}
    made.clear()
    (library / "a" / "1.mp4").unlink()
    (library / "b" / "broken.mp4").write_text("no video")
    result = Run(store, TinyEncoder(), [library], prune=True).ingest()
    assert (result.indexed, result.pruned, len(result.failed)) == (2, 1, 1)
    assert all(Path(path).is_relative_to(library) for path in made)
    (library / "b" / "broken.mp4").unlink()
    Run(
        store, TinyEncoder(), [library / "a"]
    ).ingest()  # which knows of failed ones, wherever they are
    assert {one.path for one in store.videos() if one.path.is_relative_to(library)} == {
        library / "b" / "0.mp4",
        library / "b" / "2.mp4",
    }


def test_two_files_that_exchange_their_names_are_recognised(store: Store, library: Path) -> None:
    one, two = library / "a" / "1.mp4", library / "b" / "0.mp4"
    one.write_bytes(one.read_bytes().ljust(two.stat().st_size, b"\0"))
    two.write_bytes(two.read_bytes().ljust(one.stat().st_size, b"\0"))
    run(store, library)
    was = [store.windows_of(path).frames for path in (one, two)]
    one.rename(library / "other"), two.rename(one), (library / "other").rename(two)
    later(one), later(two)
    result, decoded = run(store, library)
    assert (result.copied, result.moved, decoded) == (2, 0, 0)
    for path, frames in zip((two, one), was, strict=True):
        np.testing.assert_array_equal(store.windows_of(path).frames, frames)


def test_a_file_that_now_holds_what_another_does_is_recognised(store: Store, library: Path) -> None:
    run(store, library)
    shutil.copy(library / "b" / "0.mp4", library / "a" / "1.mp4")
    result, decoded = run(store, library)
    assert (result.copied, decoded) == (1, 0)
    assert len(store.windows_of(library / "a" / "1.mp4").keys) == 2
    assert known(store)["1.mp4"].digest == known(store)["0.mp4"].digest


def test_a_twin_whose_windows_are_gone_is_decoded_instead(store: Store, library: Path) -> None:
    run(store, library)
    twin = known(store)["1.mp4"]
    shutil.copy(library / "a" / "1.mp4", library / "copy.mp4")
    store._tables.drop("windows", f"video = '{twin.id}'")
    result, decoded = run(store, library)
    assert (result.copied, result.indexed, decoded) == (0, 2, 6)
    assert result.warnings == ["1 video had lost windows and was indexed again."]
    assert len(store.windows_of(library / "copy.mp4").keys) == 3


def test_a_folder_of_frames_is_followed_too(store: Store, tmp_path: Path) -> None:
    folder = tmp_path / "library" / "frames"
    folder.mkdir(parents=True)
    for number in range(4):
        Image.new("RGB", (32, 32), COLOURS["green"]).save(folder / f"{number}.png")
    assert run(store, tmp_path / "library")[0].indexed == 1
    assert run(store, tmp_path / "library")[0].unchanged == 1
    later(folder / "2.png")
    result, decoded = run(store, tmp_path / "library")
    assert (result.unchanged, decoded) == (1, 0)
    folder.rename(tmp_path / "library" / "moved")
    result, decoded = run(store, tmp_path / "library")
    assert (result.moved, decoded) == (1, 0)
    for path in (tmp_path / "library" / "moved").iterdir():
        path.unlink()
    assert run(store, tmp_path / "library")[0].missing == 1


def test_force_indexes_all_again(store: Store, library: Path) -> None:
    run(store, library)
    before = contents(store.location)
    result, decoded = run(store, library, force=True)
    assert (result.indexed, result.unchanged, decoded) == (3, 0, 7)
    assert contents(store.location) == before


def test_what_is_gone_stays_until_it_is_pruned(store: Store, library: Path) -> None:
    run(store, library)
    (library / "a" / "1.mp4").unlink()
    result, _ = run(store, library)
    assert (result.missing, result.pruned) == (1, 0)
    assert "1.mp4" in known(store)
    result, _ = run(store, library, prune=True)
    assert (result.missing, result.pruned) == (0, 1)
    assert set(known(store)) == {"0.mp4", "2.mp4"}
    assert store.count() == 4


def test_pruning_takes_only_what_lies_below_the_given_paths(store: Store, library: Path) -> None:
    run(store, library)
    for path in list(library.rglob("*.mp4")):
        path.unlink()
    (library / "b" / "here.txt").touch()
    result, _ = run(store, library / "a", prune=True)
    assert result.pruned == 1
    assert set(known(store)) == {"0.mp4", "2.mp4"}


def test_pruning_leaves_an_unplugged_drive_alone(store: Store, library: Path) -> None:
    run(store, library)
    library.rename(library.with_name("unplugged"))
    result, _ = run(store, library, prune=True)
    assert (result.pruned, result.missing, result.away) == (0, 0, 3)
    assert [path for path, _ in result.failed] == [library]
    assert len(known(store)) == 3


@pytest.mark.parametrize(
    "left", ["an empty folder", "no folder", "a folder of disks", "a disk mounted by hand"]
)
def test_pruning_leaves_a_disk_alone_that_is_not_mounted(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch, left: str
) -> None:
    # What is named is there, and so is the empty folder that the disk would be mounted on.
    disk = library / "disk"
    (library / "a").rename(disk)
    run(store, library)
    if left in ("a folder of disks", "a disk mounted by hand"):
        monkeypatch.setattr(discover, "_FOR_DISKS", {str(library)})
    else:
        monkeypatch.setattr(discover, "_mounts", lambda: (str(disk),))
    shutil.rmtree(disk)
    if left in ("an empty folder", "a disk mounted by hand"):
        disk.mkdir()
    (library / "b" / "0.mp4").unlink()
    result, _ = run(store, library, prune=True)
    assert (result.pruned, result.missing, result.away) == (1, 0, 1)
    assert set(known(store)) == {"1.mp4", "2.mp4"}
    answer = Searcher(store, TinyEncoder()).search("red", limit=9)
    marks = {hit.path.name: hit.mark for hit in answer}
    assert marks == {"1.mp4": " (not there now)", "2.mp4": ""}
    assert "is its disk connected?" in answer.warnings[-1]
    assert "--prune" not in repr(answer)


def test_a_copy_of_what_is_on_a_disk_that_is_not_mounted_takes_nothing_from_it(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run(store, library)
    monkeypatch.setattr(discover, "_mounts", lambda: (str(library / "a"),))
    (library / "a" / "1.mp4").rename(library / "b" / "copy.mp4")
    result, decoded = run(store, library)
    assert (result.copied, result.moved, decoded) == (1, 0, 0)


def test_failures_are_remembered_and_left_alone_until_something_changes(
    store: Store, library: Path
) -> None:
    bad = library / "bad.mp4"
    bad.write_bytes(b"this is no video")
    result, _ = run(store, library)
    ((path, reason),) = result.failed
    assert path == bad
    assert "damaged" in reason
    assert known(store)["bad.mp4"].reason == reason
    assert known(store)["bad.mp4"].windows == 0

    result, _ = run(store, library)
    assert (result.known_failures, result.failed, result.unchanged) == (1, [], 3)

    result, _ = run(store, library, force=True)
    assert (result.known_failures, len(result.failed), result.indexed) == (0, 1, 3)

    later(bad)
    result, _ = run(store, library)
    assert (result.known_failures, len(result.failed)) == (0, 1)

    coloured(bad, ["red"], rate=5)
    result, _ = run(store, library)
    assert (result.known_failures, result.failed, result.indexed) == (0, [], 1)
    assert known(store)["bad.mp4"].reason == ""


@pytest.mark.parametrize("on_a_disk", [False, True])
def test_a_failure_is_forgotten_with_its_file_unless_that_is_on_a_disk_that_is_away(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch, on_a_disk: bool
) -> None:
    (library / "a" / "bad.mp4").write_bytes(b"this is no video")
    run(store, library)
    old, new = library / "a", library / "renamed"
    old.rename(new)
    if on_a_disk:
        monkeypatch.setattr(discover, "_mounts", lambda: (str(old),))
    # Also when another place is indexed.
    result, _ = run(store, library / "b")
    assert (result.missing, result.pruned, result.away) == (0, 0, 0)
    assert ("bad.mp4" in known(store)) == on_a_disk
    run(store, library)
    failed = [video.path.parent for video in store.videos() if video.reason]
    assert failed == ([old, new] if on_a_disk else [new])


class Refused(TinyEncoder):
    """As if the system refused to read."""

    def prepare(
        self, frames: UInt8[np.ndarray, "frames height width 3"]
    ) -> UInt8[np.ndarray, "frames 3 16 16"]:
        raise PermissionError(13, "Permission denied")


def test_what_may_go_away_by_itself_is_tried_again(store: Store, library: Path) -> None:
    result = Run(store, Refused(), [library]).ingest()
    assert [reason for _, reason in result.failed] == ["permission denied"] * 3
    result, decoded = run(store, library)
    assert (result.indexed, result.known_failures, decoded) == (3, 0, 7)


def test_a_file_out_of_reach_just_now_keeps_what_is_indexed_of_it(
    store: Store, library: Path
) -> None:
    run(store, library)
    before = contents(store.location)
    result = Run(store, Refused(), [library], force=True).ingest()
    assert len(result.failed) == 3
    assert contents(store.location) == before


def test_a_changed_file_out_of_reach_does_not_keep_what_it_no_longer_shows(
    store: Store, library: Path
) -> None:
    run(store, library)
    coloured(library / "a" / "1.mp4", ["white"], rate=5)
    Run(store, Refused(), [library]).ingest()
    assert known(store)["1.mp4"].transient
    assert store.count() == 4


def test_damage_that_did_not_stop_a_video_is_reported(store: Store, tmp_path: Path) -> None:
    path = coloured(tmp_path / "v.mkv", ["red", "green", "blue"])
    os.truncate(path, path.stat().st_size * 2 // 3)
    result, _ = run(store, path)
    (video,) = store.videos()
    assert result.indexed == 1
    assert video.note
    assert result.notes == [(path, video.note)]


@pytest.fixture
def one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every video is committed as soon as it is encoded."""
    monkeypatch.setattr(indexing, "_EVERY", 0.0)


@pytest.mark.usefixtures("one_by_one")
def test_progress_is_told_within_a_long_video(store: Store, tmp_path: Path) -> None:
    path = coloured(tmp_path / "long.mp4", list(COLOURS) * 2, rate=5)
    size, told, decoded = path.stat().st_size, [], []

    def observe(result: Indexed) -> None:
        told.append(result.bytes_done + result.bytes_begun)
        decoded.append(result.decoded)

    result, _ = run(store, path, progress=observe)
    assert decoded == sorted(decoded) and len(set(decoded)) > 8
    assert (decoded[-1], result.speed * result.elapsed) == pytest.approx((result.seconds,) * 2)
    expected = [size * (number + 1) / 16 for number in range(16)]
    assert told == pytest.approx([0, *expected, size], abs=size / 30)


@pytest.mark.usefixtures("one_by_one")
def test_progress_never_goes_back_where_frames_and_windows_report_it(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sureshot.library.encoding._REPORTED", 0.0)
    path = coloured(tmp_path / "long.mp4", list(COLOURS) * 2, rate=5)
    decoded: list[float] = []
    run(store, path, progress=lambda result: decoded.append(result.decoded))
    assert decoded == sorted(decoded) and len(set(decoded)) > 50


@pytest.mark.parametrize("pause", [0.0, 1e9])
def test_an_interrupt_ends_the_run_and_keeps_what_is_done(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch, pause: float
) -> None:
    monkeypatch.setattr(indexing, "_EVERY", pause)
    taken = []
    take = Run.take

    def until_two(self: Run, packed: StagedVideo | VideoProgress) -> None:
        take(self, packed)
        taken.append(isinstance(packed, StagedVideo))
        if sum(taken) == 2:
            raise KeyboardInterrupt

    monkeypatch.setattr(Run, "take", until_two)
    result, _ = run(store, library, workers=1)
    monkeypatch.setattr(Run, "take", take)
    assert result.interrupted and result.indexed == 2
    assert len(known(store)) == 2
    result, _ = run(store, library)
    assert (result.unchanged, result.indexed, result.interrupted) == (2, 1, False)


@pytest.mark.parametrize("committed", [True, False])
def test_a_video_that_is_being_written_at_an_interrupt_is_written_and_counted(
    store: Store, library: Path, monkeypatch: pytest.MonkeyPatch, committed: bool
) -> None:
    commit = Store.commit

    def interrupted(self: Store, *arguments) -> None:
        monkeypatch.setattr(Store, "commit", commit)
        if committed:
            commit(self, *arguments)
        raise KeyboardInterrupt

    monkeypatch.setattr(Store, "commit", interrupted)
    result, _ = run(store, library)
    assert result.interrupted
    assert result.indexed == len(known(store)) == 1
    assert store.count() == result.windows


def test_an_index_that_cannot_be_written_ends_the_run(store: Store, library: Path) -> None:
    shutil.rmtree(Path(store.location, "windows.lance"))
    with pytest.raises(StoreError, match=r"index at .*sureshot reset"):
        run(store, library)


def test_left_overs_of_a_killed_run_are_swept(store: Store, library: Path) -> None:
    store.write(record("/gone.mp4"), random_windows(2))
    store._tables.drop("videos", "path = '/gone.mp4'")
    store._tables.use("windows", lambda table: table.update({"written_at": "written_at - 1000"}))
    run(store, library)
    assert store.count() == 7


def test_a_run_killed_before_any_commit_is_made_good_by_the_next(
    clips: Path, whole: tuple[list, ...], tmp_path: Path
) -> None:
    done = 0
    for commit in range(3):
        killed = processes.start(processes.index, tmp_path / "index", [clips], None, commit)
        assert processes.finish(killed) == [-signal.SIGKILL]
        now = len(make_store(tmp_path / "index").videos())
        assert now == done + commit // 2  # two commits a video: its windows, then its row
        done = now
    assert processes.finish(processes.start(processes.index, tmp_path / "index", [clips])) == [0]
    assert contents(tmp_path / "index") == whole


@pytest.mark.parametrize("together", [True, False])
def test_two_indexers_at_once_lose_nothing_and_double_nothing(
    clips: Path, whole: tuple[list, ...], tmp_path: Path, together: bool
) -> None:
    folders = [[clips], [clips]] if together else [[clips / "a"], [clips / "b"]]
    gate = processes.barrier(2)
    workers = [
        processes.start(processes.index, tmp_path / "index", chosen, gate) for chosen in folders
    ]
    assert processes.finish(*workers) == [0, 0]
    assert contents(tmp_path / "index") == whole


def test_two_indexers_that_both_see_a_moved_video_keep_it(library: Path, tmp_path: Path) -> None:
    for attempt in range(2):
        place = tmp_path / f"index{attempt}"
        run(make_store(place), library)
        before = library
        library = library.rename(tmp_path / f"moved{attempt}")
        gate = processes.barrier(2)
        workers = [processes.start(processes.index, place, [library], gate) for _ in range(2)]
        assert processes.finish(*workers) == [0, 0]
        store = make_store(place)
        assert store.count() == 7
        assert all(r.path.is_relative_to(library) for r in store.videos()), before
        assert [r.windows for r in store.videos()] == [3, 2, 2]


def test_videos_removed_while_they_are_indexed_again_are_there_whole_or_not_at_all(
    clips: Path, whole: tuple[list, ...], tmp_path: Path
) -> None:
    place = tmp_path / "index"
    run(make_store(place), clips)
    gate = processes.barrier(3)
    workers = [processes.start(processes.index, place, [clips], gate, -1, 4)]
    workers += [processes.start(processes.remove, place, gate, 12, 0.05) for _ in range(2)]
    assert processes.finish(*workers) == [0, 0, 0]
    store = make_store(place)
    assert store.lost() == []
    assert store.count() == sum(record.windows for record in store.videos())
    result, _ = run(store, clips)
    assert result.warnings == []
    assert contents(place) == whole


def test_lost_windows_are_found_and_indexed_again_and_it_is_said(
    store: Store, library: Path
) -> None:
    run(store, library)
    first, second, _ = store.videos()
    store._tables.drop("windows", f"video = '{first.id}'")
    store._tables.drop("windows", f"video = '{second.id}' AND start > 0")
    assert store.lost() == [first, second]
    result, decoded = run(store, library)
    assert result.warnings == ["2 videos had lost windows and were indexed again."]
    assert (result.indexed, result.unchanged) == (2, 1)
    assert decoded == first.windows + second.windows
    assert store.lost() == []
    assert run(store, library)[0].warnings == []


def test_lost_windows_out_of_reach_are_told_of(store: Store, library: Path) -> None:
    run(store, library)
    lost = known(store)["1.mp4"]
    store._tables.drop("windows", f"video = '{lost.id}' AND start > 0")
    result, _ = run(store, library / "b")
    (said,) = result.warnings
    assert "1 video with lost windows could not be indexed again" in said
    assert "sureshot status --check" in said
    assert len(store.windows_of(lost.path).keys) == 1  # what is left of it stays


def test_a_changed_window_is_found_and_its_video_indexed_again(store: Store, library: Path) -> None:
    run(store, library)
    spoil(store, known(store)["1.mp4"].id)
    result, _ = run(store, library)
    assert result.warnings == ["1 video had lost windows and was indexed again."]
    assert store.lost(thorough=True) == []


# --- from paths to an index ----------------------------------------------------------------------


def test_one_call_makes_an_index_and_the_next_brings_it_up_to_date(library: Path, tmp_path: Path):
    db = tmp_path / "db"
    heard: list[int] = []
    result = index(
        str(library), db=db, model="tiny", frames=4, progress=lambda r: heard.append(r.found)
    )
    assert (result.index, result.found, result.indexed) == (str(db), 3, 3)
    assert (heard[0], heard[-1]) == (0, 3)
    assert Store.open(db).settings == IndexSettings(model="tiny", frames=4)
    # What is left out is that of the index.
    again = index([library / "a", library / "b"], db=db)
    assert (again.found, again.unchanged, again.indexed) == (3, 3, 0)


def test_the_folder_of_a_model_is_kept_whole(library: Path, tmp_path: Path, monkeypatch) -> None:
    (tmp_path / "model").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SureshotError, match=str(tmp_path / "model")):
        index(library, db=tmp_path / "db", model="model")


SHARES = [Shard(number, 3) for number in (1, 2, 3)]


@pytest.fixture(scope="module")
def clips_planning(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A clip of a second of each colour."""
    folder = tmp_path_factory.mktemp("clips")
    for number, colour in enumerate(COLOURS):
        coloured(folder / f"{number}.mp4", [colour], seconds=1, rate=5)
    return folder


@pytest.fixture
def videos(clips_planning: Path, tmp_path: Path) -> Path:
    return shutil.copytree(clips_planning, tmp_path / "videos")


def test_links_that_lead_out_of_the_roots_are_not_followed(
    store: Store, videos: Path, tmp_path: Path
) -> None:
    site, secret = tmp_path / "site", tmp_path / "secret"
    for folder, name in ((site, "a"), (secret, "b"), (secret / "album", "c")):
        folder.mkdir(exist_ok=True)
        shutil.copy(videos / "0.mp4", folder / f"{name}.mp4")
    (site / "album").symlink_to(secret / "album")
    (site / "b.mp4").symlink_to(secret / "b.mp4")
    (site / "again.mp4").symlink_to(site / "a.mp4")
    for number in range(2):
        Image.new("RGB", (32, 32)).save(secret / f"{number}.png")
        (site / "frames").mkdir(exist_ok=True)
        (site / "frames" / f"{number}.png").symlink_to(secret / f"{number}.png")
    result, _ = run(store, site, roots=[site])
    assert [record.path for record in store.videos()] == [site / "a.mp4"]
    assert result.warnings == [
        f"3 links lead out of the folders that may be indexed, such as {site / 'album'}; nothing "
        "there was looked at."
    ]
    # A video that was swapped for a link is not read, and an unbounded run follows all.
    (site / "a.mp4").unlink()
    (site / "a.mp4").symlink_to(secret / "b.mp4")
    assert run(store, site, roots=[site], force=True)[0].found == 0
    assert run(store, site)[0].found > 2


def test_all_shares_together_are_the_whole(store: Store, videos: Path, tmp_path: Path) -> None:
    results = [Run(store, TinyEncoder(), [videos], shard=share).ingest() for share in SHARES]
    assert sum(result.found for result in results) == len(COLOURS)
    assert all(result.missing == result.unchanged == 0 for result in results)
    whole = make_store(tmp_path / "whole")
    Run(whole, TinyEncoder(), [videos]).ingest()
    assert contents(store.location) == contents(whole.location)


def test_a_share_forgets_only_its_own_videos(store: Store, videos: Path) -> None:
    Run(store, TinyEncoder(), [videos]).ingest()
    paths = [record.path for record in store.videos()]
    for path in paths[:6]:
        path.unlink()
    mine = {path for path in paths[:6] if SHARES[0].has(path)}
    result = Run(store, TinyEncoder(), [videos], shard=SHARES[0], prune=True).ingest()
    assert result.pruned == len(mine)
    assert {record.path for record in store.videos()} == {*paths} - mine
    store.set_excluded([str(videos)], excluded=True)
    left = [path for path in paths if path not in mine]
    result = Run(store, TinyEncoder(), [videos], shard=SHARES[1]).ingest()
    assert result.forgotten == sum(SHARES[1].has(path) for path in left)


def test_a_share_copies_what_moved_away_from_another(store: Store, videos: Path) -> None:
    Run(store, TinyEncoder(), [videos]).ingest()
    old = next(r.path for r in store.videos() if not SHARES[0].has(r.path))
    new = next(p for n in range(99) if SHARES[0].has(p := videos / f"new-{n}.mp4"))
    shutil.move(old, new)
    result = Run(store, TinyEncoder(), [videos], shard=SHARES[0]).ingest()
    assert (result.copied, result.moved, result.indexed) == (1, 0, 0)
    assert {old, new} <= {record.path for record in store.videos()}


def test_what_cannot_be_read_and_was_named_is_told_by_every_share(
    store: Store, videos: Path
) -> None:
    gone = videos / "gone.mp4"
    for share in SHARES:
        result = Run(store, TinyEncoder(), [videos, gone], shard=share).ingest()
        assert [path for path, _ in result.failed] == [gone]


@pytest.fixture
def told() -> list[int]:
    """Videos indexed, each time that it was told."""
    return []


@pytest.fixture
def committing(store: Store, told: list[int]) -> Run:
    one = Run(store, TinyEncoder(), [], progress=lambda result: told.append(result.indexed))
    one.lost.add(Path("/2.mp4"))
    return one


def packed(store: Store, number: int) -> StagedVideo:
    return store.stage(record(f"/{number}.mp4"), random_windows(2, seed=number))


def test_the_first_is_committed_at_once_and_the_rest_together(
    store: Store, committing: Run, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(indexing, "_EVERY", 1e9)
    with staging_lock(store.location):
        for number in range(4):
            committing.take(packed(store, number))
        assert told == [1, 1, 1, 1] and len(store.videos()) == 1
        assert committing.fixed == 0
        committing.finish()
    assert told[-1] == 4 and len(store.videos()) == 4
    assert committing.fixed == 1  # of the lost ones the second is there again
    versions = store._tables.use("windows", lambda table: len(table.versions()))
    committing.finish()
    assert versions == store._tables.use("windows", lambda table: len(table.versions()))


def test_what_waits_does_not_wait_for_the_end_of_a_long_film(
    store: Store, committing: Run, told: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    film = Path("/film.mp4")
    with staging_lock(store.location):
        monkeypatch.setattr(indexing, "_EVERY", 1e9)
        for number in range(2):
            committing.take(packed(store, number))
        committing.take(VideoProgress(film, 100, 60.0))
        assert told[-1] == 1
        monkeypatch.setattr(indexing, "_EVERY", 0.0)
        committing.take(VideoProgress(film, 200, 120.0))
    assert told[-1] == 2 and len(store.videos()) == 2


@pytest.fixture
def videos_excluding(tmp_path: Path) -> Path:
    """Three videos: a.mp4, raw/b.mp4 and raw/[1].mp4."""
    folder = tmp_path / "videos"
    (folder / "raw").mkdir(parents=True)
    for name in ("a", "raw/b", "raw/[1]"):
        coloured(folder / f"{name}.mp4", ["red" if name == "a" else "blue"], seconds=1, rate=5)
    return folder


@pytest.fixture
def run_excluding(tmp_path: Path, videos_excluding: Path):
    """Indexes the videos with the tiny encoder."""
    return lambda **options: sureshot.index(
        videos_excluding, db=tmp_path / "db", model="tiny", **options
    )


def test_what_is_excluded_is_left_out_now_and_later_until_it_is_included(
    run_excluding, tmp_path
) -> None:
    assert run_excluding().found == 3
    result = run_excluding(exclude=["raw"])
    assert (result.excluded, result.forgotten, result.found) == (1, 2, 1)
    assert status(tmp_path / "db").excluded == ("raw",)
    again = run_excluding()
    assert (again.excluded, again.forgotten, again.found) == (1, 0, 1)
    back = run_excluding(include=["raw"])
    assert (back.excluded, back.found, status(tmp_path / "db").excluded) == (0, 3, ())


def test_a_name_that_was_removed_as_a_path_is_included_by_that_name(
    run_excluding, tmp_path, videos_excluding, monkeypatch
) -> None:
    run_excluding()
    monkeypatch.chdir(videos_excluding)
    name = next(path.name for path in videos_excluding.iterdir() if path.suffix == ".mp4")
    assert sureshot.library.remove(name, db=tmp_path / "db", exclude=True) == 1
    assert run_excluding().found == 2
    assert run_excluding(include=[name]).found == 3


def test_not_everything_can_be_excluded(run_excluding, tmp_path) -> None:
    for refused in ("/", None):
        with pytest.raises(SureshotError, match=r"would leave out everything|is not a path"):
            run_excluding(exclude=["raw", refused])
    assert not (tmp_path / "db").exists()
    run_excluding()
    with pytest.raises(QueryError, match=r"^/ would leave out everything"):
        sureshot.library.remove("/", db=tmp_path / "db", exclude=True)
    assert status(tmp_path / "db").videos == 3


def test_only_what_is_excluded_can_be_included_again(run_excluding) -> None:
    with pytest.raises(QueryError, match=r"b is not excluded; nothing is\."):
        run_excluding(include=["b"])
    run_excluding(exclude=["*.gif"])
    with pytest.raises(QueryError, match=r"b is not excluded; these are: \*\.gif\."):
        run_excluding(include=["b"])


def test_one_text_is_one_pattern_one_root_and_one_query(tmp_path) -> None:
    videos, outside = tmp_path / "videos", tmp_path / "outside"
    for folder in (videos, outside):
        folder.mkdir()
        coloured(folder / f"{folder.name}.mp4", ["red"], seconds=1, rate=5)
    (videos / "linked.mp4").symlink_to(outside / "outside.mp4")
    db = tmp_path / "db"
    how = {"db": db, "model": "tiny", "workers": 1}
    made = sureshot.index(videos, exclude="*.gif", roots=str(videos), **how)
    assert (made.indexed, status(db).excluded) == (1, ("*.gif",))
    assert sureshot.index(videos, exclude=[tmp_path / "a"], **how).unchanged == 1
    films = sureshot.open_index(db)
    assert [answer.query for answer in films.search_many("red")] == ["red"]
    assert [answer.query for answer in films.search_many(iter(["red", "blue"]))] == ["red", "blue"]
    assert [one.text for one in films.describe(videos / "videos.mp4", "red").ranked] == ["red"]


def test_an_open_index_knows_the_names_of_the_one_that_takes_its_place(tmp_path) -> None:
    for name in ("red", "blue"):
        (tmp_path / name).mkdir()
        coloured(tmp_path / name / f"{name}.mp4", [name], seconds=1, rate=5)
    how = {"db": tmp_path / "db", "model": "tiny", "workers": 1}
    sureshot.index(tmp_path / "red", **how)
    films = sureshot.open_index(tmp_path / "db")
    assert [name.path.name for name in films.search("red").names] == ["red.mp4"]
    shutil.rmtree(tmp_path / "db")
    sureshot.index(tmp_path / "blue", **how)
    assert films.search("red").names == ()
    assert [name.path.name for name in films.search("blue").names][-1:] == ["blue.mp4"]
