"""From ids to files: every layout people keep videos in, in one walk."""

import os

import pytest

from sureshot.datasets.split import find_videos, usual_folders
from sureshot.errors import SureshotError
from sureshot.media.discover import frame_files
from tests.datasets.files import films, frames


def found(folder, *ids, names=None, photos=False):
    """Paths below the folder of the ids found."""
    wanted = dict.fromkeys(ids, ()) | (names or {})
    paths = find_videos([folder], wanted, photos=photos)
    return {name: str(path.relative_to(folder)) for name, path in paths.items()}


@pytest.mark.parametrize("suffix", [".mp4", ".Mkv", ".3gp", ""])
def test_any_extension_will_do(tmp_path, suffix):
    films(tmp_path, f"video0{suffix}", "video10.mp4")
    assert found(tmp_path, "video0", "video1") == {"video0": f"video0{suffix}"}


@pytest.mark.parametrize("suffix", [".txt", ".npy", ".part", ".JSON", ".jpg"])
def test_what_only_goes_with_a_video_is_no_video(tmp_path, suffix):
    films(tmp_path, f"a{suffix}", "b.mp4")
    assert found(tmp_path, "a", "b") == {"b": "b.mp4"}


def test_ids_with_dots_and_letters_of_both_cases_are_kept_apart(tmp_path):
    films(tmp_path, "film/1_00.00.51.926-00.00.54.129.avi", "film/1_00.00.51.926-00.00.54.130.avi")
    films(tmp_path, "aB.mp4", "AB.mp4", "-x_y.mp4")
    assert found(tmp_path, "1_00.00.51.926-00.00.54.130", "AB", "-x_y", "1_00.00.51") == {
        "1_00.00.51.926-00.00.54.130": "film/1_00.00.51.926-00.00.54.130.avi",
        "AB": "AB.mp4",
        "-x_y": "-x_y.mp4",
    }


def test_other_spellings_find_the_id(tmp_path):
    films(tmp_path, "v_abc.mp4", "x.mov.mp4")
    names = {"abc": ("v_abc",), "x": ("x.mov",)}
    assert found(tmp_path, names=names) == {"abc": "v_abc.mp4", "x": "x.mov.mp4"}


def test_a_folder_of_numbered_images_is_a_video_and_its_images_are_not(tmp_path):
    frames(tmp_path / "video0")
    films(tmp_path / "video1", "cover.jpg", "0001.jpg", "notes.txt")
    frames(tmp_path / "other" / "0001")
    assert found(tmp_path, "video0", "video1", "0001") == {"video0": "video0", "0001": "other/0001"}


def test_a_file_wins_over_frames_and_the_nearer_one_over_one_below(tmp_path):
    frames(tmp_path / "a" / "video0")
    films(tmp_path, "b/c/video0.mp4", "b/video0.mkv", "z/video0.mp4")
    films(tmp_path, "a/x.mov.mp4", "b/x.mov", "y/y.mp4")
    expected = {"video0": "b/video0.mkv", "x.mov": "b/x.mov", "y": "y/y.mp4"}
    assert found(tmp_path, "video0", "x.mov", "y") == expected


def test_photos_count_where_they_are_wanted_and_nothing_else_does(tmp_path):
    films(tmp_path, "a.webp", "b.JPG", "c.mp4", "d.png")
    names = {"a.webp": (), "b.jpg": ("b",), "c": (), "d": ()}
    assert found(tmp_path, names=names, photos=True) == {
        "a.webp": "a.webp",
        "b.jpg": "b.JPG",
        "d": "d.png",
    }


def test_hidden_files_and_dead_links_are_passed_over(tmp_path):
    films(tmp_path, "._a.mp4", ".trash/a.mp4", "b.mp4")
    (tmp_path / "a.mp4").symlink_to(tmp_path / "nowhere")
    assert found(tmp_path, "a", "._a", "b") == {"b": "b.mp4"}


def test_links_are_followed_and_each_real_folder_is_read_once(tmp_path, monkeypatch):
    read, scandir = [], os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: read.append(path) or scandir(path))
    films(tmp_path / "disk", "a.mp4")
    root = films(tmp_path / "root", "sub/b.mp4")
    (root / "link").symlink_to(tmp_path / "disk")
    (root / "sub" / "loop").symlink_to(root)
    assert found(root, "a", "b") == {"a": "link/a.mp4", "b": "sub/b.mp4"}
    assert len(read) == 3


def test_an_id_is_not_taken_for_another_spelling_of_its_neighbour(tmp_path):
    films(tmp_path, "b.mp4")
    assert found(tmp_path, names={"b": (), "a": ("b",)}) == {"b": "b.mp4"}
    assert found(tmp_path, names={"a": ("b",), "b": ()}) == {"b": "b.mp4"}


def test_the_first_folder_that_has_a_video_is_taken(tmp_path):
    films(tmp_path, "two/a.mp4", "three/a.mp4", "three/b.mp4", "one/other.mp4")
    paths = find_videos([tmp_path / name for name in ("one", "two", "three")], {"a": (), "b": ()})
    assert paths == {"a": tmp_path / "two" / "a.mp4", "b": tmp_path / "three" / "b.mp4"}


@pytest.mark.parametrize("other", ["a.info", "a.bak", "a.srv3", "a.mhtml"])
def test_what_a_downloader_leaves_next_to_a_video_is_not_taken_for_it(tmp_path, other):
    films(tmp_path, other, "a.webm")
    assert found(tmp_path, "a") == {"a": "a.webm"}


def test_thumbnails_in_the_folder_of_a_video_do_not_hide_it(tmp_path):
    films(frames(tmp_path / "a"), "a.mp4")
    films(tmp_path / "b", "img_1.jpg", "flow_1.jpg", "b.mkv")
    assert found(tmp_path, "a", "b") == {"a": "a/a.mp4", "b": "b/b.mkv"}


def test_what_has_the_id_wins_over_what_has_another_spelling(tmp_path):
    films(tmp_path, "abc.mp4", "z/abc_000012_000022.mp4")
    names = {"abc_000012_000022": ("abc",)}
    assert found(tmp_path, names=names) == {"abc_000012_000022": "z/abc_000012_000022.mp4"}


def test_where_nothing_is_found_the_folders_and_a_name_are_named(tmp_path):
    films(tmp_path, "clip.mp4")
    message = rf"of the 2 wanted was found in {tmp_path} or below; looked for video7 with any"
    with pytest.raises(SureshotError, match=message):
        found(tmp_path, "video7", "video8")
    with pytest.raises(SureshotError, match="nowhere cannot be searched for videos: No such file"):
        found(tmp_path / "nowhere", "a")


def test_a_folder_below_that_nobody_may_enter_is_passed_over(tmp_path, monkeypatch):
    films(tmp_path, "lost+found/a.mp4", "sub/b.mp4")
    scandir = os.scandir

    def refused(path):
        if path.name == "lost+found":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    assert found(tmp_path, "a", "b") == {"b": "sub/b.mp4"}


def test_what_is_no_known_video_counts_last(tmp_path):
    films(tmp_path, "one/abc.lrc", "one/v_abc.mp4", "one/x.bin", "two/x.mp4", "two/gone.bin")
    names = {"abc": ("v_abc",), "x": (), "gone": ()}
    paths = find_videos([tmp_path / "one", tmp_path / "two"], names)
    assert {name: path.name for name, path in paths.items()} == {"abc": "v_abc.mp4", "x": "x.mp4"}


def test_folders_are_listed_once_and_one_that_cannot_be_costs_nothing_found(tmp_path, monkeypatch):
    frames(tmp_path / "videos" / "a", 9)
    listed, scandir = [], os.scandir

    def refused(path):
        listed.append(path.name)
        if path == tmp_path:
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refused)
    paths = find_videos([tmp_path / "videos", tmp_path], {"a": (), "missing": ()})
    assert paths == {"a": tmp_path / "videos" / "a"}
    assert listed == ["videos", "a", tmp_path.name]


def test_usual_folders_come_before_the_root(tmp_path):
    films(tmp_path, "MSRVTT_Videos/a.mp4", "features/a.mp4", "videos/a.mp4")
    below = [str(path.relative_to(tmp_path)) for path in usual_folders(tmp_path)]
    assert below == ["videos", "MSRVTT_Videos", "."]


def test_two_numbered_images_make_frames(tmp_path):
    assert frame_files(frames(tmp_path / "two", 2))
    assert not frame_files(frames(tmp_path / "one", 1))
    assert not frame_files(films(tmp_path / "photos", "a.jpg", "b.jpg", "1.txt", "2.txt"))


def test_many_videos_take_one_walk_and_no_look_at_each_file(tmp_path, monkeypatch):
    count = 300
    films(tmp_path, *(f"video{i}.mp4" for i in range(count)))
    looked = []
    stat, scandir = os.stat, os.scandir
    monkeypatch.setattr(os, "stat", lambda *a, **k: looked.append("stat") or stat(*a, **k))
    monkeypatch.setattr(os, "scandir", lambda *a: looked.append("scan") or scandir(*a))
    assert len(found(tmp_path, *(f"video{i}" for i in range(2 * count)))) == count
    assert looked == ["stat", "scan"]
