"""Subtitles in files and tracks: their words, times and languages, whatever the file gets wrong."""

import os
from pathlib import Path

import pytest

from sureshot.media import lines, subtitles

SRT = """1
00:00:01,000 --> 00:00:02,500
The <i>password</i>
is swordfish

2
00:00:03,000 --> 00:00:04,000
{\\an8}Goodbye &amp; thanks
"""
VTT = """WEBVTT
Kind: captions
Language: {language}

STYLE
::cue {{ color: red }}

NOTE not a caption

first
00:01.000 --> 00:02.500 align:start
<v Roger>The <00:00:01.500><c.loud>password</c></v>
is swordfish

00:00:03.000 --> 00:00:04.000
Goodbye &amp; thanks
"""
ASS = """[Script Info]
ScriptType: {version}

[Events]
Format: {first}, Start, End, Style, Name, MarginL, MarginR, MarginV, Effect, Text
Comment: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,not a caption
Dialogue: 0,0:00:01.00,0:00:02.50,Default,,0,0,0,,The {{\\i1}}password{{\\i0}}\\Nis swordfish
Dialogue: 0,0:00:02.00,0:00:02.50,Default,,0,0,0,,{{\\p1}}m 0 0 l 9 9{{\\p0}}
Dialogue: 0,0:00:03.00,0:00:04.00,Default,,0,0,0,,Goodbye & thanks
"""
WORDS = [(1.0, 2.5, "The password is swordfish"), (3.0, 4.0, "Goodbye & thanks")]
FILES = {
    ".srt": SRT,
    ".vtt": VTT.format(language=""),
    ".ass": ASS.format(version="v4.00+", first="Layer"),
    ".ssa": ASS.format(version="v4.00", first="Marked"),
}


def sidecars_of(video: Path, **options) -> list[subtitles.Sidecar]:
    return subtitles.sidecars([video], **options).get(video, [])


def read(video: Path, **options) -> tuple[list[lines.Line], list[str]]:
    """The lines of the subtitle files of a video, and the remarks."""
    notes: list[str] = []
    video.touch()
    files = sidecars_of(video, note=notes.append)
    found = list(lines.read(video, "subtitles", sidecars=files, note=notes.append, **options))
    return found, notes


@pytest.mark.parametrize("suffix", FILES)
def test_every_kind_of_file_gives_its_words_without_what_styles_them(tmp_path, suffix):
    (tmp_path / f"film{suffix}").write_text(FILES[suffix])
    found, notes = read(tmp_path / "film.mp4")
    assert [line[:3] for line in found] == WORDS and not notes
    assert {line.source for line in found} == {"subtitles"}


@pytest.mark.parametrize(
    ("name", "language"),
    [
        ("film.srt", ""),
        ("film.en.srt", "en"),
        ("film.pt-BR.forced.SRT", "pt-BR"),
        ("film.eng.hi.srt", "en"),
        ("film.hi.srt", "hi"),
        ("film.take 2.srt", ""),
        ("Subs/film.de.srt", "de"),
        ("Subs/film/2_English.srt", "en"),
        ("subtitles/French.srt", "fr"),
    ],
)
def test_files_named_like_the_video_belong_to_it_in_the_language_they_name(
    tmp_path, name, language
):
    path = tmp_path / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(SRT)
    video = tmp_path / "film.mp4"
    video.touch()
    status = path.stat()
    assert sidecars_of(video) == [
        subtitles.Sidecar(path, language, status.st_size, status.st_mtime_ns)
    ]


def test_a_file_belongs_to_the_video_with_the_longest_name_that_fits(tmp_path):
    for name in ("film.mp4", "film.en.mp4", "film.en.srt", "other.srt", ".film.srt", "films.srt"):
        (tmp_path / name).write_text(SRT)
    assert not sidecars_of(tmp_path / "film.mp4")
    assert [file.path.name for file in sidecars_of(tmp_path / "film.en.mp4")] == ["film.en.srt"]


def test_links_out_of_the_indexed_folders_are_left_out_by_name(tmp_path):
    private, shared, videos = (tmp_path / name for name in ("private", "shared", "videos"))
    for folder in (private, shared, videos):
        folder.mkdir()
    video = videos / "film.mp4"
    (shared / "film.mp4").touch()
    video.symlink_to(shared / "film.mp4")
    for folder in (private, shared):
        (folder / "words.srt").write_text(SRT)
    (videos / "film.de.srt").symlink_to(private / "words.srt")
    (videos / "film.en.srt").symlink_to(shared / "words.srt")  # where the video is, too
    notes: list[str] = []
    assert [file.language for file in sidecars_of(video, note=notes.append)] == ["en"]
    assert len(notes) == 1 and "film.de.srt" in notes[0]
    assert len(sidecars_of(video, roots=[private])) == 2


def test_a_changed_file_changes_the_stamp_and_a_moved_one_does_not(tmp_path):
    (tmp_path / "film.mp4").touch()
    file = tmp_path / "film.srt"
    file.write_text(SRT)
    before = lines.stamp("subtitles", sidecars_of(tmp_path / "film.mp4"))
    os.utime(file, ns=(1, 1))
    changed = lines.stamp("subtitles", sidecars_of(tmp_path / "film.mp4"))
    (tmp_path / "moved").mkdir()
    for name in ("film.mp4", "film.srt"):
        (tmp_path / name).rename(tmp_path / "moved" / name)
    moved = lines.stamp("subtitles", sidecars_of(tmp_path / "moved" / "film.mp4"))
    assert len({before, changed, lines.stamp("subtitles")}) == 3 and moved == changed
