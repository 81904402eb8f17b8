"""`sureshot watch` follows folders while files are written, moved and deleted, and disks go."""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from sureshot.errors import ArgumentError, StoreError
from sureshot.library import watching
from sureshot.library.search import open_index
from sureshot.library.watching import Watcher, watch
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from tests.clips import blocks, coloured, film

SETTLE = 1.0


class Watched:
    """A watch in a thread: what it said, and what its index holds."""

    def __init__(self, folder: Path, db: Path) -> None:
        self.folder, self.db = folder, str(db)
        self.said: list[str] = []
        self.ready = threading.Event()

    def videos(self) -> set[str]:
        """Paths of the videos that can be found, below the folder."""
        with contextlib.suppress(StoreError):  # it may be just being made
            if Store.exists(self.db):
                known = Store.open(self.db).videos()
                return {str(r.path.relative_to(self.folder)) for r in known if r.windows}
        return set()

    def wait(self, done: Callable[[], bool]) -> None:
        """Wait until something is so."""
        until = time.monotonic() + 50
        while not done():
            assert time.monotonic() < until, (self.said, self.videos())
            time.sleep(0.05)

    def hears(self, words: str) -> None:
        """Wait until a sentence has been said, and take what was said so far."""
        self.wait(lambda: any(words in line for line in self.said))
        self.said.clear()


@contextlib.contextmanager
def watched(folder: Path, db: Path, **options) -> Iterator[Watched]:
    watcher, stop = Watched(folder, db), threading.Event()
    chosen = {"settle": SETTLE, "model": "tiny", "say": watcher.said.append} | options
    thread = threading.Thread(
        target=watch,
        args=([folder],),
        kwargs={"db": str(db), "stop": stop, "started": lambda _: watcher.ready.set(), **chosen},
    )
    thread.start()
    try:
        yield watcher
    finally:
        stop.set()
        thread.join(60)
        assert not thread.is_alive()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "videos"
    place.mkdir()
    coloured(place / "red.mp4", ["red"], rate=5)
    return place


def test_what_is_written_moved_and_deleted_is_followed(folder: Path, tmp_path: Path) -> None:
    made = coloured(tmp_path / "made.mp4", ["green"], rate=5).read_bytes()
    with watched(folder, tmp_path / "db", settle=4) as films:
        assert films.ready.wait(50) and films.videos() == {"red.mp4"}
        with (folder / "slow.mp4").open("wb") as file:
            for first in range(0, len(made), len(made) // 6 + 1):
                file.write(made[first : first + len(made) // 6 + 1])
                file.flush()
                time.sleep(0.3)
                assert films.videos() == {"red.mp4"}  # not before it stands still
        films.hears("slow.mp4: 1 indexed")
        (folder / "trip").mkdir()
        (folder / "slow.mp4").rename(folder / "trip" / "grün.mp4")
        films.hears("grün.mp4: nothing new, 1 moved")
        assert films.videos() == {"red.mp4", "trip/grün.mp4"}
        line = "1\n00:00:00,000 --> 00:00:01,000\nthe password is swordfish\n"
        (folder / "trip" / "grün.srt").write_text(line)
        films.hears("grün.mp4: nothing new, 1 unchanged. 1 new line of words.")
        (folder / ".hidden.mp4").write_bytes(made)
        (folder / "notes.txt").write_text("no video")
        (folder / "red.mp4").unlink()
        films.hears("red.mp4: deleted on disk, removed from the index")
        assert films.videos() == {"trip/grün.mp4"}
        assert open_index(films.db).search("green")[0].path == folder / "trip" / "grün.mp4"
        (folder / "broken.mp4").write_text("no video")
        films.hears("broken.mp4: is not a video")


@pytest.mark.skipif(sys.platform != "linux", reason="names are text elsewhere")
def test_a_name_that_is_not_text_ends_nothing(folder: Path, tmp_path: Path) -> None:
    Path(os.fsdecode(os.fsencode(folder) + b"/caf\xe9")).mkdir()
    with watched(folder, tmp_path / "db", every=1) as films:
        assert films.ready.wait(50)
        coloured(tmp_path / "made.mp4", ["green"], rate=5).rename(folder / "green.mp4")
        films.hears("green.mp4: 1 indexed")


def test_a_hidden_folder_that_was_named_is_watched(folder: Path, tmp_path: Path) -> None:
    (own := folder / ".own").mkdir()
    watcher = Watcher(
        [folder, own],
        tmp_path / "db",
        settle=1,
        every=9,
        prune=True,
        started=print,
        say=print,
        stop=threading.Event(),
        progress=print,
        options={},
    )
    assert not watcher._leaves_out(own / "a.mp4")
    assert watcher._leaves_out(folder / ".other" / "a.mp4")


def test_a_deletion_does_not_wait_for_a_file_that_goes_on_growing(
    folder: Path, tmp_path: Path
) -> None:
    with watched(folder, tmp_path / "db", settle=1) as films:
        assert films.ready.wait(50) and films.videos() == {"red.mp4"}
        with (folder / "recording.mp4").open("wb") as file:
            (folder / "red.mp4").unlink()
            for _ in range(300):
                file.write(b"more")
                file.flush()
                time.sleep(0.1)
                if not films.videos():
                    break
            assert not films.videos()
        films.hears("red.mp4: deleted on disk, removed from the index")


def test_a_deletion_that_was_not_written_is_tried_again(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    remove, failed = Store.remove, []

    def fail_once(store: Store, records: Any) -> None:
        if records and not failed:
            failed.append(records)
            raise StoreError("The disk is full.")
        remove(store, records)

    monkeypatch.setattr(watching, "_PAUSE", 0.1)
    monkeypatch.setattr(Store, "remove", fail_once)
    with watched(folder, tmp_path / "db", settle=1) as films:
        assert films.ready.wait(50)
        (folder / "red.mp4").unlink()
        films.hears("The disk is full.")
        films.hears("red.mp4: deleted on disk, removed from the index")
        assert not films.videos()


def test_a_folder_or_disk_that_goes_takes_nothing_along(folder: Path, tmp_path: Path) -> None:
    disk = folder / "disk"
    disk.mkdir()
    coloured(disk / "blue.mp4", ["blue"], rate=5)
    both = {"red.mp4", "disk/blue.mp4"}
    with watched(folder, tmp_path / "db") as films:
        assert films.ready.wait(50)
        disk.rename(tmp_path / "unplugged")
        films.hears(f"Not there now, still indexed: 1 video of {disk}; is the disk connected?")
        assert films.videos() == both
        (tmp_path / "unplugged").rename(disk)
        coloured(disk / "green.mp4", ["green"], rate=5)
        films.hears("green.mp4: 1 indexed")
        folder.rename(tmp_path / "away")
        films.hears(f"{folder} is not there now. Nothing of it is forgotten")
        coloured(tmp_path / "away" / "white.mp4", ["white"], rate=5)
        (tmp_path / "away").rename(folder)
        films.hears("white.mp4: 1 indexed")
        # All at once, as by `rm -r`: the folder went, so its videos may come back.
        shutil.rmtree(disk)
        films.hears("Not there now, still indexed: 2 videos")
        assert films.videos() == both | {"disk/green.mp4", "white.mp4"}


def test_another_disk_in_the_place_of_a_folder_is_no_deletion(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # An empty folder whose disk was unmounted, where the system reports its files as deleted.
    note = watching.Watcher._note_devices

    def noted(self: watching.Watcher) -> None:
        note(self)
        self._devices = {folder: device + 1 for folder, device in self._devices.items()}

    looked_at, each_video = [], Store.each_video

    def near(store: Store, below: set[Path] | None = None) -> Iterator[VideoRecord]:
        looked_at.append(None if below is None else sorted(below))
        return each_video(store, below)

    monkeypatch.setattr(watching.Watcher, "_note_devices", noted)
    monkeypatch.setattr(Store, "each_video", near)
    with watched(folder, tmp_path / "db") as films:
        assert films.ready.wait(50)
        (folder / "red.mp4").unlink()
        films.hears("Not there now, still indexed: red.mp4")
        assert looked_at[:2] == [[folder], [folder / "red.mp4"]]
        assert films.videos() == {"red.mp4"}


def test_deleted_videos_may_stay_and_what_is_excluded_does(folder: Path, tmp_path: Path) -> None:
    # All is looked at in every step: what is reported at the same time must not be lost.
    with watched(folder, folder / "db", prune=False, exclude=["raw"], every=0.1) as films:
        assert films.ready.wait(50)
        (folder / "raw").mkdir()
        coloured(folder / "raw" / "blue.mp4", ["blue"], rate=5)
        frames = folder / "frames"
        frames.mkdir()
        coloured(tmp_path / "made.mp4", ["green"], rate=5).rename(folder / "green.mp4")
        films.hears("green.mp4: 1 indexed")
        (folder / "red.mp4").unlink()
        films.hears("red.mp4: deleted on disk, still indexed")
        assert films.videos() == {"red.mp4", "green.mp4"}


def test_changes_that_nobody_reports_are_found_and_the_folder_may_come_late(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_paths, **_options):
        raise OSError("OS file watch limit reached")

    monkeypatch.setattr(watching.watchfiles, "watch", refused)
    folder = tmp_path / "videos"
    with watched(folder, tmp_path / "db", every=2) as films:
        films.hears("is not there now")
        folder.mkdir()
        films.wait(lambda: any("everything is looked at every 2 s" in line for line in films.said))
        assert films.ready.wait(50)
        film(folder / "white.mp4", blocks(8, ["white"]))
        films.hears("white.mp4: 1 indexed")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_process_that_is_ended_leaves_a_sound_index(folder: Path, tmp_path: Path, number) -> None:
    for name in ("green", "blue", "white"):
        coloured(folder / f"{name}.mp4", [name] * 4, seconds=4, rate=10)
    command = ["watch", str(folder), "--db", str(tmp_path / "db"), "--model", "tiny"]
    arguments = [sys.executable, "-m", "sureshot", *command, "--settle", "1"]
    process = subprocess.Popen(arguments, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    films = Watched(folder, tmp_path / "db")
    try:
        films.wait(lambda: len(films.videos()) > 0 or process.poll() is not None)
        if number != signal.SIGKILL:  # that one in the middle of its work
            films.wait(lambda: len(films.videos()) == 4)
            assert open_index(films.db).search("blue")[0].path.name == "blue.mp4"
            for line in process.stdout:
                if "Watching" in line:
                    break
        process.send_signal(number)
        out, err = process.communicate(timeout=50)
    finally:
        if process.poll() is None:
            process.kill()
    assert "Traceback" not in err
    if number == signal.SIGKILL:
        with watched(folder, tmp_path / "db") as again:
            assert again.ready.wait(50)
        assert len(films.videos()) == 4 and Store.open(films.db).trouble() == []
    else:
        assert process.returncode == (0 if number == signal.SIGINT else 128 + number)
        assert out.endswith("Stopped; what is indexed is kept.\n")


def test_what_cannot_be_watched_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(ArgumentError, match=r"red\.mp4 is a file; name the folder"):
        watch(folder / "red.mp4", db=tmp_path / "db")
    with pytest.raises(ArgumentError, match="nothing to watch"):
        watch([], db=tmp_path / "db", stop=threading.Event())
    for name in ("settle", "every"):
        with pytest.raises(ArgumentError, match=f"--{name} is -1; give seconds above 0"):
            watch(folder, db=tmp_path / "db", **{name: -1.0})
    assert not os.path.lexists(tmp_path / "db")
