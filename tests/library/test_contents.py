"""What an index holds, and how it is taken away."""

import shutil

import pytest

from sureshot.errors import QueryError, StoreError
from sureshot.library.catalog import CHECKED, has_index, remove, reset, status
from sureshot.store.index import Store
from tests.clips import coloured
from tests.encoded import spoil
from tests.small_library import index


@pytest.fixture
def videos(tmp_path):
    folder = tmp_path / "videos"
    (folder / "sub").mkdir(parents=True)
    coloured(folder / "a.mp4", ["red"], seconds=2, rate=5)
    coloured(folder / "sub" / "b.mp4", ["blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    return folder


@pytest.fixture
def db(videos, tmp_path):
    index(str(tmp_path / "db"), videos)
    return tmp_path / "db"


def test_status_counts_and_names_what_failed(db, videos):
    contents = status(db)
    assert (contents.index, contents.videos, contents.windows) == (str(db), 2, 2)
    assert (contents.settings.model, contents.status) == ("tiny", "not calibrated")
    ((path, reason),) = contents.failed
    assert path == videos / "broken.mp4"
    lines = repr(contents).splitlines()
    assert lines[0] == f"Index       {db}"
    assert lines[-1] == f"  failed: {path}: {reason}"
    assert contents.to_dict()["failed"] == [{"path": str(path), "reason": reason}]


def test_an_empty_index_has_no_length(tmp_path):
    (tmp_path / "v").mkdir()
    index(str(tmp_path / "db"), tmp_path / "v")
    assert "Videos      0\n" in status(tmp_path / "db").summary
    assert "a minute of video" not in status(tmp_path / "db").summary


def test_there_is_no_status_of_no_index(tmp_path):
    assert not has_index(tmp_path / "none")
    with pytest.raises(StoreError, match="There is no index at"):
        status(tmp_path / "none")


def test_a_folder_is_forgotten_and_its_files_stay(db, videos):
    assert remove([videos / "sub"], db=db) == 1
    assert status(db).videos == 1
    assert (videos / "sub" / "b.mp4").exists()


def test_what_is_not_indexed_cannot_be_forgotten_and_nothing_is(db, videos):
    with pytest.raises(QueryError, match=f"at or below {videos / 'typo'} is indexed; nothing was"):
        remove([videos / "a.mp4", videos / "typo"], db=db)
    assert status(db).videos == 2


def test_an_index_is_deleted_once(db, videos):
    assert has_index(db)
    assert reset(db)
    assert not has_index(db)
    assert not reset(db)
    assert (videos / "a.mp4").exists()


def test_status_tells_of_lost_windows_and_of_damaged_rows(db, videos):
    assert status(db).trouble == ()
    store = Store.open(db)
    store._tables.drop("windows", "path LIKE '%a.mp4'")
    (said,) = status(db).trouble
    assert f"1 video has lost windows, such as {videos / 'a.mp4'}" in said
    assert "sureshot index FOLDER" in said
    assert status(db).to_dict()["trouble"] == [said]
    assert repr(status(db)).splitlines()[-1] == said
    index(str(db), videos)
    assert status(db).trouble == ()


def test_status_and_search_leave_a_half_made_index_as_it_is(db):
    shutil.rmtree(db / "videos.lance")
    with pytest.raises(StoreError, match="half made"):
        status(db)
    assert not (db / "videos.lance").exists()
    assert reset(db)
    assert not db.exists()


def test_a_reset_clears_what_a_killed_one_left(db):
    (db / "windows.lance").rename(db / "windows.lance.gone-1")
    (db / "videos.lance").rename(db / "videos.lance.gone-1")
    assert not reset(db)
    assert not db.exists()


def test_a_check_reads_everything_and_says_that_it_did(db, videos):
    assert status(db).faults is None
    checked = status(db, check=True)
    assert checked.faults == ()
    assert repr(checked).splitlines()[-1] == CHECKED
    assert checked.to_dict()["faults"] == []
    store = Store.open(db)
    spoil(store, store.videos()[0].id, "vector")
    (fault,) = status(db, check=True).faults
    assert str(videos / "a.mp4") in fault.what
    assert "wrong: 1 window" in repr(status(db, check=True)).splitlines()[-1]
    assert status(db, check=True).to_dict()["faults"] == [{"what": fault.what, "fix": fault.fix}]


def test_one_path_as_a_text_is_that_path_alone(videos, db):
    # Letter by letter it would begin with the root, below which everything lies.
    assert remove(str(videos / "a.mp4"), db=db) == 1
    assert [video.path.name for video in Store.open(db).videos()] == ["broken.mp4", "b.mp4"]
