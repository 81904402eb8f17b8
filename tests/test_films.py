"""Films joined for the benchmarks: what is said of them must be what they show."""

import numpy as np
import pytest
from benchmarks.films import RATE, join, join_several

from sureshot.media.discover import Source
from sureshot.media.video import open_video

from .clips import coloured


def shown(film, time):
    """Mean colour of a film at a time."""
    with open_video(Source(film, "file", 1, 1), decode="all") as video:
        frames = {round(frame.time * RATE): frame.thumbnail(8, 6) for frame in video}
    return frames[round(time * RATE)].mean((0, 1))


@pytest.mark.parametrize("fade", [0.0, 1.0])
def test_each_video_is_on_screen_between_its_edges(tmp_path, fade):
    red = coloured(tmp_path / "red.mp4", ["red"], seconds=5)
    blue = coloured(tmp_path / "blue.mp4", ["blue"], seconds=2)
    one, two = join([red, blue], tmp_path / "film.mp4", fade=fade)
    assert (one.path, two.path, one.start, one.end) == (red, blue, 0.0, two.start)
    assert one.end == pytest.approx(5 - fade / 2, abs=1 / RATE)
    assert two.end == pytest.approx(9 - fade, abs=1 / RATE)  # two seconds are made to be four
    early, late = shown(tmp_path / "film.mp4", 2.0), shown(tmp_path / "film.mp4", two.end - 1)
    assert early[0] > 150 > early[2]
    assert late[2] > 150 > late[0]
    between = shown(tmp_path / "film.mp4", two.start)
    if fade:
        np.testing.assert_allclose(between, (early + late) / 2, atol=25)
    else:
        np.testing.assert_allclose(between, late, atol=25)


def test_several_films_share_the_videos_out(tmp_path):
    videos = [
        coloured(tmp_path / f"{n}.mp4", ["green"], seconds=1, size=(32, 24)) for n in range(6)
    ]
    films = join_several(videos, tmp_path / "films", count=3, fade=0.0, seed=1)
    assert [len(intervals) for intervals in films.values()] == [1, 2, 3]
    assert sorted(there.path for film in films.values() for there in film) == videos
