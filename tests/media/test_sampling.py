"""Frames sampled from real files, folders and photos."""

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import VideoError
from sureshot.media.sampling import sample_frames
from sureshot.models.encoders.tiny import COLOURS
from tests.clips import coloured


def shown(frame: np.ndarray) -> str:
    """The colour that most of a frame has."""
    middle = np.median(frame.reshape(-1, 3), axis=0)
    return min(COLOURS, key=lambda name: np.abs(middle - COLOURS[name]).sum())


@pytest.fixture(scope="module")
def video(tmp_path_factory):
    """Two seconds of each of three colours."""
    folder = tmp_path_factory.mktemp("videos")
    return coloured(folder / "three.mp4", ["red", "green", "blue"], rate=5)


def test_frames_are_spread_over_the_whole_video(video):
    frames = sample_frames(video, 6, 24)
    assert frames.shape == (6, 24, 32, 3)
    assert [shown(frame) for frame in frames] == ["red"] * 2 + ["green"] * 2 + ["blue"] * 2


def test_a_stretch_is_sampled_alone(video):
    frames = sample_frames(video, 4, 24, start=2.0, end=3.9)
    assert [shown(frame) for frame in frames] == ["green"] * 4
    assert {shown(frame) for frame in sample_frames(video, 4, 24, start=2.0)} == {"green", "blue"}


def test_a_short_video_gives_all_it_has(video):
    assert len(sample_frames(video, 12, 24, start=0.0, end=0.5)) == 3


def test_a_folder_of_frames_and_a_photo(tmp_path):
    for number, colour in enumerate(("red", "white")):
        Image.new("RGB", (32, 24), COLOURS[colour]).save(tmp_path / f"{number}.png")
    frames = sample_frames(tmp_path, 12, 24)
    assert [shown(frame) for frame in frames] == ["red", "white"]
    (photo,) = sample_frames(tmp_path / "1.png", 12, 24)
    assert shown(photo) == "white"


def test_what_has_no_frame_is_refused(video, tmp_path):
    with pytest.raises(VideoError, match="holds no frame that can be decoded from 9 to 10 s"):
        sample_frames(video, 4, 24, start=9.0, end=10.0)
    (tmp_path / "broken.mp4").write_bytes(b"nothing")
    with pytest.raises(VideoError, match="is not a video"):
        sample_frames(tmp_path / "broken.mp4", 4, 24)
    with pytest.raises(VideoError, match="has vanished"):
        sample_frames(tmp_path / "gone.mp4", 4, 24)
