"""The index that all requests share."""

import shutil

import pytest

import sureshot
from sureshot.errors import StoreError, VideoError
from sureshot.paths import video_id
from sureshot.web.schema import FileGoneError, NotFoundError
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture
def films(tmp_path):
    """Two videos, and one that is none."""
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "a.mp4", ["red"], seconds=1, rate=5)
    coloured(folder / "b.mp4", ["blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    return folder


@pytest.fixture
def desk(tmp_path):
    desk = Session(ServeOptions(db=str(tmp_path / "db")))
    yield desk
    desk.close()


def test_an_index_may_come_later_and_be_replaced(desk, films, tmp_path) -> None:
    with pytest.raises(StoreError, match="no index"):
        desk.searcher()
    index(desk.place.db, films)
    first = desk.searcher()
    assert desk.searcher() is first and len(first.search("red")) == 2
    assert desk.store() is first.store
    shutil.rmtree(desk.place.db)
    with pytest.raises(StoreError, match="no index"):
        desk.searcher()
    index(desk.place.db, films / "a.mp4")
    assert desk.searcher() is not first and len(desk.searcher().search("red")) == 1


def test_an_index_of_another_model_says_so(films, tmp_path) -> None:
    index(str(tmp_path / "db"), films)
    desk = Session(ServeOptions(db=str(tmp_path / "db"), model="bundled"))
    pytest.importorskip("all_minilm_l6_v2")
    with pytest.raises(StoreError, match="written by the model 'tiny'"):
        desk.searcher()


def test_only_indexed_videos_have_ids(desk, films) -> None:
    index(desk.place.db, films)
    assert desk.video(video_id(films / "a.mp4")).path == films / "a.mp4"
    for name in ("0" * 32, video_id(films / "other.mp4"), str(films / "a.mp4"), "../a.mp4", ""):
        with pytest.raises(NotFoundError):
            desk.video(name)


def test_new_videos_are_found_and_removed_ones_are_not(desk, films, monkeypatch) -> None:
    monkeypatch.setattr("sureshot.web.session._FRESH", 0.0)
    index(desk.place.db, films / "a.mp4")
    with pytest.raises(NotFoundError):
        desk.video(video_id(films / "b.mp4"))
    index(desk.place.db, films / "b.mp4")
    assert desk.video(video_id(films / "b.mp4")).windows == 1
    sureshot.library.catalog.remove([films / "b.mp4"], db=desk.place.db)
    with pytest.raises(NotFoundError):
        desk.video(video_id(films / "b.mp4"))


def test_made_up_ids_do_not_make_it_read_on_and_on(desk, films, monkeypatch) -> None:
    monkeypatch.setattr("sureshot.web.session._FRESH", 1000.0)  # no read takes so long
    index(desk.place.db, films)
    store = desk.searcher().store
    reads = []
    read = store.videos
    monkeypatch.setattr(store, "videos", lambda: reads.append(1) or read())
    for number in range(20):
        with pytest.raises(NotFoundError):
            desk.video(f"{number:032}")
    assert len(reads) < 20


def test_a_file_that_is_gone_or_could_not_be_indexed_is_told_of(desk, films) -> None:
    index(desk.place.db, films)
    (films / "a.mp4").unlink()
    with pytest.raises(FileGoneError, match=r"a\.mp4 is gone"):
        desk.file(video_id(films / "a.mp4"))
    with pytest.raises(VideoError, match=r"broken\.mp4 is not a video"):
        desk.file(video_id(films / "broken.mp4"))


def test_a_new_card_leaves_searches_under_way_alone(desk, films) -> None:
    index(desk.place.db, films)
    old = desk.searcher()
    new = desk.renew()
    assert new is not old and desk.searcher() is new and new.encoder is old.encoder
