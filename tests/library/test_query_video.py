"""Windows of the video that somebody asks about."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import QueryError, VideoError
from sureshot.library.search import asked_windows
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.store.index import Store
from tests.clips import coloured


def asked(library, path, at=None):
    return asked_windows(Store.open(library.db), TinyEncoder(), path, at)


def test_a_time_chooses_the_window_on_screen(library):
    video = library.videos / "scenes.mp4"  # red, green, blue
    store = Store.open(library.db).windows_of(video)
    for at in (0.0, 5.0, 9.0, 12.0):
        row = int(np.searchsorted(store.start, at, side="right")) - 1
        one = asked(library, video, at)
        assert np.array_equal(one.frames[0], store.features.frames[row])
        assert len(one.frames) == 1


def test_a_long_video_is_looked_at_evenly(library, tmp_path):
    assert len(asked(library, library.videos / "scenes.mp4").frames) == 6
    path = coloured(tmp_path / "long.mp4", [*COLOURS] * 4, seconds=2, rate=5)
    assert len(asked(library, path).frames) == 24


@pytest.mark.parametrize("at", [16.5, 1e9, -1.0, float("nan")])
def test_a_time_outside_the_video_is_refused(library, at):
    with pytest.raises(QueryError, match="is 16 s long"):
        asked(library, library.videos / "long" / "yellow.mp4", at=at)


def test_what_is_no_video_is_refused(library, tmp_path):
    with pytest.raises(QueryError, match="no such file"):
        asked(library, tmp_path / "gone.mp4")
    with pytest.raises(QueryError, match="not a video file or a folder of numbered frames"):
        asked(library, library.videos)
    with pytest.raises(QueryError, match="cannot be read"):
        asked(library, Path("/" + "x" * 300))
    (tmp_path / "notes.mp4").write_text("no video")
    with pytest.raises(VideoError):
        asked(library, tmp_path / "notes.mp4")


def test_an_ordinary_folder_is_refused_without_a_search_through_it(library, tmp_path, monkeypatch):
    visited = []
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    iterdir = Path.iterdir
    monkeypatch.setattr(Path, "iterdir", lambda path: (visited.append(path), iterdir(path))[1])
    with pytest.raises(QueryError):
        asked(library, tmp_path)
    assert visited == [tmp_path]


def test_a_video_that_is_removed_just_now_is_decoded(library, monkeypatch):
    store, path = Store.open(library.db), library.videos / "scenes.mp4"
    stored = asked_windows(store, TinyEncoder(), path, None)
    nothing = store.windows_of(library.videos / "gone.mp4")
    monkeypatch.setattr(store, "windows_of", lambda path: nothing)
    found = asked_windows(store, TinyEncoder(), path, None)
    np.testing.assert_allclose(found.frames, stored.frames, atol=1e-3)
