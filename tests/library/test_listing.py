"""The videos of an index page by page."""

import os
from pathlib import Path

import pytest

from sureshot.errors import QueryError
from sureshot.library.catalog import list_videos, video_values
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture
def store(tmp_path):
    """Three videos, the name of one of them in no encoding."""
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("a", "b", os.fsdecode(b"c\xff")):
        coloured(tmp_path / "made.mp4", ["red"], seconds=1, rate=5).rename(folder / f"{name}.mp4")
    index(str(tmp_path / "db"), folder)
    return Store.open(tmp_path / "db")


def names(listing):
    return [record.path.name[0] for record in listing.videos]


def test_pages_hold_every_video_once(store) -> None:
    first = list_videos(store, limit=2)
    last = list_videos(store, limit=2, after=first.after)
    assert (names(first), names(last), last.after, last.total) == (["a", "b"], ["c"], None, 3)


def test_the_newest_come_first_and_failed_ones_not_at_all(store, tmp_path) -> None:
    folder = tmp_path / "videos"
    os.utime(folder / "b.mp4", (2e9, 2e9))
    (folder / "d.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    newest = list_videos(store, limit=2, newest=True)
    assert (newest.videos[0].path.name, len(newest.videos), newest.after) == ("b.mp4", 2, None)
    assert newest.to_dict()["said"] == "4 videos, 3 s"
    assert "d.mp4" not in {r.path.name for r in list_videos(store, limit=9, newest=True).videos}


def test_a_page_goes_on_behind_a_video_that_was_removed_meanwhile(store) -> None:
    first = list_videos(store, limit=2)
    store.remove([first.videos[1]])
    assert names(list_videos(store, limit=2, after=first.after)) == ["c"]


def test_a_name_in_no_encoding_is_listed(store) -> None:
    first = list_videos(store, limit=3)
    assert first.after is None
    below = list_videos(store, limit=1, folder=first.videos[2].path)
    assert below.to_dict()["videos"][0]["path"].endswith("c\ufffd.mp4")


@pytest.mark.parametrize("after", ["%", "é", "A", "_w"])
def test_a_cursor_from_elsewhere_is_told(store, after) -> None:
    with pytest.raises(QueryError, match="from no page"):
        list_videos(store, limit=1, after=after)


def test_a_time_beyond_calendars_is_left_out() -> None:
    record = VideoRecord(path=Path("/v/a.mp4"), kind="file", size=1, mtime_ns=2**63 - 1)
    assert video_values(record)["modified"][:4] == "2262"
    record = VideoRecord(path=Path("/v/a.mp4"), kind="file", size=1, mtime_ns=10**21)
    assert (video_values(record)["modified"], video_values(record)["missing"]) == ("", True)
