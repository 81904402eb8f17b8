"""Reading a range: right frames and sound from any container, folder or damaged file."""

from fractions import Fraction
from itertools import pairwise

import av
import numpy as np
import pytest
from av.audio.frame import AudioFrame
from av.video.frame import VideoFrame
from PIL import Image

from sureshot.errors import VideoError
from sureshot.media import excerpt as footage
from sureshot.media.container import _Reader, open_container
from sureshot.media.discover import Source
from sureshot.media.excerpt import copy_streams, cut, keyframe_before, playable, remux
from sureshot.media.video import frames_at, is_seekable, open_video
from sureshot.models.encoders.toy import COLOURS
from tests.clips import coloured, film, patterns, remuxed, sound
from tests.grey import grey_clip, listen, watch
from tests.web.kinds import KINDS, written

CONTAINERS = {
    "clip.mp4": {"sound": "aac"},
    "clip.mkv": {"sound": "libopus"},
    "clip.mov": {"sound": "aac"},
    "clip.avi": {"codec": "mjpeg", "pixels": "yuvj420p", "sound": "pcm_s16le"},
    "clip.webm": {"codec": "libvpx", "sound": "libopus", "deadline": "realtime", "b": "1M"},
    "clip.ts": {"sound": "aac"},
    "clip.flv": {"codec": "flv", "sound": "libmp3lame", "b": "1M"},
    "clip.gif": {"codec": "gif", "pixels": "gray"},
    "clip.apng": {"codec": "apng", "pixels": "rgb24"},
}


@pytest.mark.parametrize("name", CONTAINERS)
def test_any_container_is_cut_exactly(tmp_path, name):
    source = grey_clip(tmp_path / name, **CONTAINERS[name])
    target = cut(source, 2.0, 3.0, tmp_path / "cut.mp4")
    frames = watch(target)
    assert [frame[0] for frame in frames] == pytest.approx(np.arange(10) / 10, abs=1e-3)
    assert [frame[2] for frame in frames] == pytest.approx(np.arange(20, 30) / 10, abs=0.04)
    with av.open(str(target)) as container:
        video, sounds = container.streams.video[0], container.streams.audio
        assert (video.codec_context.name, video.pix_fmt) == ("h264", "yuv420p")
        assert video.start_time == 0
        assert float(video.duration * video.time_base) == pytest.approx(1.0, abs=1e-3)
        assert len(sounds) == ("sound" in CONTAINERS[name])
        for audio in sounds:
            assert audio.codec_context.name == "aac"
            assert abs(float(audio.duration * audio.time_base) - 1.0) < 0.03
            wave = np.concatenate([f.to_ndarray()[0] for f in container.decode(audio)])[4800:43200]
            assert np.count_nonzero(np.diff(np.signbit(wave))) == pytest.approx(704, abs=4)


def test_a_program_stream_is_cut_as_exactly_as_its_clock_allows(tmp_path):
    # Small frames share a packet and a time stamp there, so times are guessed by a frame or so.
    source = grey_clip(tmp_path / "clip.mpg", "mpeg2video", sound="mp2", rate=25, b="1M")
    frames = watch(cut(source, 2.0, 3.0, tmp_path / "cut.mp4"))
    assert frames[0][0] == 0 and sum(frames[-1][:2]) == pytest.approx(1.0, abs=1e-3)
    assert frames[0][2] == pytest.approx(2.0, abs=0.06)
    assert frames[-1][2] == pytest.approx(2.96, abs=0.06)


@pytest.mark.parametrize("name", ["clip.mp4", "clip.mkv", "clip.ts"])
def test_reading_starts_at_a_key_frame_near_the_range(tmp_path, name):
    source = grey_clip(tmp_path / name)
    first = next(footage._frames(source, VideoFrame, 3.5))[0]
    assert first == pytest.approx(3.0) or (name == "clip.ts" and 1.0 <= first <= 3.0)


def test_a_key_frame_that_is_too_late_sends_the_reader_further_back(tmp_path, monkeypatch):
    source = grey_clip(tmp_path / "clip.mp4")
    monkeypatch.setattr(footage, "_BACK", (-0.6, 1.0, float("inf")))  # -0.6 seeks past the range
    assert next(footage._frames(source, VideoFrame, 2.5))[0] == pytest.approx(1.0)
    monkeypatch.setattr(footage, "_BACK", (-0.6, float("inf")))
    assert next(footage._frames(source, VideoFrame, 2.5))[0] == 0.0


def test_times_count_from_the_first_frame(tmp_path):
    times = range(61_000, 63_000, 100)  # a recording cut out of a longer one
    source = grey_clip(tmp_path / "clip.mkv", times=times, sound="pcm_s16le", heard=(62.0, 63.0))
    target = cut(source, 0.5, 1.5, tmp_path / "cut.mp4")
    assert [frame[2] for frame in watch(target)] == pytest.approx(np.arange(5, 15) / 10, abs=0.04)
    loud = listen(target)
    assert (loud[:5] < 0.02).all() and (loud[5:9] > 0.3).all()


def test_a_variable_frame_rate_stays_variable(tmp_path):
    times = [0, 100, 1100, 1133, 2900, 3000]
    source = grey_clip(tmp_path / "clip.mkv", times=times)
    frames = watch(cut(source, 0.6, 3.0, tmp_path / "cut.mp4"))
    assert [frame[0] for frame in frames] == pytest.approx([0, 0.5, 0.533, 2.3], abs=2e-3)
    assert [frame[2] for frame in frames] == pytest.approx([0.1, 1.1, 1.133, 2.9], abs=0.04)
    assert sum(frames[-1][:2]) == pytest.approx(2.4, abs=2e-3)


def test_gaps_in_the_sound_are_silent_and_it_stays_in_step(tmp_path):
    source = grey_clip(tmp_path / "clip.mkv", sound="pcm_s16le", heard=(1.0, 2.0))
    loud = listen(cut(source, 0.5, 2.5, tmp_path / "cut.mp4"))
    assert (loud[:5] < 0.02).all() and (loud[5:15] > 0.3).all()


def test_a_range_without_sound_makes_a_silent_film(tmp_path):
    source = grey_clip(tmp_path / "clip.mkv", sound="pcm_s16le", heard=(1.0, 2.0))
    with av.open(str(cut(source, 2.5, 3.5, tmp_path / "cut.mp4"))) as container:
        assert not container.streams.audio and container.streams.video[0].frames == 10


@pytest.mark.parametrize("name", ["clip.mkv", "clip.mp4"])
def test_the_last_picture_stays_while_the_sound_goes_on(name, tmp_path):
    heard = {"sound": "pcm_s16le" if name == "clip.mkv" else "aac", "heard": (0.0, 9.0)}
    source = grey_clip(tmp_path / name, **heard)
    for start, length in ((3.5, 5.5), (6.0, 3.0)):
        made = cut(source, start, 60.0, tmp_path / f"{start}.mp4")
        with av.open(str(made)) as container:
            assert container.duration / 1e6 == pytest.approx(length, abs=0.11)
        shown = watch(made)
        assert shown[-1][2] == pytest.approx(3.9, abs=0.04)
        assert (listen(made)[:-1] > 0.3).all()


def test_sound_that_ends_a_little_later_is_left_out(tmp_path):
    source = grey_clip(tmp_path / "clip.mkv", sound="pcm_s16le", heard=(0.0, 4.9))
    with av.open(str(cut(source, 3.5, 60.0, tmp_path / "cut.mp4"))) as container:
        assert container.duration / 1e6 == pytest.approx(0.5, abs=0.11)


@pytest.mark.parametrize(
    ("layout", "rate", "channels", "expected"),
    [
        ("mono", 8_000, 1, 8_000),
        ("stereo", 44_100, 2, 44_100),
        ("5.1", 48_000, 2, 48_000),
        ("mono", 192_000, 1, 48_000),
    ],
)
def test_sound_becomes_mono_or_stereo_at_a_rate_every_player_has(
    tmp_path, layout, rate, channels, expected
):
    source, wave = tmp_path / "clip.mkv", np.ones((6, rate // 10), np.float32)
    wave[:, :3] = np.nan, np.inf, -1e30  # what a damaged file may hold
    with av.open(str(source), "w") as container:
        video, audio = container.add_stream("ffv1", 10), container.add_stream("pcm_f32le", rate)
        video.width, video.height, video.pix_fmt, audio.layout = 16, 16, "yuv420p", layout
        flat = wave[: audio.channels].T.reshape(1, -1)
        for number in range(10):
            frame = av.VideoFrame.from_ndarray(np.zeros((16, 16, 3), np.uint8), "rgb24")
            frame.pts, frame.time_base = number, Fraction(1, 10)
            container.mux(video.encode(frame))
            tone = av.AudioFrame.from_ndarray(flat, "flt", layout)
            tone.sample_rate, tone.pts = rate, number * rate // 10
            tone.time_base = Fraction(1, rate)
            container.mux(audio.encode(tone))
        container.mux(video.encode())
    with av.open(str(cut(source, 0.2, 0.8, tmp_path / "cut.mp4"))) as container:
        audio = container.streams.audio[0]
        assert (audio.channels, audio.rate) == (channels, expected)
        assert abs(float(audio.duration * audio.time_base) - 0.6) < 1500 / expected


def test_a_truncated_file_gives_what_it_has(tmp_path):
    whole = grey_clip(tmp_path / "clip.mkv", "mjpeg", "yuvj420p", sound="pcm_s16le")
    source = tmp_path / "part.mkv"
    source.write_bytes(whole.read_bytes()[: whole.stat().st_size * 5 // 8])
    frames = watch(cut(source, 1.0, 3.5, tmp_path / "cut.mp4"))
    assert [frame[2] for frame in frames[:10]] == pytest.approx(np.arange(10, 20) / 10, abs=0.04)
    assert 13 <= len(frames) <= 16
    with pytest.raises(VideoError, match=r"part\.mkv ends at 2\.\d+ s"):
        cut(source, 3.0, 3.5, tmp_path / "late.mp4")


def test_damage_in_the_middle_is_passed_over(tmp_path):
    source = grey_clip(tmp_path / "clip.avi", "mjpeg", "yuvj420p")
    data = bytearray(source.read_bytes())
    middle = data.index(b"00dc", len(data) // 2) + 8
    data[middle : middle + 60] = bytes(60)
    source.write_bytes(data)
    frames = watch(cut(source, 1.0, 3.0, tmp_path / "cut.mp4"))
    assert 18 <= len(frames) <= 20
    assert frames[-1][2] == pytest.approx(2.9, abs=0.04)


def test_a_clock_that_jumps_back_does_not_break_the_film(tmp_path, monkeypatch):
    source = grey_clip(tmp_path / "clip.mp4")
    decoded = list(footage._frames(source, VideoFrame, 0.0))
    shuffled = decoded[:10] + decoded[4:8] + decoded[10:]
    monkeypatch.setattr(footage, "_frames", lambda *_: iter(shuffled))
    pictures = list(footage._video_pictures(source, 0.0, 2.0))
    assert len(pictures) == 20
    assert all(one.until == pytest.approx(other.time) for one, other in pairwise(pictures))


def frame_folder(folder, levels, suffix=".png", size=(64, 48)):
    folder.mkdir()
    for number, level in enumerate(levels, 1):
        Image.new("RGB", size, (level,) * 3).save(folder / f"frame{number}{suffix}")
    return folder


@pytest.mark.parametrize("suffix", [".png", ".JPG", ".webp", ".bmp"])
def test_a_folder_of_frames_is_cut_in_natural_order(tmp_path, suffix):
    source = frame_folder(tmp_path / "frames", range(0, 240, 20), suffix)
    (source / "._frame3.png").write_bytes(b"what macOS leaves behind")
    (source / "notes.txt").write_text("no image")
    frames = watch(cut(source, 8.0, 11.5, tmp_path / "cut.mp4"))
    assert [frame[0] for frame in frames] == pytest.approx([0, 1, 2, 3])
    assert [frame[2] * 60 for frame in frames] == pytest.approx([160, 180, 200, 220], abs=3)
    assert sum(frames[-1][:2]) == pytest.approx(3.5)


def test_a_folder_is_cut_at_its_frame_rate(tmp_path):
    source = frame_folder(tmp_path / "frames", range(0, 240, 20))
    frames = watch(cut(source, 0.5, 0.85, tmp_path / "cut.mp4", frame_rate=10.0))
    assert [frame[0] for frame in frames] == pytest.approx([0, 0.1, 0.2, 0.3], abs=1e-3)
    assert [frame[2] * 60 for frame in frames] == pytest.approx([100, 120, 140, 160], abs=3)
    with pytest.raises(VideoError, match=r"frames ends at 1\.2 s"):
        cut(source, 1.2, 2.0, tmp_path / "late.mp4", frame_rate=10.0)


def test_the_frame_before_a_damaged_image_stays_on_screen(tmp_path):
    source = frame_folder(tmp_path / "frames", [0, 60, 120, 180])
    (source / "frame3.png").write_bytes(b"not an image")
    frames = watch(cut(source, 0.0, 4.0, tmp_path / "cut.mp4"))
    assert [frame[0] for frame in frames] == [0, 1, 3]
    assert [frame[2] for frame in frames] == pytest.approx([0, 1, 3], abs=0.05)


def test_a_folder_without_images_is_refused(tmp_path):
    (tmp_path / "frames").mkdir()
    with pytest.raises(VideoError, match="frames is not a folder of numbered frames"):
        cut(tmp_path / "frames", 0.0, 1.0, tmp_path / "cut.mp4")


WAYS = {"h264": "direct", "vp9": "direct", "av1": "direct"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_goes_by_what_the_file_holds(kind, tmp_path) -> None:
    assert playable(written(kind, tmp_path)).way == WAYS.get(
        kind, "remux" if kind.endswith("-mkv") else "clip"
    )


def test_a_film_whose_clock_begins_late_is_laid_anew_from_zero(tmp_path) -> None:
    """Browsers count from 0 of the clock, and would be 20 s off."""
    times = range(20_000, 22_000, 100)
    late = film(tmp_path / "a.webm", patterns(20), times=times, codec="libvpx-vp9")
    assert playable(late).way == "remux"
    remux(late, tmp_path / "a.mp4")
    with av.open(tmp_path / "a.mp4") as made:
        seen = [frame.time for frame in made.decode(video=0)]
    assert len(seen) == 20 and seen[0] == pytest.approx(0, abs=0.2)
    soon = film(tmp_path / "b.webm", patterns(20), times=range(0, 2000, 100), codec="libvpx-vp9")
    assert playable(soon).way == "direct"


@pytest.mark.parametrize(("suffix", "codec"), [("ts", "libx264"), ("mpg", "mpeg2video")])
def test_of_two_recordings_in_one_file_each_is_shown_at_its_own_time(
    tmp_path, suffix, codec
) -> None:
    """The second one's clock begins at 0 again, so a time of it leads to two places."""
    colours = ["red", "green", "blue", "white"]
    parts = [
        coloured(tmp_path / f"{n}.{suffix}", colours[n : n + 2], seconds=20, rate=25, codec=codec)
        for n in (0, 2)
    ]
    both = tmp_path / f"both.{suffix}"
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    times = [10.0, 30.0, 50.0, 70.0]
    stills = [still.mean((0, 1)) for still in frames_at(both, times, side=16)]
    for time, colour, still in zip(times, colours, stills, strict=True):
        cut(both, time, time + 1, tmp_path / f"{colour}.mp4")
        with av.open(tmp_path / f"{colour}.mp4") as made:
            seen = [frame.to_ndarray(format="rgb24") for frame in made.decode(video=0)]
        for shown in (still, seen[0].mean((0, 1)), seen[-1].mean((0, 1))):
            np.testing.assert_allclose(shown, COLOURS[colour], atol=12)
        with pytest.raises(VideoError, match="cannot be cut without encoding it"):
            keyframe_before(both, time)
        with open_video(Source(both, "file")) as video:  # what comes before is not decoded
            assert video.seek(time) and 0 < next(video.frames).time <= time


def test_a_recording_is_looked_at_in_many_places_only_once(tmp_path, monkeypatch) -> None:
    """In object storage each place is a request."""
    path = coloured(tmp_path / "one.ts", ["red", "green"], seconds=20)
    reads = []
    read = _Reader.read
    monkeypatch.setattr(_Reader, "read", lambda self, n: reads.append(n) or read(self, n))
    for _ in range(2):
        with open_container(path) as container:
            reads.clear()
            assert is_seekable(container)
    assert not reads


def test_two_recordings_in_one_file_are_played_one_after_the_other(tmp_path) -> None:
    parts = [film(tmp_path / f"{n}.ts", patterns(20), rate=10).read_bytes() for n in range(2)]
    (tmp_path / "both.ts").write_bytes(b"".join(parts))
    assert playable(tmp_path / "both.ts").way == "remux"
    remux(tmp_path / "both.ts", tmp_path / "both.mp4")
    with av.open(tmp_path / "both.mp4") as made:
        seen = [frame.time for frame in made.decode(video=0)]
    assert len(seen) == 40 and seen == sorted(seen) and seen[-1] == pytest.approx(3.9, abs=0.3)


def test_colours_that_browsers_do_not_show_are_encoded_anew(tmp_path) -> None:
    assert playable(film(tmp_path / "a.mp4", patterns(4), pixels="yuv444p")).way == "clip"
    assert playable(film(tmp_path / "b.mp4", patterns(4), pixels="yuv420p10le")).way == "clip"


def sounding(path, delay=0.0, **options):
    """Eight seconds of pictures, a key frame each second, that begin so long after the sound."""
    heard = 0
    with av.open(str(path), "w", options=options) as file:
        pictures = file.add_stream("libx264", rate=25, options={"g": "25", "bf": "0"})
        pictures.width = pictures.height = 64
        heard_in = file.add_stream("aac", rate=48_000, layout="mono")
        for number in range(200):
            shown = VideoFrame.from_ndarray(np.full((64, 64, 3), number, np.uint8), "rgb24")
            shown.pts, shown.time_base = number + round(25 * delay), Fraction(1, 25)
            file.mux(pictures.encode(shown))
            while heard < (number + 1 + 25 * delay) * 1920:
                part = AudioFrame.from_ndarray(np.zeros((1, 1024), np.float32), "fltp", "mono")
                part.sample_rate, part.pts, part.time_base = 48_000, heard, Fraction(1, 48_000)
                file.mux(heard_in.encode(part))
                heard += 1024
        file.mux(pictures.encode(None)), file.mux(heard_in.encode(None))
    return path


def test_a_copy_has_all_of_its_sound_where_that_comes_later_in_the_file(tmp_path) -> None:
    path = sounding(tmp_path / "a.mp4", movflags="frag_keyframe+empty_moov")
    copy_streams(path, tmp_path / "b.mp4", keyframe_before(path, 2.0), 4.5)
    with av.open(str(tmp_path / "b.mp4")) as copy:
        ends: dict[str, float] = {}
        for packet in copy.demux():
            if packet.size:
                ends[packet.stream.type] = float(packet.pts * packet.time_base)
    assert ends["video"] == pytest.approx(ends["audio"], abs=0.1)


@pytest.mark.parametrize(("delay", "way"), [(0.0, "direct"), (1.5, "clip")])
def test_pictures_that_begin_after_the_sound_are_cut_from_the_first_one_on(
    tmp_path, delay, way
) -> None:
    assert playable(sounding(tmp_path / "a.mp4", delay)).way == way


def test_what_cannot_be_read_says_why(tmp_path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(VideoError, match="is not a video"):
        playable(tmp_path / "a.mp4")
    with pytest.raises(VideoError, match="no such file"):
        playable(tmp_path / "b.mp4")
    with pytest.raises(VideoError, match="has no video stream"):
        playable(sound(tmp_path / "c.m4a"))


def test_a_codec_that_has_no_encoder_here_is_copied_too(tmp_path) -> None:
    remux(written("av1-mkv", tmp_path), tmp_path / "b.mp4")
    assert playable(tmp_path / "b.mp4").way == "direct"


@pytest.mark.parametrize("suffix", ["mkv", "ts", "flv"])
def test_streams_are_laid_anew_as_they_are_from_zero(suffix, tmp_path) -> None:
    made = film(tmp_path / "a.mp4", patterns(30), rate=10)
    source = remuxed(made, tmp_path / f"a.{suffix}")
    remux(source, tmp_path / "b.mp4")
    with av.open(tmp_path / "b.mp4") as container:
        assert playable(tmp_path / "b.mp4").way == "direct"
        times = [frame.time for frame in container.decode(video=0)]
    assert len(times) == 30 and times[0] <= 0.2 and abs(times[-1] - times[0] - 2.9) < 0.01
