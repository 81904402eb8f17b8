"""How browsers can play what files hold."""

import av
import pytest

from sureshot.errors import VideoError
from sureshot.media.excerpt import playable, remux
from tests.clips import film, patterns, remuxed, sound
from tests.web.kinds import KINDS, written

WAYS = {"h264": "direct", "vp9": "direct", "av1": "direct", "mkv": "remux"}


@pytest.mark.parametrize("kind", KINDS)
def test_the_way_goes_by_what_the_file_holds(kind, tmp_path) -> None:
    assert playable(written(kind, tmp_path)).way == WAYS.get(kind, "clip")


def test_a_name_says_nothing(tmp_path) -> None:
    hevc = film(tmp_path / "a.mp4", patterns(4), codec="libx265")
    assert playable(hevc.rename(tmp_path / "a.webm")).way == "clip"
    h264 = film(tmp_path / "b.mp4", patterns(4))
    assert playable(h264.rename(tmp_path / "b.avi")).way == "direct"


def test_colours_that_browsers_do_not_show_are_encoded_anew(tmp_path) -> None:
    assert playable(film(tmp_path / "a.mp4", patterns(4), pixels="yuv444p")).way == "clip"
    assert playable(film(tmp_path / "b.mp4", patterns(4), pixels="yuv420p10le")).way == "clip"


def test_what_cannot_be_read_says_why(tmp_path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(VideoError, match="is not a video"):
        playable(tmp_path / "a.mp4")
    with pytest.raises(VideoError, match="no such file"):
        playable(tmp_path / "b.mp4")
    with pytest.raises(VideoError, match="has no video stream"):
        playable(sound(tmp_path / "c.m4a"))


@pytest.mark.parametrize("suffix", ["mkv", "ts", "flv"])
def test_streams_are_laid_anew_as_they_are_from_zero(suffix, tmp_path) -> None:
    made = film(tmp_path / "a.mp4", patterns(30), rate=10)
    source = remuxed(made, tmp_path / f"a.{suffix}")
    remux(source, tmp_path / "b.mp4")
    with av.open(tmp_path / "b.mp4") as container:
        assert playable(tmp_path / "b.mp4").way == "direct"
        times = [frame.time for frame in container.decode(video=0)]
    assert len(times) == 30 and times[0] <= 0.2 and abs(times[-1] - times[0] - 2.9) < 0.01
