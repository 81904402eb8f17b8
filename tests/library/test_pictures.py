"""Pictures out of videos, and searches that begin with one."""

import io

import numpy as np
import pytest
from PIL import Image

from sureshot.errors import QueryError, VideoError
from sureshot.library.clips import like_frame, like_photo, still
from sureshot.library.search import open_index


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


def test_a_still_is_a_jpeg_of_the_second_asked_for(library) -> None:
    for at, strongest in ((1.0, 0), (5.0, 1), (11.0, 2), (999.0, 2)):
        picture = Image.open(io.BytesIO(still(library.videos / "scenes.mp4", at, side=24)))
        assert (picture.format, min(picture.size)) == ("JPEG", 24)
        assert np.asarray(picture)[12:].mean((0, 1)).argmax() == strongest


def test_a_still_of_nothing_names_the_file(tmp_path) -> None:
    (tmp_path / "a.mp4").write_text("no video")
    with pytest.raises(VideoError, match=r"a\.mp4 is not a video"):
        still(tmp_path / "a.mp4", 0.0, side=24)
    with pytest.raises(VideoError, match=r"b\.mp4 has vanished"):
        still(tmp_path / "b.mp4", 0.0, side=24)


def test_a_frame_is_looked_for_alone_and_not_with_its_moment(searcher, library) -> None:
    green = like_frame(searcher, library.videos / "scenes.mp4", 6.0, limit=1)
    assert [(hit.path.name, 4 <= hit.peak < 8) for hit in green] == [("scenes.mp4", True)]


def test_a_photo_is_called_what_it_was_called(searcher) -> None:
    buffer = io.BytesIO()
    Image.new("RGB", (64, 48), (0, 0, 255)).save(buffer, "PNG")
    answer = like_photo(searcher, buffer.getvalue(), "sea.png", limit=1)
    assert (answer.query, answer[0].path.name) == ("sea.png", "scenes.mp4")
    assert answer[0].peak >= 8


def test_what_is_no_picture_is_told(searcher) -> None:
    with pytest.raises(QueryError, match=r"notes\.txt is not a picture"):
        like_photo(searcher, b"some text", "notes.txt")
