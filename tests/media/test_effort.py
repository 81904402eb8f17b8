"""A file costs at most its limits, and what they cut off is told."""

from types import SimpleNamespace

import numpy as np
import pytest

from sureshot.errors import VideoError
from sureshot.media.container import MOST_PIXELS, TimeBudget, limit_decoder, timed
from sureshot.media.discover import Source
from sureshot.media.excerpt import footage
from sureshot.media.video import frames_at, open_video
from sureshot.media.workers import stream
from tests.clips import film, greys


class Ticking:
    """A clock that moves on when it is told to, or at each look."""

    def __init__(self, step=0.0):
        self.now = 0.0
        self.step = step

    def __call__(self):
        self.now += self.step
        return self.now


def track(width, height):
    return SimpleNamespace(codec_context=SimpleNamespace(width=width, height=height))


def test_every_file_has_two_minutes_and_a_second_for_each_10_kb():
    assert TimeBudget(0).limit == 120
    assert TimeBudget(2_000_000).limit == 320
    assert TimeBudget(0, 5.0).limit == 5


def test_only_time_inside_counts():
    clock = Ticking()
    effort = TimeBudget(0, 10.0, clock)

    def items():
        for number in range(4):
            clock.now += 2
            yield number

    for _ in timed(items(), effort):
        clock.now += 100
    effort.step()
    clock.now += 100
    effort.begin()
    clock.now += 3
    with pytest.raises(VideoError, match=r"took more than 10 s, the most for a file of 0\.0 kB"):
        effort.step()


def test_silence_ends_a_call_that_reads_and_a_packet_breaks_it():
    clock = Ticking()
    effort = TimeBudget(10**9, None, clock)
    effort.begin()
    for _ in range(5):
        clock.now += 59
        effort.wait()
        effort.step()
    clock.now += 30
    effort.wait()
    clock.now += 31
    with pytest.raises(VideoError, match="gave nothing for 60 s") as caught:
        effort.wait()
    assert caught.value.transient
    effort.end()
    clock.now += 1000
    effort.wait()


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
    video = open_video(Source(clip, "file", 0, 0))
    with video:
        whole = [frame.time for frame in video]
    assert not video.note
    clock = Ticking()
    effort = TimeBudget(clip.stat().st_size, 9.0, clock)
    frames = []
    with open_video(Source(clip, "file", 0, 0), effort=effort) as video:
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
        open_video(Source(clip, "file", 0, 0), effort=TimeBudget(9, 0.0)) as video,
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
