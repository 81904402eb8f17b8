"""Cutting: the right frames and sound come out, and nothing is harmed or left behind."""

import io
import math
import os
import shutil
import unicodedata
from dataclasses import replace
from pathlib import Path

import av
import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from PIL import Image

from sureshot.errors import QueryError, SureshotError, VideoError
from sureshot.library.clips import (
    LONGEST,
    Film,
    export,
    export_name,
    film_of,
    first_part,
    like_frame,
    like_photo,
    part_around,
    sheet_row,
    still,
    write_part,
)
from sureshot.library.results import Answer, FrameScore, Hit
from sureshot.library.search import open_index
from sureshot.media import mp4
from sureshot.media.excerpt import MP4, cut
from sureshot.media.video import frames_at
from sureshot.models.encoders.toy import COLOURS
from sureshot.store.rows import VideoRecord
from tests.clips import coloured, film
from tests.grey import grey_clip, watch
from tests.small_library import index
from tests.web.kinds import written


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    return grey_clip(tmp_path_factory.mktemp("clips") / "clip.mp4", sound="aac")


@pytest.mark.parametrize(
    ("start", "end", "times", "seconds", "length"),
    [
        (0.0, 0.2, [0, 0.1], [0.0, 0.1], 0.2),
        (1.25, 1.5, [0, 0.05, 0.15], [1.2, 1.3, 1.4], 0.25),  # opens with what is on screen
        (1.3, 1.31, [0], [1.3], 0.01),
        (-5.0, 0.1, [0], [0.0], 0.1),
        (3.8, 99.0, [0, 0.1], [3.8, 3.9], 0.2),  # ends with the video
        (3.95, math.inf, [0], [3.9], 0.05),
        (0.3 - 1e-9, 0.4 + 1e-9, [0], [0.3], 0.1),  # sums of decimals are not exact
    ],
)
def test_cuts_are_exact(tmp_path, clip, start, end, times, seconds, length):
    frames = watch(cut(clip, start, end, tmp_path / "cut.mp4"))
    assert [frame[0] for frame in frames] == pytest.approx(times, abs=1e-3)
    assert [frame[2] for frame in frames] == pytest.approx(seconds, abs=0.04)
    assert frames[-1][0] + frames[-1][1] == pytest.approx(length, abs=2e-3)


def test_a_player_can_start_before_the_file_is_there(tmp_path, clip):
    data = cut(clip, 1.0, 2.0, tmp_path / "cut.mp4").read_bytes()
    assert data.index(b"moov") < data.index(b"mdat")


@pytest.mark.parametrize(
    ("start", "end", "kind", "message"),
    [
        (2.0, 2.0, SureshotError, "nothing from 2 s to 2 s; give an end after"),
        (3.0, 2.0, SureshotError, "nothing from 3 s to 2 s"),
        (-3.0, -2.0, SureshotError, "give an end after the start"),
        (math.nan, 2.0, SureshotError, "give an end after the start"),
        (1.0, math.nan, SureshotError, "give an end after the start"),
        (4.0, 5.0, VideoError, r"clip\.mp4 ends at 4 s; give a start before"),
        (1e9, 2e9, VideoError, r"clip\.mp4 ends at 4 s"),
        (1.0, 1.0005, VideoError, r"clip\.mp4 shows nothing .*; widen"),
    ],
)
def test_empty_ranges_are_refused(tmp_path, clip, start, end, kind, message):
    with pytest.raises(kind, match=message):
        cut(clip, start, end, tmp_path / "cut.mp4")
    assert names(tmp_path) == []


@pytest.mark.parametrize("link", ["same", "symbolic", "hard"])
def test_the_source_is_never_replaced(tmp_path, clip, link):
    source = target = tmp_path / "source.mp4"
    source.write_bytes(clip.read_bytes())
    if link != "same":
        target = tmp_path / "link.mp4"
        target.symlink_to(source) if link == "symbolic" else target.hardlink_to(source)
    with pytest.raises(SureshotError, match="is the source itself"):
        cut(source, 0.0, 1.0, target, overwrite=True)
    assert source.read_bytes() == clip.read_bytes()


def test_an_existing_target_is_replaced_only_on_demand(tmp_path, clip):
    target = tmp_path / "cut.mp4"
    target.write_bytes(b"precious")
    with pytest.raises(SureshotError, match=r"cut\.mp4 exists already"):
        cut(clip, 0.0, 1.0, target)
    assert target.read_bytes() == b"precious"
    cut(clip, 0.0, 1.0, target, overwrite=True)
    assert len(watch(target)) == 10 and names(tmp_path) == ["cut.mp4"]


def test_a_target_that_cannot_be_is_refused(tmp_path, clip):
    with pytest.raises(SureshotError, match=r"a name that ends in \.mp4"):
        cut(clip, 0.0, 1.0, tmp_path / "cut.mkv")
    with pytest.raises(SureshotError, match=r"folder .*no does not exist; create it"):
        cut(clip, 0.0, 1.0, tmp_path / "no" / "cut.mp4")
    with pytest.raises(SureshotError, match="frame rate of 0"):
        cut(clip, 0.0, 1.0, tmp_path / "cut.mp4", frame_rate=0.0)
    (tmp_path / "folder.mp4").mkdir()
    with pytest.raises(SureshotError, match=r"folder\.mp4 could not be written"):
        cut(clip, 0.0, 1.0, tmp_path / "folder.mp4", overwrite=True)
    with pytest.raises(SureshotError, match="could not be written"):
        cut(clip, 0.0, 1.0, tmp_path / f"{'x' * 300}.mp4")
    assert names(tmp_path) == ["folder.mp4"]


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (None, "does not exist"),
        (b"", "is empty"),
        (b"not a video" * 99, "is not a video"),
    ],
)
def test_an_unreadable_source_is_a_video_error(tmp_path, data, message):
    source = tmp_path / "source.mp4"
    if data is not None:
        source.write_bytes(data)
    before = names(tmp_path)
    with pytest.raises(VideoError, match=rf"source\.mp4 {message}"):
        cut(source, 0.0, 1.0, tmp_path / "cut.mp4")
    assert names(tmp_path) == before


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), MemoryError(), OSError(5, "Input/output error")]
)
@pytest.mark.parametrize("shown", [0, 5])
def test_nothing_is_left_after_a_failure(tmp_path, clip, monkeypatch, error, shown):
    target = tmp_path / "cut.mp4"
    target.write_bytes(b"precious")
    show, count = mp4._Writer.show, iter(range(100))

    def fail(self, picture):
        if next(count) >= shown:
            raise error
        show(self, picture)

    monkeypatch.setattr(mp4._Writer, "show", fail)
    expected = SureshotError if isinstance(error, OSError) else type(error)
    with pytest.raises(expected):
        cut(clip, 0.0, 1.0, target, overwrite=True)
    assert names(tmp_path) == ["cut.mp4"] and target.read_bytes() == b"precious"


@pytest.mark.parametrize("room", [10, 3000])
def test_a_full_disk_is_named_and_leaves_nothing(tmp_path, clip, room):
    resource = pytest.importorskip("resource")
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (room, hard))
    try:
        with pytest.raises(
            SureshotError, match=r"cut\.mp4 could not be written \(File too large\)"
        ):
            cut(clip, 0.0, 4.0, tmp_path / "cut.mp4")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert names(tmp_path) == []


def test_names_that_are_not_utf8_or_look_like_patterns(tmp_path, clip):
    source = tmp_path / os.fsdecode(b"caf\xe9 %03d http:x.mp4")
    try:
        source.write_bytes(clip.read_bytes())
    except OSError:
        pytest.skip("this file system takes UTF-8 only")
    assert len(watch(cut(source, 0.0, 1.0, tmp_path / os.fsdecode(b"\xff.mp4")))) == 10
    with pytest.raises(VideoError) as caught:
        cut(source, 50.0, 51.0, tmp_path / "cut.mp4")
    str(caught.value).encode()


@pytest.mark.parametrize(
    ("source", "start", "end", "rank", "name"),
    [
        ("beach-day.mp4", 725.0, 755.0, 1, "01 beach-day 00.12.05-00.12.35.mp4"),
        ("a/b.c.mkv", 0.4, 3599.2, 12, "12 b.c 00.00.00-01.00.00.mp4"),
        ("x.mp4", 0.1 + 0.2 + 0.7, 2.0000001, 100, "100 x 00.00.01-00.00.02.mp4"),
        ("x.mp4", -3.0, 360_000.0, 1, "01 x 00.00.00-100.00.00.mp4"),
        ("a:b\n \\c?\u202e.mp4", 0.0, 1.0, 1, "01 a_b_ _c__ 00.00.00-00.00.01.mp4"),
        ("...", 0.0, 1.0, 1, "01 video 00.00.00-00.00.01.mp4"),
        ("क्\u200dष.mp4", 0.0, 1.0, 1, "01 क्\u200dष 00.00.00-00.00.01.mp4"),
    ],
)
def test_export_name(source, start, end, rank, name):
    assert export_name(Path(source), start, end, rank) == name


@settings(max_examples=40, deadline=None)
@given(st.text(min_size=1), st.floats(0, 1e6), st.floats(0, 1e6), st.integers(1, 10**6))
@example("日" * 300 + ".mp4", 1.0, 2.0, 1)
@example(os.fsdecode(b"caf\xe9.mp4"), 1.0, 2.0, 1)
@example("e\u0301" * 300, 1.0, 2.0, 1)
def test_export_names_are_safe(source, start, end, rank):
    name = export_name(Path(source), start, end, rank)
    assert len(name.encode()) <= 200 and name.endswith(".mp4") and not name.startswith(".")
    assert not set(name) & set('/\\:*?"<>|')
    assert not any(unicodedata.category(c) in {"Cc", "Cs"} for c in name)


# --- the hits of an answer ------------------------------------------------------------------------


def answer(*hits: Hit) -> Answer:
    return Answer(
        query="grey", hits=hits, status="not calibrated", model="tiny", searched=9, seconds=0.1
    )


def hit(path: Path, rank: int) -> Hit:
    frames = (FrameScore(1.0, 0.5),)
    return Hit(rank=rank, path=path, start=0.0, end=2.0, score=0.5, frames=frames)


def test_every_hit_is_cut_and_what_cannot_be_is_told(tmp_path, clip):
    found = answer(hit(clip, 1), hit(tmp_path / "gone.mp4", 2))
    exported = export(found, tmp_path / "new" / "out", pad=0.5)
    (written,) = exported.written
    assert written.name == "01 clip 00.00.00-00.00.03.mp4"  # with what was added around it
    assert watch(written)[-1][2] == pytest.approx(2.4, abs=0.06)
    ((target, reason),) = exported.failed
    assert target == tmp_path / "new" / "out" / "02 gone 00.00.00-00.00.03.mp4"
    assert "gone.mp4 does not exist" in reason
    assert exported.to_dict()["written"] == [str(written)]


def test_hits_that_are_probably_wrong_are_not_cut_unless_asked(tmp_path, clip):
    hits = [replace(hit(clip, rank), probability=p) for rank, p in enumerate((0.5, 0.2, 0.12), 1)]
    exported = export(answer(*hits), tmp_path)
    assert [path.name[:2] for path in exported.written] == ["01", "02"]
    assert (exported.left_out, exported.to_dict()["left_out"]) == (1, 1)
    assert exported.remark == "1 hit not cut: less likely right than 20%. --min 0% cuts every hit."
    assert len(export(answer(*hits), tmp_path, min=0.0, overwrite=True).written) == 3
    absent = replace(answer(hit(clip, 1)), status="probably not here")
    exported = export(absent, tmp_path / "absent")
    assert not exported.written and "1 hit not cut: probably not in your videos." in exported.remark
    assert export(absent, tmp_path / "absent", min=0.0).written


@pytest.mark.parametrize(
    ("name", "codec", "pixels"),
    [("source.mkv", "ffv1", "bgr0"), ("source.mov", "prores_ks", "yuv422p10le")],
)
def test_a_cut_looks_like_its_source(tmp_path, name, codec, pixels):
    """Fine detail in motion, which a small bit rate smears."""
    rng = np.random.default_rng(0)
    still = rng.integers(60, 190, (200, 200)).astype(float)
    for axis in (0, 1):
        still = (still + np.roll(still, 1, axis) + np.roll(still, 2, axis)) / 3
    shown = [np.stack([still[n : n + 96, n : n + 128]] * 3, -1).astype(np.uint8) for n in range(20)]
    source = film(tmp_path / name, shown, rate=10, codec=codec, pixels=pixels)
    with av.open(cut(source, 0.0, 2.0, tmp_path / "cut.mp4")) as container:
        context = container.streams.video[0].codec_context
        assert (context.codec.canonical_name, context.pix_fmt) == ("h264", "yuv420p")
        frames = [f.to_ndarray(format="rgb24").astype(float) for f in container.decode(video=0)]
    error = np.mean([(a - b) ** 2 for a, b in zip(frames, shown, strict=True)])
    assert 10 * np.log10(255**2 / error) > 45  # decibels


def record(path: Path, duration: float = 6.0, size: int = 1) -> VideoRecord:
    return VideoRecord(path=path, kind="file", size=size, mtime_ns=0, duration=duration)


@pytest.mark.parametrize("at", [0.0, 50.0, 99.9, 100.0])
@pytest.mark.parametrize("start, end", [(0.0, 100.0), (40.0, 60.0), (0.0, 0.0)])
def test_a_part_holds_the_second_and_is_short(at, start, end) -> None:
    first, last = part_around(at, start, end, 100.0)
    assert 0 <= first <= at <= last <= 100.05
    assert 0 < last - first <= LONGEST + 0.01


def test_of_other_films_a_part_is_made_that_begins_where_it_says(tmp_path) -> None:
    found = record(written("mpeg4", tmp_path))
    film = film_of(found, at=5.0, start=4.5, end=5.5)
    assert (film.way, film.start, film.end) == ("clip", 2.5, 6.0)
    write_part(found, film, tmp_path / "part.mp4", rate=1.0)
    with av.open(tmp_path / "part.mp4") as container:
        shown = [
            (f.time, f.to_ndarray(format="rgb24")[60].mean(0).argmax())
            for f in container.decode(video=0)
        ]
    # Green lasts until second 4 of the film, blue follows.
    assert {colour for time, colour in shown if time < 1.4} == {1}
    assert {colour for time, colour in shown if time > 1.6} == {2}


@pytest.mark.parametrize("at", [8.0, 8.04, 10.26, 21.9, 22.0, 23.0])
def test_the_seconds_seen_first_lie_in_the_part_and_hold_what_is_looked_for(at) -> None:
    film = Film("clip", MP4, 8.0, 22.0)
    first = first_part(film, at)
    assert film.start <= first.start < first.end <= film.end
    assert first.start <= at and first.end - first.start <= 4.01
    assert first.end > min(at, 21.99)


def test_a_large_file_is_not_copied_to_be_played(tmp_path) -> None:
    path = written("h264-mkv", tmp_path)
    assert film_of(record(path), at=1.0, start=0.0, end=2.0).way == "remux"
    large = record(path, size=10**9)
    assert film_of(large, at=1.0, start=0.0, end=2.0).way == "clip"


def test_what_cannot_be_played_names_the_file(tmp_path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(VideoError, match=r"a\.mp4 is not a video"):
        film_of(record(tmp_path / "a.mp4"), at=1.0, start=0.0, end=2.0)
    with pytest.raises(QueryError, match="6 s long; there is nothing at 9 s"):
        film_of(record(tmp_path / "a.mp4"), at=9.0, start=9.0, end=9.0)


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def test_a_still_is_a_jpeg_of_the_second_asked_for(library) -> None:
    for at, strongest in ((1.0, 0), (5.0, 1), (11.0, 2), (999.0, 2)):
        picture = Image.open(io.BytesIO(still(library.videos / "scenes.mp4", at, side=24)))
        assert (picture.format, min(picture.size)) == ("JPEG", 24)
        assert np.asarray(picture)[12:].mean((0, 1)).argmax() == strongest
    with pytest.raises(VideoError, match=r"b\.mp4 has vanished"):
        still(library.videos / "b.mp4", 0.0, side=24)


def test_a_frame_is_looked_for_alone_and_not_with_its_moment(searcher, library) -> None:
    green = like_frame(searcher, library.videos / "scenes.mp4", 6.0, limit=1)
    assert [(hit.path.name, 4 <= hit.peak < 8) for hit in green] == [("scenes.mp4", True)]


def test_a_photo_is_called_what_it_was_called(searcher) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (0, 0, 255)).save(buffer, "PNG")
    answer = like_photo(searcher, buffer.getvalue(), "sea.png", limit=1)
    assert (answer.query, answer[0].path.name) == ("sea.png", "scenes.mp4")
    assert answer[0].peak >= 8


def test_what_is_no_picture_is_told(searcher) -> None:
    with pytest.raises(QueryError, match=r"notes\.txt is not a picture"):
        like_photo(searcher, b"some text", "notes.txt")


def shown(row):
    """Name of the colour that each frame of a row is nearest to."""
    names, colours = list(COLOURS), np.array(list(COLOURS.values()))
    means = [frame.image.reshape(-1, 3).mean(0) for frame in row.frames]
    return [names[np.linalg.norm(colours - mean, axis=1).argmin()] for mean in means]


def test_a_row_shows_the_frames_of_its_hit_and_says_what_it_is(searcher):
    (row,) = map(sheet_row, searcher.search("white", limit=1))
    assert row.subtitle.endswith(" · 1 copy elsewhere")
    answer = searcher.search("green", limit=1)
    (row,) = map(sheet_row, answer)
    assert set(shown(row)) == {"green"}
    assert row.title == "1. scenes.mp4"
    assert row.subtitle == f"0:04-0:08 · score 1.000 · in {answer[0].path.parent.name}"
    assert [(f.time, f.score) for f in row.frames] == [(f.time, f.score) for f in answer[0].frames]


@pytest.mark.parametrize("count", [1, 12, 13, 25, 1000])
@pytest.mark.parametrize("best", [0.0, 0.5, 1.0])
def test_of_many_frames_a_dozen_are_drawn_the_best_among_them(searcher, count, best):
    answer = searcher.search("green", limit=1)
    times = np.linspace(4.0, 7.9, count)
    at = round(best * (count - 1))
    frames = tuple(FrameScore(t.item(), float(i == at)) for i, t in enumerate(times))
    (row,) = map(sheet_row, replace(answer, hits=(replace(answer[0], frames=frames),)))
    assert max(1, min(count, 12) // 2) <= len(row.frames) <= 12
    assert sum(frame.score for frame in row.frames) == 1.0
    assert [f.time for f in row.frames] == sorted(f.time for f in row.frames)


def test_a_video_that_vanished_or_broke_gives_a_row_that_says_so(tmp_path):
    for name in ("gone", "broken", "there"):
        coloured(tmp_path / f"{name}.mp4", ["red"], seconds=1)
    index(str(tmp_path / "index"), tmp_path)
    (tmp_path / "gone.mp4").unlink()
    (tmp_path / "broken.mp4").write_bytes(b"no video")
    rows = {
        row.title[3:]: row
        for row in map(sheet_row, open_index(tmp_path / "index").search("red", merge_copies=False))
    }
    assert rows["there.mp4"].frames
    assert rows["gone.mp4"].subtitle.endswith("cannot be shown, the video has vanished")
    assert "cannot be shown, the video" in rows["broken.mp4"].subtitle
    assert not rows["gone.mp4"].frames + rows["broken.mp4"].frames


def test_frames_of_a_folder_come_at_its_rate(tmp_path):
    from PIL import Image

    folder = tmp_path / "frames"
    folder.mkdir()
    for number in range(8):
        colour = "blue" if number < 4 else "red"
        Image.new("RGB", (32, 24), COLOURS[colour]).save(folder / f"{number}.png")
    index(str(tmp_path / "index"), folder, frame_rate=2.0)
    answer = open_index(tmp_path / "index").search("red", limit=1)
    (row,) = map(sheet_row, answer)
    assert answer[0].start == pytest.approx(2.0)
    assert set(shown(row)) == {"red"}
    assert np.asarray(answer[0].frame()).mean((0, 1)).argmax() == 0
    clip = answer[0].clip(tmp_path / "one.mp4")
    (exported,) = export(answer, tmp_path / "out", min=0).written
    for path in (clip, exported):
        (first,) = frames_at(path, [0.0], side=24)
        assert first.mean((0, 1)).argmax() == 0
    shutil.rmtree(folder)
    assert "cannot be shown" in sheet_row(answer[0]).subtitle
