"""Finding videos: each once, whatever links, names and permissions a folder has."""

import os
import subprocess
import sys
import tempfile
import threading
from fnmatch import fnmatchcase
from pathlib import Path
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sureshot.errors import QueryError
from sureshot.media import discover as discover_module
from sureshot.media.discover import (
    Excluded,
    Source,
    Unreadable,
    as_pattern,
    discover,
    frame_files,
    is_away,
    is_gone,
    is_unplugged,
)
from sureshot.paths import absolute
from sureshot.text import composed
from tests.clips import film, greys

# Python itself may lie where nobody else may look, so all of it is imported first.
PRELUDE = """
import os, sys
from pathlib import Path
from PIL import Image, ImageOps
import sureshot.media.video
from sureshot.media.discover import discover
Image.init()
if os.getuid() == 0:
    os.setgroups([]), os.setgid(65534), os.setuid(65534)
"""


def found(*paths):
    return list(discover([Path(path) for path in paths]))


def names(*paths):
    """File names of the videos found; nothing may be unreadable."""
    sources = found(*paths)
    assert all(isinstance(source, Source) for source in sources), sources
    return [source.path.name for source in sources]


def put(path, content=b"x"):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def images(folder, *names):
    folder.mkdir(parents=True, exist_ok=True)
    for name in names:
        Image.new("RGB", (4, 4)).save(folder / name)
    return folder


def run_as_nobody(code, *arguments):
    """What a Python program prints that may do only what everybody may."""
    command = [sys.executable, "-c", PRELUDE + code, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


@pytest.fixture
def open_folder():
    """A folder that every user may enter; those of pytest are for their owner."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        yield Path(folder)


def test_videos_are_found_in_the_order_of_their_names(tmp_path):
    for name in ("b.mp4", "a/z.mkv", "a/y/x.webm", "c/1.GIF", "notes.txt", "c/photo.jpg"):
        put(tmp_path / name)
    assert names(tmp_path) == ["x.webm", "z.mkv", "b.mp4", "1.GIF"]


def test_suffixes_count_in_any_case_and_a_file_named_directly_needs_none(tmp_path):
    for name in ("a.MP4", "b.MkV", "c.mp4.part", "mp4"):
        put(tmp_path / name)
    assert names(tmp_path) == ["a.MP4", "b.MkV"]
    assert names(tmp_path / "c.mp4.part", tmp_path / "mp4") == ["c.mp4.part", "mp4"]


def test_hidden_files_and_folders_are_left_out_below_a_folder(tmp_path):
    for name in (".a.mp4", "._b.mp4", ".trash/c.mp4", "d.mp4"):
        put(tmp_path / name)
    assert names(tmp_path) == ["d.mp4"]
    assert names(tmp_path / ".a.mp4", tmp_path / ".trash") == [".a.mp4", "c.mp4"]


def test_a_mod_is_a_film_of_a_camcorder_or_none_at_all(tmp_path):
    put(tmp_path / "MOV001.MOD").write_bytes(b"\0\0\1\xba rest")
    put(tmp_path / "go.mod").write_text("module example")
    assert names(tmp_path) == ["MOV001.MOD"]


def test_a_file_is_found_once_however_often_it_is_named_or_linked(tmp_path):
    path = put(tmp_path / "videos" / "a.mp4")
    (tmp_path / "videos" / "b.mp4").hardlink_to(path)
    (tmp_path / "videos" / "c.mp4").symlink_to(path)
    (tmp_path / "more").symlink_to(tmp_path / "videos")
    assert names(tmp_path / "videos", path, tmp_path / "more", tmp_path) == ["a.mp4"]


def test_folders_that_contain_themselves_end(tmp_path):
    put(tmp_path / "a" / "b" / "x.mp4")
    (tmp_path / "a" / "b" / "loop").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "self").symlink_to(tmp_path / "a" / "self")
    assert names(tmp_path) == ["x.mp4"]


def test_links_that_lead_nowhere_are_told(tmp_path):
    (tmp_path / "dead.mp4").symlink_to(tmp_path / "gone.mp4")
    (tmp_path / "ring.mp4").symlink_to(tmp_path / "ring.mp4")
    assert found(tmp_path) == [
        Unreadable(
            tmp_path / "dead.mp4", f"is a link to {tmp_path / 'gone.mp4'}, which is not there"
        ),
        Unreadable(tmp_path / "ring.mp4", "too many levels of symbolic links"),
    ]
    (told,) = found(tmp_path / "dead.mp4")
    assert told.reason.startswith("is a link to ")


def test_a_path_that_does_not_exist_is_told_and_the_others_are_searched(tmp_path):
    path = put(tmp_path / "a.mp4")
    first, second = found(tmp_path / "none", path)
    assert first == Unreadable(tmp_path / "none", "no such file or directory")
    assert second.path == path


def test_pipes_are_passed_over_unless_named(tmp_path):
    for name in ("a.mp4", "b.ts", "frame1.png", "frame2.png", "frame3.png"):
        os.mkfifo(tmp_path / name)
    assert names(tmp_path) == []
    assert found(tmp_path / "a.mp4") == [Unreadable(tmp_path / "a.mp4", "is not a regular file")]


def test_folders_nest_deeper_than_python_recurses(tmp_path):
    back, depth = Path.cwd(), 0
    try:
        os.chdir(tmp_path)
        for depth in range(1, 1050):  # noqa: B007
            Path("d").mkdir()
            os.chdir("d")
        put(Path("a.mp4"))
        assert names(tmp_path) == ["a.mp4"]
    finally:  # pytest, too, recurses when it tidies up
        Path("a.mp4").unlink(missing_ok=True)
        for _ in range(depth):
            os.chdir("..")
            Path("d").rmdir()
        os.chdir(back)


def test_a_folder_without_permission_is_told_and_the_others_are_searched(open_folder):
    put(open_folder / "a" / "x.mp4")
    put(open_folder / "b" / "y.mp4")
    (open_folder / "c.mp4").symlink_to(open_folder / "a" / "x.mp4")
    (open_folder / "b").chmod(0o755)
    (open_folder / "a").chmod(0)
    code = "for s in discover([Path(sys.argv[1])]): print(s.path.name, getattr(s, 'reason', ''))"
    told = run_as_nobody(code, open_folder)
    (open_folder / "a").chmod(0o755)
    assert told == ["a permission denied", "y.mp4 ", "c.mp4 permission denied"]


def test_a_file_without_permission_is_refused_when_it_is_read(open_folder):
    clip = film(open_folder / "a.mp4", greys([90] * 3))
    frames = images(open_folder / "f", "frame1.png", "frame2.png")
    frames.chmod(0o755)
    for path in (clip, *frames.iterdir()):
        path.chmod(0)
    code = """
for source in discover([Path(sys.argv[1])]):
    try:
        with sureshot.media.video.open_video(source) as video:
            print(len(list(video)))
    except sureshot.media.video.VideoError as error:
        print(source.kind, error, error.transient)"""
    assert run_as_nobody(code, open_folder) == [
        "file permission denied True",
        "frames holds no frame that can be read: 'frame1.png' permission denied True",
    ]


def test_a_folder_that_vanishes_while_it_is_searched_costs_no_more_than_itself(tmp_path):
    for name in ("a/1.mp4", "b/2.mp4", "c/3.mp4"):
        put(tmp_path / name)
    walk = discover([tmp_path])
    assert next(walk).path.name == "1.mp4"
    (tmp_path / "b" / "2.mp4").unlink()
    (tmp_path / "b").rmdir()
    assert [source.path.name for source in walk if isinstance(source, Source)] == ["3.mp4"]


# TypeScript, and MPEG transport streams under the same suffix


def test_typescript_sources_are_passed_over(tmp_path):
    put(tmp_path / "index.ts", b"import { x } from 'y';\n" * 100)
    put(tmp_path / "module.MTS", b"const G = 'G';\n" * 300)
    put(tmp_path / "g.ts", b"G" * 300)
    put(tmp_path / "empty.ts", b"")
    assert names(tmp_path) == []
    assert names(tmp_path / "index.ts") == ["index.ts"]  # named directly, it is tried


def test_transport_streams_are_found_even_if_they_begin_amid_a_packet(tmp_path):
    whole = film(tmp_path / "a.ts", greys([90] * 30)).read_bytes()
    put(tmp_path / "b.mts", whole[100:])
    packets = [whole[at : at + 188] for at in range(0, len(whole), 188)]
    put(tmp_path / "c.ts", b"".join(b"time" + packet for packet in packets))  # as Blu-rays have it
    assert names(tmp_path) == ["a.ts", "b.mts", "c.ts"]


# Folders of frames


def test_a_folder_of_numbered_images_is_one_video(tmp_path):
    folder = images(tmp_path / "f", "frame1.png", "frame2.PNG", "frame10.jpg")
    os.utime(folder / "frame1.png", ns=(0, 10**18))
    (source,) = found(tmp_path)
    newest = max(p.stat().st_mtime_ns for p in folder.iterdir())
    size = sum(p.stat().st_size for p in folder.iterdir())
    assert source == Source(folder, "frames", size, newest)
    assert [p.name for p in frame_files(folder)] == ["frame1.png", "frame2.PNG", "frame10.jpg"]


@pytest.mark.parametrize(
    "photos",
    [
        ["beach1.png", "garden2.png"],
        ["20240101_1.png", "20240102_2.png"],
        ["frame1.png", "frame2.png", "cover.png"],
        ["frame1.png"],
        ["a.png", "b.png"],
    ],
)
def test_a_photo_folder_is_no_video(tmp_path, photos):
    assert found(images(tmp_path / "photos", *photos)) == []


def test_what_is_hidden_dead_or_no_file_is_no_frame(tmp_path):
    folder = images(tmp_path / "f", "frame1.png", "frame2.png", ".hidden.png")
    (folder / "frame3.png").symlink_to(folder / "gone.png")
    (folder / "frame4.png").mkdir()
    os.mkfifo(folder / "frame5.png")
    put(folder / "clip.mp4")
    # A dead link in it once cost the folder and everything below.
    assert names(tmp_path) == ["f", "clip.mp4"]
    assert [p.name for p in frame_files(folder)] == ["frame1.png", "frame2.png"]


def test_what_is_left_out_is_not_even_entered(tmp_path):
    for name in ("a.mp4", "b.gif", "raw/c.mp4", "raw/deep/d.mp4", "notes.txt"):
        put(tmp_path / name)
    asked = []

    def leave_out(path):
        asked.append(path.relative_to(tmp_path).as_posix())
        return path.suffix == ".gif" or path.name == "raw"

    found = [source.path.name for source in discover([tmp_path], leave_out)]
    assert found == ["a.mp4"]
    assert sorted(asked) == [".", "a.mp4", "b.gif", "raw"]
    assert not list(discover([tmp_path / "raw"], leave_out))


def test_objects_are_found_by_one_listing(bucket):
    for key in ("v/a b.mp4", "v/ü?#%.MKV", "v/raw/c.mp4", "v/.hid/d.mp4", "v/.e.mp4", "v/f.txt"):
        bucket.put(key, b"x" * 5)
    for key in ("w/g.mp4", "v/", "v/x/../h.mp4", "v//i.mp4"):
        bucket.put(key, b"x")
    bucket.asked.clear()
    out = list(discover([absolute("s3://films/v")], lambda path: path.name == "raw"))
    good = [one for one in out if isinstance(one, Source)]
    assert [str(one.path) for one in good] == ["s3://films/v/a b.mp4", "s3://films/v/ü?#%.MKV"]
    assert {one.size for one in good} == {5}
    bad = [one.reason for one in out if isinstance(one, Unreadable)]
    assert len(bad) == 2
    assert all("rename it" in reason for reason in bad)
    assert len(bucket.asked) == 3
    # A file named directly, by any name, is one with the same time.
    (one,) = discover([Path("s3://films/v/a b.mp4")])
    assert one == good[0]
    assert [
        thing.path.name for thing in discover([absolute("s3://films")]) if thing.path.name[0] == "g"
    ]


def test_objects_that_cannot_be_listed_are_told(bucket):
    (gone,) = discover([absolute("s3://films/none")])
    assert gone.reason == "no such object"
    (lost,) = discover([absolute("s3://elsewhere/v")])
    assert "no such bucket" in lost.reason
    bucket.fault = lambda asked: "403"
    (denied,) = discover([absolute("s3://films/v")])
    assert "access is denied" in denied.reason


def test_a_storage_is_asked_once_a_minute_whether_an_object_is_gone(bucket, monkeypatch):
    bucket.put("v/a.mp4", b"x")
    here, gone = absolute("s3://films/v/a.mp4"), absolute("s3://films/v/b.mp4")
    assert [is_gone(path) for path in (here, gone, here, gone)] == [False, True, False, True]
    assert len(bucket.asked) == 4
    monkeypatch.setattr(discover_module, "_MINUTE", 0.0)
    bucket.put("v/b.mp4", b"x")
    assert not is_gone(gone)


TOPS = [Path("/v"), Path("/w/private")]
PATTERNS = ["/v/a.b", "/v/*", "*.b", "v", "/w/?", "[ab]", "/v/[[]a]", "/v/é", "é", "a", "/v/a*b"]
PATHS = ["/v/a.b", "/v/a/b", "/w/x/a", "/v/[a]", "/v/é/b", "/v/é.b", "/a"]


@given(st.lists(st.sampled_from(PATTERNS)), st.sampled_from(PATHS))
def test_many_patterns_together_leave_out_what_each_does(patterns, path):
    """Against one pattern after the other, as it is written down for `Excluded`."""
    chain = (Path(path), *Path(path).parents)
    inside = [p.name for p in chain if any(p.is_relative_to(top) for top in TOPS)]
    expected = any(
        fnmatchcase(composed(text), composed(pattern))
        for pattern in patterns
        for text in (map(str, chain) if "/" in pattern else inside)
    )
    assert Excluded(tuple(patterns)).matches(Path(path), TOPS) is expected


def test_what_is_behind_a_link_that_leads_nowhere_is_away(tmp_path):
    """As a link to a disk that is not connected; a folder that was deleted is none."""
    (tmp_path / "usb").symlink_to(tmp_path / "media" / "USB")
    assert is_unplugged(tmp_path / "usb" / "films" / "a.mp4")
    assert not is_unplugged(tmp_path / "films" / "a.mp4")
    (tmp_path / "a.mp4").symlink_to(tmp_path / "gone.mp4")  # a video, and no folder of some
    assert not is_unplugged(tmp_path / "a.mp4")


@pytest.mark.parametrize(
    "pattern, path, left_out",
    [
        ("*.gif", "/v/a/b.gif", True),
        ("*.gif", "/v/a/b.mp4", False),
        ("raw", "/v/raw/deep/a.mp4", True),
        ("raw", "/v/raw.mp4", False),
        ("v", "/v/a.mp4", True),  # the folder that was named has a name too
        ("private", "/w/private/a.mp4", True),
        ("w", "/w/private/a.mp4", False),  # but folders above it say nothing
        ("/v/raw", "/v/raw", True),
        ("/v/raw", "/v/raw/a.mp4", True),
        ("/v/raw", "/v/raw-2/a.mp4", False),
        ("/v/*/raw", "/v/2024/raw/a.mp4", True),
        ("/v/a[[]1].mp4", "/v/a[1].mp4", True),
    ],
)
def test_a_name_and_a_path_are_told_apart(pattern, path, left_out):
    assert Excluded((pattern,)).matches(Path(path), TOPS) is left_out
    assert not Excluded().matches(Path(path), TOPS)


def test_paths_are_remembered_from_the_root_on(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/me")
    assert as_pattern("./raw/*.mp4") == str(tmp_path / "raw" / "*.mp4")
    assert as_pattern("~/Videos/") == "/home/me/Videos"
    assert as_pattern("drafts/") == "drafts"
    assert as_pattern(".") == as_pattern("./") == str(tmp_path)


@pytest.mark.parametrize("pattern", ["", "  "])
def test_an_empty_pattern_is_refused(pattern):
    with pytest.raises(QueryError, match="is empty"):
        as_pattern(pattern)


@pytest.mark.parametrize("pattern", ["/", "//", "/.", "/films/.."])
def test_a_pattern_of_the_root_is_refused(pattern):
    with pytest.raises(QueryError, match=f"^{pattern} would leave out everything; give a folder"):
        as_pattern(pattern)


class Hung(type(Path())):
    """A file on a share that answers when it is set free."""

    asked: ClassVar[list[str]] = []
    free = threading.Event()

    def stat(self, **options):
        self.asked.append(self.name)
        self.free.wait(60)
        return super().stat(**options)


def test_a_share_that_does_not_answer_is_away_and_asked_once(tmp_path, monkeypatch):
    monkeypatch.setattr(discover_module, "_PATIENCE", 0.05)
    (tmp_path / "a.mp4").touch()
    for name in ("a.mp4", "b.mp4", "a.mp4"):
        path = Hung(tmp_path / name)
        assert is_gone(path) and is_away(path)
    assert Hung.asked == ["a.mp4"]
    Hung.free.set()
    for waits in list(discover_module._SILENT.values()):
        waits.join()
    assert not is_gone(Hung(tmp_path / "a.mp4"))
