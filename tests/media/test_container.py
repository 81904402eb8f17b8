"""Nothing but plain containers is opened, and nothing besides the named file."""

import contextlib
import os
import subprocess
import sys
from pathlib import Path

import av
import pytest

from sureshot.errors import VideoError
from sureshot.media.container import PLAIN, TimeBudget, open_container
from sureshot.media.excerpt import footage
from sureshot.media.sampling import sample_frames
from sureshot.media.video import frames_at
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
    other = film(tmp_path / "other.mp4", greys([10, 240]))
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
