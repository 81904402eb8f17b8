"""Nothing but plain containers is opened, and nothing besides the named file."""

import contextlib
import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import av
import numpy as np
import pytest

from sureshot.errors import VideoError
from sureshot.media.container import (
    MOST_PIXELS,
    PLAIN,
    TimeBudget,
    limit_decoder,
    open_container,
    within_budget,
)
from sureshot.media.discover import Source
from sureshot.media.excerpt import footage
from sureshot.media.sampling import sample_frames
from sureshot.media.video import frames_at, open_video
from sureshot.media.workers import stream
from tests.clips import film, greys, sound
from tests.openers import openers, referring

NAMES = tuple(openers(Path("/a.mp4")))
# Demuxers of ffmpeg 8 that open other files, addresses or devices, by its sources.
FOLLOW = {
    "concat", "dash", "hls", "imf", "image2", "image2pipe", "mlv", "rtp", "rtsp", "sap", "sdp",
    "vobsub", "webm_dash_manifest", "dvdvideo", "avisynth", "vapoursynth", "libgme", "libopenmpt",
    "lavfi", "alsa", "fbdev", "kmsgrab", "oss", "video4linux2", "v4l2", "x11grab", "applehttp",
    "avfoundation", "dshow", "gdigrab", "sbg", "tedcaptions", "msnwctcp", "svg_pipe",
}  # fmt: skip


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    return film(tmp_path_factory.mktemp("other") / "secret.mp4", greys([10, 240]))


def opened(path):
    with open_container(path) as container:
        return container.format.name


def test_every_way_to_read_refuses_what_names_other_files(tmp_path, target):
    for name, content in openers(target).items():
        path = tmp_path / f"{name}.mp4"
        path.write_bytes(content)
        ways = (
            lambda path=path: opened(path),
            lambda path=path: frames_at(path, [0.0], side=32),
            lambda path=path: sample_frames(path, 4, 32),
            lambda path=path: list(footage(path, 0.0, 1.0, 1.0)[0]),
        )
        for way in ways:
            with pytest.raises(VideoError, match=r"is a playlist \(.*index the videos themselves"):
                way()


@pytest.mark.parametrize("suffix", ["m3u8", "ffconcat", "mpd", "sdp", "txt", "ts", "mkv", "gif"])
def test_neither_suffix_helps(tmp_path, target, suffix):
    for name, content in openers(target).items():
        path = tmp_path / f"{name}.{suffix}"
        path.write_bytes(content)
        with pytest.raises(VideoError, match="is a playlist"):
            opened(path)


def test_a_format_that_follows_is_not_among_the_plain_ones():
    assert not PLAIN & FOLLOW
    known = set()
    for name in av.formats_available:
        with contextlib.suppress(ValueError):
            known.update(av.ContainerFormat(name, "r").name.split(","))
    assert known >= PLAIN


def test_a_film_named_like_a_pattern_or_a_protocol_is_one_file(tmp_path, target):
    folder = tmp_path / "concat:a"
    folder.mkdir()
    for name in ("a%03d.mp4", "b*.mp4", "c|d.mp4", "file:e.mp4", "-.mp4", "g.m3u8"):
        path = folder / name
        path.write_bytes(target.read_bytes())
        assert len(frames_at(path, [0.0], side=32)) == 1


def test_pictures_that_lie_elsewhere_are_not_fetched(tmp_path, target):
    # A copy, since an encoder need not write the same bytes twice and offsets are in the reference.
    other = Path(shutil.copy(target, tmp_path / "other.mp4"))
    path = referring(target, other, tmp_path / "refers.mov")
    with av.open(str(path), options={"enable_drefs": "1", "use_absolute_path": "1"}) as container:
        assert len(list(container.decode(video=0))) == 2  # whoever allows it does follow
    other.unlink()
    os.mkfifo(other)  # whoever opened it would wait here until the test is ended
    with contextlib.suppress(VideoError):
        frames_at(path, [0.0], side=32)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks Linux what is open")
def test_no_other_file_is_opened(tmp_path, target):
    """Whoever opens a pipe for reading waits for a writer; none comes, so a follower would hang."""
    pipe = tmp_path / "other.mp4"
    os.mkfifo(pipe)
    for name, content in openers(pipe).items():
        (tmp_path / f"{name}.mp4").write_bytes(content)
    referring(target, pipe, tmp_path / "refers.mp4")
    code = (
        "import sys; from pathlib import Path; from sureshot.media.video import frames_at\n"
        "from sureshot.errors import VideoError\n"
        "for path in sorted(Path(sys.argv[1]).glob('*.mp4')):\n"
        "    if path.is_file():\n"
        "        try: frames_at(path, [0.0], side=32)\n"
        "        except VideoError: pass\n"
        "print('done')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, timeout=100
    )
    assert done.stdout == "done\n", done.stderr


def test_what_is_no_playlist_keeps_its_own_reason(tmp_path):
    path = tmp_path / "a.mp4"
    for content in (b"hello", b"<html></html>", b"version 1", os.urandom(3000)):
        path.write_bytes(content)
        with pytest.raises((VideoError, av.error.FFmpegError)) as caught:
            opened(path)
        assert "is a playlist" not in str(caught.value)


def test_sound_is_opened_so_that_its_reason_is_told(tmp_path):
    for suffix, codec in (("mp3", "libmp3lame"), ("flac", "flac"), ("wav", "pcm_s16le")):
        path = tmp_path / f"a.{suffix}"
        with av.open(path, "w") as container:
            stream = container.add_stream(codec, rate=44_100)
            frame = av.AudioFrame(format=stream.codec_context.format, layout="stereo", samples=1152)
            frame.sample_rate = 44_100
            for plane in frame.planes:  # else it is whatever the memory held
                plane.update(bytes(plane.buffer_size))
            container.mux([*stream.encode(frame), *stream.encode(None)])
        with pytest.raises(VideoError, match="has no video stream"):
            frames_at(path, [0.0], side=32)
    assert "mov" in opened(sound(tmp_path / "b.mp4", cover=True))


def test_a_file_that_keeps_ffmpeg_reading_is_ended(target):
    class Later:
        now = 0.0

        def __call__(self):
            self.now += 61.0
            return self.now

    with (
        pytest.raises(VideoError, match="gave nothing for 60 s"),
        open_container(target, TimeBudget(target.stat().st_size, clock=Later())),
    ):
        pass


class Ticking:
    """A clock that moves on when it is told to, or at each look."""

    def __init__(self, step=0.0):
        self.now = 0.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def track(width, height):
    return SimpleNamespace(codec_context=SimpleNamespace(width=width, height=height, format=None))


def test_only_time_inside_counts():
    clock = Ticking()
    budget = TimeBudget(0, 10.0, clock)

    def items():
        for number in range(4):
            clock.now += 2
            yield number

    for _ in within_budget(items(), budget):
        clock.now += 100
    budget.step()
    clock.now += 100
    with budget.call():
        clock.now += 3
        with pytest.raises(
            VideoError, match=r"took more than 10 s, the most for a file of 0\.0 kB"
        ):
            budget.step()


def test_silence_ends_a_call_that_reads_and_a_packet_breaks_it():
    clock = Ticking()
    budget = TimeBudget(10**9, None, clock)
    with budget.call():
        for _ in range(5):
            clock.now += 59
            budget.wait()
            budget.step()
        clock.now += 30
        budget.wait()
        clock.now += 31
        with pytest.raises(VideoError, match="gave nothing for 60 s") as caught:
            budget.wait()
    assert caught.value.transient
    clock.now += 1000
    budget.wait()


def test_frames_too_large_are_refused_by_what_the_stream_says():
    with pytest.raises(VideoError, match=r"frames of 60000 x 60000 pixels; the most is 67 million"):
        limit_decoder(track(60_000, 60_000))
    limit_decoder(track(8192, 8192))


def test_large_frames_have_few_threads_and_small_ones_room_to_grow():
    small, large = track(64, 48), track(8192, 8192)
    limit_decoder(small)
    limit_decoder(large)
    assert large.codec_context.thread_count <= 2
    assert small.codec_context.thread_count >= 1
    assert int(small.codec_context.options["max_pixels"]) == 1 << 23
    assert int(large.codec_context.options["max_pixels"]) == MOST_PIXELS


def test_what_a_limit_cuts_off_is_told_and_the_rest_is_true(tmp_path):
    clip = film(tmp_path / "a.mkv", greys(range(10, 250, 2)))
    with open_video(Source(clip, "file", 0, 0)) as video:
        whole = [frame.time for frame in video]
    assert not video.note
    clock = Ticking()
    budget = TimeBudget(clip.stat().st_size, 9.0, clock)
    frames = []
    with open_video(Source(clip, "file", 0, 0), budget=budget) as video:
        for frame in video:
            frames.append(frame.time)
            clock.step = 1.0 if len(frames) == 20 else clock.step
    assert frames == whole[: len(frames)] and 20 <= len(frames) < len(whole)
    size = f"{clip.stat().st_size / 1000:.1f} kB"
    told = f"is left out from {frames[-1]:.0f} s on, as it took more than 9 s, the most for a file"
    assert video.note == f"{told} of {size}"


def test_a_file_that_costs_too_much_before_its_first_frame_fails(tmp_path):
    clip = film(tmp_path / "a.mkv", greys([10, 240]))
    with (
        pytest.raises(VideoError, match=r"took more than 0 s, the most for a file of 0.0 kB"),
        open_video(Source(clip, "file", 0, 0), budget=TimeBudget(9, 0.0)) as video,
    ):
        list(video)


def test_a_stream_that_claims_huge_frames_is_refused_everywhere(tmp_path):
    clip = tmp_path / "a.y4m"
    clip.write_bytes(b"YUV4MPEG2 W9000 H9000 F25:1 Ip A1:1 C420\nFRAME\n" + bytes(1000))
    ways = (
        lambda: frames_at(clip, [0.0], side=32),
        lambda: list(footage(clip, 0.0, 1.0, 1.0)[0]),
    )
    for way in ways:
        with pytest.raises(VideoError, match="frames of 9000 x 9000 pixels"):
            way()


def test_a_stream_that_grows_beyond_measure_midway_loses_those_frames(tmp_path):
    small = film(tmp_path / "a.mjpeg", greys([60] * 8), codec="mjpeg", pixels="yuvj420p")
    large = film(tmp_path / "b.mjpeg", greys([200], (4096, 2560)), codec="mjpeg", pixels="yuvj420p")
    both = tmp_path / "c.mjpeg"
    both.write_bytes(small.read_bytes() + large.read_bytes() + small.read_bytes())
    with open_video(Source(both, "file", 0, 0)) as video:
        images = [frame.image(32) for frame in video]
    assert len(images) == 16 and all(abs(int(i.mean()) - 60) < 4 for i in images)
    assert "is damaged" in video.note


def test_a_beat_is_heard_while_frames_are_decoded(tmp_path):
    clip = film(tmp_path / "a.mkv", greys(range(10, 250, 10)))

    def work(path):
        with open_video(Source(path, "file", 0, 0)) as video:
            yield np.stack([frame.image(32) for frame in video]).shape[0]

    assert list(stream(work, [clip], waiting=1, stuck=lambda path: -1)) == [24]
