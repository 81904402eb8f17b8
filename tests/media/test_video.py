"""Decoding real files: sound ones in every container, and every way a file can be broken."""

import contextlib
import os
import random
import re
import struct
import subprocess
import sys
import threading
from fractions import Fraction
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image

from sureshot.errors import VideoError
from sureshot.library.encoding import content_digest
from sureshot.media import video as media_video
from sureshot.media.container import TimeBudget
from sureshot.media.discover import Source
from sureshot.media.excerpt import footage, playable
from sureshot.media.video import Clock, _seek_to, frames_at, open_video
from sureshot.s3 import object_path
from tests.buckets import BUCKET
from tests.clips import coloured, film, greys, patterns, remuxed, sound

CONTAINERS = [
    ("mp4", "libx264", "yuv420p"),
    ("m4v", "mpeg4", "yuv420p"),
    ("mkv", "libx264", "yuv420p"),
    ("mov", "mpeg4", "yuv420p"),
    ("avi", "mpeg4", "yuv420p"),
    ("webm", "libvpx", "yuv420p"),
    ("mpg", "mpeg2video", "yuv420p"),
    ("ts", "libx264", "yuv420p"),
    ("wmv", "wmv2", "yuv420p"),
    ("flv", "flv1", "yuv420p"),
    ("gif", "gif", "gray"),
    ("apng", "apng", "rgb24"),
]


def source(path, kind="file"):
    return Source(path, kind, 0, 0)


def read(path, kind="file", **options):
    """The closed video with its notes, and its frames."""
    with open_video(source(path, kind), **options) as video:
        frames = list(video)
    return video, frames


def times(frames):
    return [round(frame.time, 3) for frame in frames]


def level(image):
    return float(image.mean())


def reason(path, kind="file", **options):
    """Why a video cannot be read: one sentence without the path."""
    with pytest.raises(VideoError) as caught:
        read(path, kind, **options)
    told = str(caught.value)
    assert told and "\n" not in told and str(path.parent) not in told and "errno" not in told
    return told


def within(seconds, call):
    """The result of a call that might wait forever."""
    results = []

    def run():
        try:
            results.append(call())
        except (VideoError, OSError) as error:
            results.append(error)

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    assert results, f"not done within {seconds} s"
    return results[0]


def content_digest_of(path):
    return content_digest(source(path))


# Sound files


@pytest.mark.parametrize(("suffix", "codec", "pixels"), CONTAINERS)
def test_every_container_gives_its_frames_in_order_with_times(tmp_path, suffix, codec, pixels):
    rate = 25 if codec == "mpeg2video" else 10
    clip = film(
        tmp_path / f"a.{suffix}", greys(range(40, 240, 5)), rate=rate, codec=codec, pixels=pixels
    )
    video, frames = read(clip)
    assert times(frames) == pytest.approx([number / rate for number in range(40)], abs=0.011)
    assert [level(frame.image(32)) for frame in frames] == pytest.approx(range(40, 240, 5), abs=6)
    assert not video.note
    if suffix not in ("apng", "mpg"):  # one does not say, the other guesses
        assert video.duration == pytest.approx(40 / rate, abs=0.2)


@pytest.mark.parametrize("suffix", ["mov", "mp4", "mkv"])
def test_every_frame_is_read_beside_tracks_of_any_kind(tmp_path, suffix):
    made, heard = film(tmp_path / "made.mp4", patterns(30)), sound(tmp_path / "a.m4a")
    path = tmp_path / f"all.{suffix}"
    with av.open(made) as source, av.open(heard) as tone, av.open(path, "w") as target:
        tracks = {}  # the sound is the first track, as phones have it
        for one in (tone.streams.audio[0], source.streams.video[0]):
            tracks[one] = target.add_stream_from_template(one, opaque=True)
        if suffix == "mkv":  # fonts of its subtitles
            target.add_attachment("a.ttf", "font/ttf", b"font")
        else:  # a track of data
            tracks[one].metadata["timecode"] = "01:00:00:00"
            tracks[one].codec_context.framerate = Fraction(10)
        for one, copy in tracks.items():
            for packet in one.container.demux(one):
                if packet.dts is not None:
                    packet.stream = copy
                    target.mux(packet)
    with av.open(path) as container:
        kinds = [stream.type for stream in container.streams]
    assert kinds == ["audio", "video", "attachment" if suffix == "mkv" else "data"]
    with open_video(Source(path, "video", path.stat().st_size, 0), decode="all") as video:
        assert len(list(video)) == 30 and not video.note


def test_colours_come_out_as_they_went_in(tmp_path):
    _, frames = read(coloured(tmp_path / "a.mp4", ["red", "blue"], seconds=0.5, rate=4))
    means = [frame.image(48)[20:].mean((0, 1)) for frame in frames]
    assert np.allclose(means, [(255, 0, 0)] * 2 + [(0, 0, 255)] * 2, atol=6)


def test_pictures_that_no_other_needs_are_left_out_where_the_next_comes_at_once(tmp_path):
    for rate, spared in ((40, True), (25, True), (12, False)):
        clip = film(tmp_path / f"{rate}.mp4", greys([90] * 4 * rate), rate=rate)
        every = times(read(clip, decode="all")[1])
        video, frames = read(clip)
        left = times(frames)
        assert len(every) == 4 * rate and not video.note
        assert (len(left) < 0.8 * len(every)) == spared
        assert set(left) <= set(every) and (left[0], left[-1]) == (every[0], every[-1])
        assert max(np.diff(left)) <= 0.13


@pytest.mark.parametrize("height", [360, 720])
def test_edges_of_blocks_are_smoothed_but_where_frames_are_shrunk_to_less_than_half(
    tmp_path, height
):
    pictures = patterns(4, (height * 16 // 9, height))
    clip = film(tmp_path / "a.mp4", pictures, options={"crf": "40"})
    auto, every = (
        [frame.image(np.copy).astype(int) for frame in read(clip, decode=how)[1]]
        for how in ("auto", "all")
    )
    apart = np.abs(np.subtract(auto, every)).mean()
    assert (apart == 0) == (height == 360) and apart < 8


def test_a_variable_frame_rate_keeps_its_times(tmp_path):
    stamps = [0, 40, 1000, 1040, 5000]
    for suffix in ("mp4", "mkv", "ts"):
        _, frames = read(film(tmp_path / f"a.{suffix}", greys([90] * 5), times=stamps))
        assert times(frames) == pytest.approx([stamp / 1000 for stamp in stamps], abs=0.002)


def test_times_begin_at_zero_wherever_the_clock_of_the_file_does(tmp_path):
    stamps = [3_600_000 + 100 * number for number in range(10)]
    for suffix in ("mp4", "mkv", "ts"):
        video, frames = read(film(tmp_path / f"a.{suffix}", greys([90] * 10), times=stamps))
        assert times(frames) == pytest.approx(np.arange(10) / 10, abs=0.002)
        assert not video.note


@pytest.mark.parametrize("late", [0, 3_600_000], ids=["set back a little", "set back an hour"])
def test_two_recordings_in_one_file_follow_each_other(tmp_path, late):
    stamps = [late + 100 * number for number in range(30)]
    one = film(tmp_path / "one.ts", greys([50] * 30), times=stamps)
    two = film(tmp_path / "two.ts", greys([200] * 30), times=range(0, 3000, 100))
    both = tmp_path / "both.ts"
    both.write_bytes(one.read_bytes() + two.read_bytes())
    _, frames = read(both)
    assert times(frames) == pytest.approx(np.arange(60) / 10, abs=0.11)
    levels = [level(frame.image(32)) for frame in frames]
    assert levels == pytest.approx([50] * 30 + [200] * 30, abs=4)


def test_a_still_late_in_long_recordings_on_a_slow_disk_is_waited_for(tmp_path, monkeypatch):
    parts = [film(tmp_path / f"{n}.ts", patterns(200, seed=n), every=5) for n in range(2)]
    both = tmp_path / "both.ts"
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    frames_at(both, [1.0], side=8)  # its clock is looked at
    passed = [0.0, 0.0]

    def clock():
        passed[0] += passed[1]
        return passed[0]

    monkeypatch.setattr(media_video, "TimeBudget", lambda size: TimeBudget(size, 1e6, clock))
    with open_video(Source(both, "file"), decode="all") as video:
        passed[1] = 20.0  # seconds from one look at the clock to the next
        assert video.seek(35.0)
        assert 30 < next(video.frames).time <= 35


def test_raw_streams_without_any_times_are_read_at_some_rate(tmp_path):
    for name, codec in (("a.h264", "libx264"), ("a.m2v", "mpeg2video"), ("a.ivf", "libvpx")):
        clip = film(tmp_path / name, greys(range(50, 150, 5)), codec=codec, rate=25)
        _, frames = read(clip)
        assert times(frames) == pytest.approx(np.arange(20) / 25, abs=0.001)


def test_a_file_that_does_not_know_its_length_is_read_to_its_end(tmp_path):
    clip = tmp_path / "piped.webm"
    reading, writing = os.pipe()  # what cannot seek cannot write its length at the end
    with os.fdopen(writing, "wb") as pipe, av.open(pipe, "w", format="webm") as container:
        stream = container.add_stream("libvpx", rate=10)
        stream.width, stream.height, stream.pix_fmt = 32, 32, "yuv420p"
        for picture in greys(range(50, 150, 5)):
            container.mux(stream.encode(av.VideoFrame.from_ndarray(picture, "rgb24")))
        container.mux(stream.encode(None))
    with os.fdopen(reading, "rb") as pipe:
        clip.write_bytes(pipe.read())
    video, frames = read(clip)
    assert video.duration == 0 and len(frames) == 20 and not video.note


@pytest.mark.parametrize("claim", [0, 1, 10_000_000, 2**32 - 1])
def test_an_absurd_duration_is_not_believed_and_does_no_harm(tmp_path, claim):
    clip = film(tmp_path / "a.mp4", greys(range(50, 150, 5)))
    data = bytearray(clip.read_bytes())
    for box, at in ((b"mvhd", 20), (b"tkhd", 24), (b"mdhd", 20)):
        place = data.index(box) + at
        data[place : place + 4] = struct.pack(">I", claim)
    clip.write_bytes(bytes(data))
    video, frames = read(clip)
    assert 0 <= video.duration < 7 * 86400
    assert times(frames) == pytest.approx(np.arange(20) / 10, abs=0.001)


# Decoding keyframes only, and what comes shortly before one


@pytest.fixture(scope="module")
def sparse(tmp_path_factory):
    """Eleven minutes at one frame a second, with three keyframes."""
    path = tmp_path_factory.mktemp("long") / "sparse.mp4"
    # An encoder adds keyframes where something happens.
    return film(path, greys([90] * 660, (16, 16)), rate=1, codec="mpeg4", every=250)


def test_keyframes_alone_still_tell_a_video_that_was_cut_short(sparse, tmp_path):
    whole = remuxed(sparse, tmp_path / "a.mp4", movflags="+faststart").read_bytes()
    short = tmp_path / "short.mp4"
    short.write_bytes(whole[: len(whole) // 2])
    video, frames = read(sparse, decode="keyframes")
    assert len(frames) == 3 and video.note == ""
    assert "of 660 s" in read(short, decode="keyframes")[0].note


@pytest.mark.parametrize(
    ("suffix", "codec", "options"),
    [
        ("mp4", "libx264", {"bf": "0"}),
        ("mp4", "libx264", {"x264-params": "open-gop=1"}),
        ("ts", "mpeg2video", {"bf": "2"}),
        ("mkv", "mpeg4", {}),
        ("webm", "libvpx", {}),
    ],
)
def test_nothing_is_decoded_shortly_before_a_keyframe_that_shows_the_same(
    tmp_path, suffix, codec, options
):
    dark, light = np.full((64, 64, 3), 60, np.uint8), np.full((64, 64, 3), 200, np.uint8)
    # One cut, at 6.4 s, that is no keyframe; these are a second apart.
    pictures = [dark] * 128 + [light] * 112
    options |= {"sc_threshold": "0"} if codec in ("libx264", "mpeg2video") else {}
    clip = film(tmp_path / f"a.{suffix}", pictures, rate=20, codec=codec, every=20, options=options)
    every = [(frame.time, level(frame.image(8)) > 128) for frame in read(clip, decode="all")[1]]
    video, frames = read(clip, gap=1.5)
    left = [(frame.time, level(frame.image(8)) > 128) for frame in frames]
    assert video.note == "" and set(left) <= set(every)
    assert len(left) < len(every) / 2
    assert min(steps := np.diff([time for time, _ in left])) > 0 and max(steps) <= 1.7
    assert min(time for time, is_light in left if is_light) == pytest.approx(6.4, abs=0.11)
    assert left[0] == every[0] and left[-1][0] >= every[-1][0] - 0.11
    assert len(read(clip, gap=0.5)[1]) > len(left)


# Broken files


@pytest.mark.parametrize("suffix", ["mp4", "gif", "ts", "mkv", "avi", "y4m", "webm"])
def test_a_text_under_a_videos_name_is_no_video(tmp_path, suffix):
    text = tmp_path / f"notes.{suffix}"
    text.write_text("Remember the milk.\n" * 300)
    assert reason(text) == "is not a video, or is damaged or cut short"


def test_what_is_empty_has_vanished_or_is_no_file_says_so(tmp_path):
    (tmp_path / "a.mp4").touch()
    assert reason(tmp_path / "a.mp4") == "is empty (0 bytes)"
    with pytest.raises(VideoError, match="has vanished") as caught:
        read(tmp_path / "nothing.mp4")
    assert caught.value.transient
    assert reason(tmp_path / "folder" / "nothing.mp4") == "has vanished"
    (tmp_path / "folder").mkdir()
    assert reason(tmp_path / "folder") == "is not a regular file"


@pytest.mark.parametrize("name", ["a.mp4", "a.jpg"])
@pytest.mark.parametrize(
    "way",
    [
        read,
        lambda path: frames_at(path, [0.0], side=8),
        lambda path: list(footage(path, 0.0, 1.0, 1.0)[0]),
        playable,
        content_digest_of,
    ],
)
def test_a_pipe_in_the_place_of_a_video_is_not_waited_for(tmp_path, name, way):
    os.mkfifo(tmp_path / name)
    error = within(20, lambda: way(tmp_path / name))
    assert "is not a regular file" in str(error)


def test_an_mp4_whose_index_at_the_end_is_missing_cannot_be_read(tmp_path):
    whole = film(tmp_path / "a.mp4", greys(range(50, 150, 5))).read_bytes()
    (tmp_path / "a.mp4").write_bytes(whole[: whole.index(b"moov") - 4])
    assert reason(tmp_path / "a.mp4") == "is not a video, or is damaged or cut short"


@pytest.mark.parametrize(
    ("suffix", "codec", "heard"),
    [
        ("mp4", "libx264", "aac"),
        ("mov", "mpeg4", ""),
        ("mkv", "libx264", ""),
        ("mkv", "libx264", "libopus"),
        ("webm", "libvpx", "libopus"),
        ("flv", "flv1", "libmp3lame"),
        ("avi", "mpeg4", "pcm_s16le"),
        ("wmv", "wmv2", ""),
    ],
)
def test_a_download_that_was_cut_short_is_read_as_far_as_it_goes_and_says_so(
    tmp_path, suffix, codec, heard
):
    clip = talking(tmp_path / f"a.{suffix}", codec, heard)
    assert read(clip)[0].note == ""
    whole = clip.read_bytes()
    clip.write_bytes(whole[: len(whole) // 4])
    video, frames = read(clip)
    assert 15 <= len(frames) <= 60
    said = re.fullmatch(r"(is damaged near \d+ s; )?ends early: (\d+) s of (\d+) s", video.note)
    assert said and 2 <= int(said[2]) <= 5 and int(said[3]) in (12, 13)


def test_sound_that_goes_on_or_ends_early_is_no_cut(tmp_path):
    for suffix in ("mp4", "mkv"):
        for seconds in (2, 20):
            clip = talking(tmp_path / f"{seconds}.{suffix}", "libx264", "libmp3lame", seconds)
            assert read(clip)[0].note == ""


def talking(path, codec, heard, seconds=12):
    """A clip of twelve seconds of noise, its index at its front, with so many seconds of sound."""
    noise = np.random.default_rng(0).integers(0, 256, (120, 48, 64, 3), np.uint8)
    front = {"movflags": "+faststart"} if path.suffix in (".mp4", ".mov") else {}
    with av.open(path, "w", options=front) as container:
        stream = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
        audio = container.add_stream(heard, rate=48_000) if heard else None
        if audio:
            audio.layout = "mono"
        for number in range(10 * max(12, seconds)):
            if number < 120:
                frame = av.VideoFrame.from_ndarray(noise[number], "rgb24")
                container.mux(stream.encode(frame))
            if audio and number < 10 * seconds:
                tone = av.AudioFrame.from_ndarray(np.zeros((1, 4800), np.float32), "fltp", "mono")
                tone.sample_rate, tone.pts = 48_000, 4800 * number
                container.mux(audio.encode(tone))
        container.mux([*stream.encode(None), *(audio.encode(None) if audio else ())])
    return path


def test_a_video_broken_off_in_its_last_frame_has_a_note(tmp_path):
    noise = np.random.default_rng(0).integers(0, 256, (20, 48, 64, 3), np.uint8)
    fast = remuxed(film(tmp_path / "a.mp4", noise), tmp_path / "b.mp4", movflags="+faststart")
    fast.write_bytes(fast.read_bytes()[:-30])
    assert "damaged" in read(fast)[0].note


@pytest.mark.parametrize("suffix", ["mp4", "mkv", "mpg", "avi"])
def test_damage_in_the_middle_costs_a_few_frames_and_leaves_a_note(tmp_path, suffix):
    codec, rate = ("mpeg2video", 25) if suffix == "mpg" else ("libx264", 10)
    noise = np.random.default_rng(0).integers(0, 256, (80, 48, 64, 3), np.uint8)
    clip = film(tmp_path / f"a.{suffix}", noise, codec=codec, rate=rate)
    data = bytearray(clip.read_bytes())
    middle = len(data) // 2
    data[middle : middle + 3000] = random.Random(0).randbytes(3000)
    clip.write_bytes(bytes(data))
    video, frames = read(clip)
    # In mkv and avi ffmpeg often looks for the next cluster or chunk and goes on without a word.
    if suffix in ("mp4", "mpg"):
        assert "is damaged near" in video.note and video.note.count("damaged") == 1
    assert len(frames) > 50
    assert times(frames) == sorted(times(frames))
    assert frames[-1].time == pytest.approx(79 / rate, abs=0.5)


def test_what_comes_after_a_long_hole_is_read(tmp_path):
    """As where pieces of a download are missing: 400 packets in a row are nothing."""
    noise = np.random.default_rng(0).integers(0, 256, (600, 32, 32, 3), np.uint8)
    clip = film(tmp_path / "a.mp4", noise, rate=25, every=500)
    with av.open(clip) as container:
        parts = [(p.pos, p.size) for p in container.demux(video=0) if p.size]
    data = bytearray(clip.read_bytes())
    for position, size in parts[60:460]:
        data[position : position + size] = bytes(size)
    clip.write_bytes(bytes(data))
    video, frames = read(clip)
    assert "is damaged near" in video.note
    assert frames[-1].time == pytest.approx(599 / 25, abs=0.1) and len(frames) > 150


def test_a_frame_that_damage_delays_does_not_move_those_after_it(tmp_path):
    # Found with three holes in a small clip: a late frame looked like a clock set back.
    clip = coloured(tmp_path / "a.mp4", ["red", "green", "blue"])
    data = bytearray(clip.read_bytes())
    first, size = data.index(b"mdat"), data.index(b"moov") - data.index(b"mdat")
    for seed in range(12):
        broken, dice = bytearray(data), random.Random(seed)
        for _ in range(3):
            hole = first + int(size * dice.uniform(0.3, 0.9))
            broken[hole : hole + 60] = dice.randbytes(60)
        clip.write_bytes(bytes(broken))
        with contextlib.suppress(VideoError):
            assert read(clip)[1][-1].time < 6.0


def test_sound_is_no_video_with_or_without_a_cover(tmp_path):
    assert reason(sound(tmp_path / "a.mp4")) == "has no video stream"
    # Found with PyAV 18, whose dispositions print as numbers: covers were indexed as videos.
    assert reason(sound(tmp_path / "b.mp4", cover=True)) == "has no video stream"


def test_a_video_without_frames_says_so(tmp_path):
    for suffix in ("mp4", "mkv", "avi"):
        with av.open(tmp_path / f"a.{suffix}", "w") as container:
            stream = container.add_stream("mpeg4", rate=10)
            stream.width, stream.height, stream.pix_fmt = 64, 48, "yuv420p"
            container.start_encoding()
        assert reason(tmp_path / f"a.{suffix}") in (
            "has no video stream",
            "holds no frame that can be decoded",
            "is not a video, or is damaged or cut short",
        )


def test_names_of_any_bytes_and_length_are_opened(tmp_path):
    clip = film(tmp_path / "a.mp4", greys([90] * 3)).read_bytes()
    for name in (
        b"caf\xff\xe9.mp4",
        b"x" * 251 + b".mp4",
        b"50%d of #1: a?&b.mp4",
        b"new\nline.mp4",
    ):
        path = tmp_path / os.fsdecode(name)
        path.write_bytes(clip)
        assert len(read(path)[1]) == 3


# Folders of frames


def folder_of(path, levels, suffix="png", name="frame{}"):
    path.mkdir()
    for number, grey in enumerate(levels):
        picture = greys([grey], (40, 30))[0]
        Image.fromarray(picture).save(path / f"{name.format(number)}.{suffix}")
    return path


@pytest.mark.parametrize("suffix", ["png", "jpg", "webp", "bmp"])
def test_a_folder_of_frames_is_read_in_the_order_of_its_numbers(tmp_path, suffix):
    folder = folder_of(tmp_path / "f", range(0, 240, 20), suffix)
    video, frames = read(folder, "frames", rate=2.0)
    assert times(frames) == list(np.arange(12) / 2) and video.duration == 6.0
    assert [level(f.image(30)) for f in frames] == pytest.approx(range(0, 240, 20), abs=3)


def test_a_broken_image_is_left_out_and_noted(tmp_path):
    folder = folder_of(tmp_path / "f", [50, 100, 150, 200])
    (folder / "frame1.png").write_text("not an image")
    whole = (folder / "frame2.png").read_bytes()
    (folder / "frame2.png").write_bytes(whole[: len(whole) // 2])
    video, frames = read(folder, "frames")
    assert times(frames) == [0.0, 3.0]
    assert video.note == "2 of 4 frames cannot be read: 'frame1.png' is not an image"


def test_a_folder_of_broken_images_is_no_video(tmp_path):
    folder = folder_of(tmp_path / "f", [50, 100])
    for image in folder.iterdir():
        image.write_bytes(b"no")
    told = reason(folder, "frames")
    assert told == "holds no frame that can be read: 'frame0.png' is not an image"


def test_a_folder_that_vanishes_or_changes_its_nature_says_so(tmp_path):
    assert reason(tmp_path / "gone", "frames") == "has vanished"
    folder = folder_of(tmp_path / "f", [50, 100])
    (folder / "frame1.png").unlink()
    assert reason(folder, "frames") == "is not a folder of numbered frames"


# Frames at given times


@pytest.mark.parametrize(("suffix", "codec", "pixels"), CONTAINERS)
def test_frames_at_are_those_on_screen_and_seeking_finds_the_same(tmp_path, suffix, codec, pixels):
    rate = 25 if codec == "mpeg2video" else 5
    levels = [(number * 5 // rate) * 2 + 10 for number in range(rate * 24)]
    clip = film(
        tmp_path / f"a.{suffix}", greys(levels, (16, 16)), rate=rate, codec=codec, pixels=pixels
    )
    asked = [0.0, 0.2, 0.3, 1.0, 8.0, 8.1, 16.0, 23.7, 24.5, 1e6, 2e6]
    images = frames_at(clip, asked, side=8)
    wanted = [levels[min(int(time * rate + 1e-6), len(levels) - 1)] for time in asked]
    assert [level(image) for image in images] == pytest.approx(wanted, abs=5)
    assert images[0].shape == (8, 8, 3)


def test_a_frame_stays_on_screen_until_the_next_one_comes(tmp_path):
    clip = film(tmp_path / "a.mp4", greys([50, 100, 150]), times=[0, 3000, 20_000])
    images = frames_at(clip, [2.9, 3.0, 9.0, 19.9, 20.0], side=32)
    assert [level(image) for image in images] == pytest.approx([50, 100, 100, 100, 150], abs=3)


@pytest.fixture
def large(tmp_path, bucket):
    """A film in a bucket that is as large as one of hours, by packets of nothing."""
    data = film(tmp_path / "a.ts", patterns(200), every=5).read_bytes()
    parts, size = [], 188 * (len(data) // 188 // 30)
    for start in range(0, len(data), size):
        parts += [data[start : start + size], (b"\x47\x1f\xff\x10" + b"\xff" * 184) * 5000]
    bucket.put("v/a.ts", b"".join(parts))
    return object_path(f"s3://{BUCKET}/v/a.ts")


def test_at_the_clock_of_a_file_in_a_bucket_is_looked_once(large, bucket):
    asked = []
    for _ in range(2):
        bucket.asked.clear()
        frames_at(large, [4.0], side=8)
        asked.append(len(bucket.asked))
    assert asked[1] < asked[0] - 8


def test_a_storage_that_refuses_the_rest_of_a_file_is_one_error_and_no_traceback(
    large, bucket, capsys
):
    bucket.fault = lambda asked: "403" if asked.is_read and "=0-" not in asked.range else None
    with pytest.raises(VideoError, match="access is denied by the object storage"):
        frames_at(large, [4.0], side=8)
    assert capsys.readouterr() == ("", "")


def test_frames_at_of_a_folder(tmp_path):
    folder = folder_of(tmp_path / "f", range(0, 240, 20))
    images = frames_at(folder, [0.0, 0.9, 1.0, 10.5, 99.0], side=30, rate=1.0)
    assert [level(image) for image in images] == [0, 0, 20, 200, 220]
    images = frames_at(folder, [0.1, 0.2], side=30, rate=10.0)
    assert [level(image) for image in images] == [20, 40]


def test_frames_at_of_what_cannot_be_read_is_a_video_error(tmp_path):
    (tmp_path / "text.mp4").write_text("text")
    folder = folder_of(tmp_path / "f", [1, 2])
    (folder / "frame1.png").write_text("text")
    for path in (tmp_path / "none.mp4", tmp_path / "text.mp4", folder, tmp_path):
        with pytest.raises(VideoError):
            frames_at(Path(path), [0.0, 1.0], side=8)


def test_an_index_that_leads_before_the_begin_of_a_file_is_done_without():
    """Such as that of a damaged wmv, where Python refuses the place and not ffmpeg."""

    class Led:
        format = SimpleNamespace(name="asf")

        def seek(self, _: int) -> None:
            raise OSError(22, "Invalid argument")

    _seek_to(Led(), Clock(stream()), TimeBudget(size=100), 0.0, 1.0, 0.0)


MILLI = Fraction(1, 1000)


def stream(start=0, rate=10):
    return SimpleNamespace(average_rate=rate, guessed_rate=None, start_time=start, time_base=MILLI)


def packet(dts, pts=None):
    return SimpleNamespace(dts=dts, pts=dts if pts is None else pts, time_base=MILLI)


def told(clock, stamps):
    """Times told for packets of these milliseconds that are decoded as they come."""
    times = []
    for stamp in stamps:
        one = packet(stamp)
        clock.correct(one)
        times.append(round(clock.time_of(one.pts / 1000), 3))
    return times


def test_a_start_that_the_file_does_not_tell_is_its_first_frame():
    assert told(Clock(stream(start=None)), [5000, 5100]) == [0.0, 0.1]


def test_frames_without_times_come_at_the_rate_of_the_stream():
    assert [Clock(stream(rate=rate)).time_of(None) for rate in (10, None, 0, 10**6)] == [0.0] * 4
    clock = Clock(stream(rate=10))
    assert [round(clock.time_of(None), 3) for _ in range(3)] == [0.0, 0.1, 0.2]
    clock = Clock(stream(rate=None))
    assert [round(clock.time_of(None), 3) for _ in range(3)] == [0.0, 0.04, 0.08]
    assert clock.time_of(float("nan")) > 0.08


def test_a_clock_that_leaps_for_days_was_set_as_well():
    wrap = round(2**33 / 90)  # milliseconds after which the clock of MPEG begins anew
    clock = Clock(stream())
    assert told(clock, [0, 100, wrap, wrap + 100]) == [0, 0.1, 0.2, 0.3]
    assert clock.was_set


def test_gaps_and_tremors_stay():
    clock = Clock(stream())
    assert told(clock, [0, 3_600_000, 3_599_900, 3_600_200]) == [0, 3600.0, 3600.0, 3600.2]
    assert not clock.was_set


@given(st.lists(st.one_of(st.none(), st.integers(-(2**40), 2**40)), max_size=30))
def test_times_never_fall_and_never_are_negative(stamps):
    clock, times = Clock(stream(start=None)), []
    for stamp in stamps:
        one = packet(stamp, 0 if stamp is None else stamp)
        clock.correct(one)
        times.append(clock.time_of(None if stamp is None else one.pts / 1000))
    assert times == sorted(times) and all(time >= 0 for time in times)


@pytest.mark.parametrize(("suffix", "codec"), [("gif", "gif"), ("mp4", "libx264")])
def test_frames_of_what_cannot_be_sought_are_read_in_one_pass(tmp_path, monkeypatch, suffix, codec):
    # Each of these frames was read from the start: twice as long a GIF took four times as long.
    levels, pixels = range(10, 250, 2), "gray" if suffix == "gif" else "yuv420p"
    stamps = [6000 * number for number in range(120)]
    options = {"times": stamps, "codec": codec, "pixels": pixels, "every": 9999}
    if suffix == "gif":
        options |= {"times": None, "rate": 1}
        levels = [grey for grey in levels for _ in range(6)]
    clip = film(tmp_path / f"a.{suffix}", greys(levels, (16, 16)), **options)
    decoded, real = [], media_video.FileFrame

    def counted(*given):
        decoded.append(given)
        return real(*given)

    monkeypatch.setattr(media_video, "FileFrame", counted)
    images = frames_at(clip, [6.0 * number for number in range(0, 120, 2)], side=8)
    assert [level(i) for i in images] == pytest.approx(range(10, 250, 4), abs=5)
    assert len(decoded) < 2 * len(levels)


STILLS = """
import gc, sys, threading, time
from pathlib import Path
from sureshot.media.video import frames_at
def threads():
    return int(Path("/proc/self/status").read_text().split("Threads:")[1].split()[0])
gc.disable()
film, most = Path(sys.argv[1]), [0]
before = threads()
frames_at(film, [0.1], side=90)
left = threads() - before
def ask():
    frames_at(film, [0.1], side=90)
asking = [threading.Thread(target=ask) for _ in range(24)]
for thread in asking:
    thread.start()
while any(thread.is_alive() for thread in asking):
    most.append(threads() - sum(thread.is_alive() for thread in asking))
    time.sleep(0.002)
until = time.monotonic() + 20
while threads() > before and time.monotonic() < until:
    time.sleep(0.01)
print(left, threads() - before, max(most) - before)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="asks Linux for its threads")
def test_stills_of_a_large_film_are_decoded_a_few_at_once_and_leave_no_decoder(tmp_path):
    # 120 stills of a film in 4K took 6 GB and 345 threads, which waited for the garbage collector.
    clip = film(tmp_path / "a.mp4", patterns(3, (3840, 2160)))
    ran = subprocess.run(
        [sys.executable, "-c", STILLS, clip], capture_output=True, text=True, timeout=300
    )
    assert ran.returncode == 0, ran.stderr
    after_one, after_all, most = map(int, ran.stdout.split())
    assert (after_one, after_all) == (0, 0)
    assert most <= 4 * 6


def test_stills_share_memory_by_what_their_decoders_hold():
    # Four at once, whatever their size, took 4 GB for a film of 7680 x 4320.
    order = []

    def second():
        with media_video._Room(1) as room:
            room.take(400_000_000)
            order.append("second")

    with media_video._Room(1) as room:
        room.take(400_000_000)
        waiting = threading.Thread(target=second, daemon=True)
        waiting.start()
        while not room._changed._waiters:
            assert waiting.is_alive()
        for _ in range(10):
            with media_video._Room(2) as small:
                small.take(100_000_000)
        order.append("first")
    waiting.join()
    assert order == ["first", "second"]


def test_a_still_that_hangs_keeps_others_waiting_for_a_while_only(monkeypatch):
    monkeypatch.setattr(media_video, "_PATIENCE", 0.01)
    with media_video._Room(1) as hanging, media_video._Room(1) as other:
        hanging.take(10**12)
        other.take(10**12)
