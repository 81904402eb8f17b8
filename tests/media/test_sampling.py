"""Frames sampled from real files, folders and photos."""

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import VideoError
from sureshot.media.sampling import sample_frames
from sureshot.media.sampling_rule import Sampling, sampled_numbers
from sureshot.models.encoders.toy import COLOURS
from tests.clips import coloured, film, greys


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


def test_a_folder_of_frames_and_a_photo(tmp_path):
    for number, colour in enumerate(("red", "white")):
        Image.new("RGB", (32, 24), COLOURS[colour]).save(tmp_path / f"{number}.png")
    frames = sample_frames(tmp_path, 12, 24)
    assert [shown(frame) for frame in frames] == ["red", "white"]
    (photo,) = sample_frames(tmp_path / "1.png", 12, 24)
    assert shown(photo) == "white"


@pytest.mark.parametrize("what", [{"end": 30.0}, {"sampling": Sampling(fps=1.0)}])
def test_seconds_of_a_folder_of_frames_are_not_known(tmp_path, what):
    for number in range(3):
        Image.new("RGB", (32, 32)).save(tmp_path / f"{number}.png")
    with pytest.raises(VideoError, match=r"is a folder of frames, .*make a video of it"):
        sample_frames(tmp_path, 2, 24, **what)


def test_what_has_no_frame_is_refused(video, tmp_path):
    with pytest.raises(VideoError, match="holds no frame that can be decoded from 9 to 10 s"):
        sample_frames(video, 4, 24, start=9.0, end=10.0)
    (tmp_path / "broken.mp4").write_bytes(b"nothing")
    with pytest.raises(VideoError, match="is not a video"):
        sample_frames(tmp_path / "broken.mp4", 4, 24)
    with pytest.raises(VideoError, match="has vanished"):
        sample_frames(tmp_path / "gone.mp4", 4, 24)


# --- rules of the papers' codes -------------------------------------------------------------------

NUMBERED = 35  # frames at 5 a second: 7 seconds


@pytest.fixture(scope="module")
def numbered(tmp_path_factory):
    """Frame n is n * 7 grey levels, at 5 frames a second."""
    grey = [np.full((24, 32, 3), 7 * number, np.uint8) for number in range(NUMBERED)]
    return film(tmp_path_factory.mktemp("videos") / "numbered.mp4", grey, rate=5)


def numbers(video, count, *rule, draw=None, **more):
    frames = sample_frames(video, count, 24, sampling=Sampling(*rule), draw=draw, **more)
    return [round(float(np.median(frame)) / 7) for frame in frames]


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        # Frames of CLIP4Clip: the first of each second, then evenly, both ends among them.
        (("spread", 1.0), [0, 10, 20, 30]),
        (("head", 1.0), [0, 5, 10, 15]),
        (("head", None), [0, 1, 2, 3]),
        # Frames of X-Pool: edges 0, 8, 17, 26, 35; the middle of each run.
        (("segments", None), [3, 12, 21, 30]),
        (("spread", None), [0, 11, 22, 34]),
    ],
)
def test_frames_are_those_of_the_rule(numbered, rule, expected):
    assert numbers(numbered, 4, *rule) == expected


def test_a_rate_alone_gives_one_frame_a_second_where_there_are_few(numbered):
    assert numbers(numbered, 12, "spread", 1.0) == [0, 5, 10, 15, 20, 25, 30]
    assert numbers(numbered, 12, "spread", 1.0, start=2.0, end=4.9) == [10, 15, 20]
    assert numbers(numbered, 12, "spread", 0.01) == [0]
    assert numbers(numbered, 12, "phase", 0.01) == [0]  # though it begins after the end
    # Two fifths of a second after 0.2 s is not 0.6 s to the last bit.
    assert numbers(numbered, 20, "spread", 2.5, start=0.2) == list(range(1, NUMBERED, 2))


@pytest.mark.parametrize("rule", [Sampling(), Sampling("spread"), Sampling("head", 5.0)])
def test_a_video_that_changes_its_size_midway_gives_as_many_frames(tmp_path, rule):
    both = tmp_path / "both.ts"
    parts = [film(tmp_path / f"{w}.ts", greys([w] * 15, (w, 48)), rate=5) for w in (64, 160)]
    both.write_bytes(b"".join(part.read_bytes() for part in parts))
    frames = sample_frames(both, 30, 24, sampling=rule)
    assert [round(frame.mean() / 32) for frame in frames] == [2] * 15 + [5] * 15


def test_what_is_drawn_is_drawn_anew_and_alike_from_alike_numbers(numbered):
    def drawn(kind, fps, seed):
        return numbers(numbered, 4, kind, fps, draw=np.random.default_rng(seed))

    for kind, fps in (("random", None), ("phase", 1.0)):
        found = {tuple(drawn(kind, fps, seed)) for seed in range(6)}
        assert len(found) > 1
        assert drawn(kind, fps, 3) == drawn(kind, fps, 3)
        for one in found:
            assert list(one) == sorted(set(one)) and len(one) == 4
    for seed in range(4):
        found = drawn("random", None, seed)
        assert all(
            first <= n < last for n, first, last in zip(found, EDGES, EDGES[1:], strict=False)
        )


EDGES = [0, 8, 17, 26, 35]


KINDS = ["uniform", "spread", "segments", "random", "head", "phase"]


@pytest.mark.parametrize("kind", KINDS)
def test_short_videos_give_all_they_have(kind):
    assert sampled_numbers(3, 12, kind, np.random.default_rng(0)).tolist() == [0, 1, 2]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("total", [13, 100, 1801])
def test_frames_rise_and_lie_within(kind, total):
    found = sampled_numbers(total, 12, kind, np.random.default_rng(0))
    assert len(found) == 12 and (np.diff(found) > 0).all()
    assert found[0] >= 0 and found[-1] < total
