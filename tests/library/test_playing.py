"""What a player is given."""

from pathlib import Path

import av
import pytest

from sureshot.errors import QueryError, VideoError
from sureshot.library.clips import (
    LONGEST,
    Film,
    film_of,
    first_part,
    part_around,
    write_part,
)
from sureshot.media.excerpt import MP4, Playable
from sureshot.store.rows import VideoRecord
from tests.web.kinds import written


def record(path: Path, duration: float = 6.0, size: int = 1) -> VideoRecord:
    return VideoRecord(path=path, kind="file", size=size, mtime_ns=0, duration=duration)


@pytest.mark.parametrize("at", [0.0, 1.0, 50.0, 99.9, 100.0])
@pytest.mark.parametrize("start, end", [(0.0, 100.0), (40.0, 60.0), (0.0, 0.0), (99.0, 100.0)])
def test_a_part_holds_the_second_and_is_short(at, start, end) -> None:
    first, last = part_around(at, start, end, 100.0)
    assert 0 <= first <= at <= last <= 100.05
    assert 0 < last - first <= LONGEST + 0.01


def test_what_browsers_play_is_given_whole(tmp_path) -> None:
    film = film_of(record(written("h264", tmp_path)), at=3.0, start=2.0, end=4.0)
    assert (film.how.way, film.start, film.end) == ("direct", 0.0, 6.0)


def test_of_other_films_a_part_is_made_that_begins_where_it_says(tmp_path) -> None:
    found = record(written("mpeg4", tmp_path))
    film = film_of(found, at=5.0, start=4.5, end=5.5)
    assert (film.how.way, film.start, film.end) == ("clip", 2.5, 6.0)
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
    film = Film(Playable("clip", MP4), 8.0, 22.0)
    first = first_part(film, at)
    assert film.start <= first.start < first.end <= film.end
    assert first.start <= at and first.end - first.start <= 4.01
    assert first.end > min(at, 21.99)


def test_what_is_quickly_made_or_need_not_be_has_no_first_seconds() -> None:
    assert first_part(Film(Playable("clip", MP4), 8.0, 12.0), 9.0) is None
    assert first_part(Film(Playable("direct", MP4), 0.0, 60.0), 9.0) is None


def test_a_large_file_is_not_copied_to_be_played(tmp_path) -> None:
    path = written("mkv", tmp_path)
    assert film_of(record(path), at=1.0, start=0.0, end=2.0).how.way == "remux"
    large = record(path, size=10**9)
    assert film_of(large, at=1.0, start=0.0, end=2.0).how.way == "clip"


def test_a_film_laid_anew_is_whole(tmp_path) -> None:
    found = record(written("mkv", tmp_path))
    film = film_of(found, at=1.0, start=0.0, end=2.0)
    write_part(found, film, tmp_path / "whole.mp4", rate=1.0)
    with av.open(tmp_path / "whole.mp4") as container:
        assert container.duration == pytest.approx(6e6, rel=0.05)


def test_what_cannot_be_played_names_the_file(tmp_path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(VideoError, match=r"a\.mp4 is not a video"):
        film_of(record(tmp_path / "a.mp4"), at=1.0, start=0.0, end=2.0)
    with pytest.raises(QueryError, match="6 s long; there is nothing at 9 s"):
        film_of(record(tmp_path / "a.mp4"), at=9.0, start=9.0, end=9.0)
