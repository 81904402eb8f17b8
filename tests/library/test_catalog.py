"""What an index holds, and how it is taken away."""

import os
import re
import shutil
from datetime import UTC, date, datetime
from pathlib import Path

import av
import pytest

from sureshot.errors import ArgumentError, QueryError, StoreError
from sureshot.library.catalog import remove, reset, status
from sureshot.library.search import open_index
from sureshot.library.video_list import VideoFilter, video_values
from sureshot.library.video_list import videos as listed
from sureshot.store.index import Store
from sureshot.store.rows import VideoRecord
from sureshot.store.vector_search import VideoSet
from tests.clips import coloured
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
    assert path == videos / "broken.mp4" and contents.folders == (videos, videos / "sub")
    lines = repr(contents).splitlines()
    assert lines[0] == f"Index       {db}"
    assert lines[-1] == f"  failed: {path}: {reason}"
    assert contents.to_dict()["failed"] == [{"path": str(path), "reason": reason}]


def test_status_says_all_else_where_no_card_may_be_looked_at(db, monkeypatch):
    monkeypatch.setenv("XDG_DATA_HOME", f"/{'x' * 300}")
    contents = status(db)
    assert contents.videos == 2 and "not calibrated" in contents.status


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


def test_one_path_as_a_text_is_that_path_alone(videos, db):
    # Letter by letter it would begin with the root, below which everything lies.
    assert remove(str(videos / "a.mp4"), db=db) == 1
    assert [video.path.name for video in Store.open(db).videos()] == ["broken.mp4", "b.mp4"]


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
    first = listed(store, limit=2)
    last = listed(store, limit=2, after=first.after)
    assert (names(first), names(last), last.after, last.total) == (["a", "b"], ["c"], None, 3)


def test_the_newest_come_first_and_failed_ones_not_at_all(store, tmp_path) -> None:
    folder = tmp_path / "videos"
    os.utime(folder / "b.mp4", (2e9, 2e9))
    (folder / "d.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    first = listed(store, limit=2, sort="date", failed=False)
    assert first.videos[0].path.name == "b.mp4" and first.to_dict()["text"] == "3 videos, 3 s"
    store.remove([first.videos[1]])  # the next page begins behind it all the same
    (last,) = listed(store, limit=2, sort="date", failed=False, after=first.after).videos
    assert {names(first)[1], last.path.name[0]} == {"a", "c"}
    assert "d" in names(listed(store, limit=9, sort="date"))


def test_a_list_counts_the_videos_that_status_counts(db, videos) -> None:
    store = Store.open(db)
    for sort in ("path", "date"):
        page = listed(store, limit=1, sort=sort)
        assert (page.total, page.failed, page.seconds) == (2, 1, status(db).seconds)
        assert page.total == status(db).videos == store.count_videos()
        assert page.to_dict()["text"] == "2 videos, 3 s"
    shown = listed(store, limit=9).videos
    assert [record.path.name for record in shown] == ["a.mp4", "broken.mp4", "b.mp4"]


@pytest.mark.parametrize("limit", [0, -1, 2.5, "3"])
def test_a_page_of_no_whole_number_of_videos_is_refused(library, limit):
    with pytest.raises(ArgumentError, match=r"limit is .*; give a whole number, 1 or more\."):
        listed(library.db, limit=limit)


def test_a_list_of_chosen_videos_counts_what_it_shows(films, tmp_path) -> None:
    folder, searcher = films
    db = searcher.store.location
    page = listed(db, longer="0:02", until="2024-01-03", sort="date")
    assert [record.path.parent.name for record in page.videos] == ["3", "2"]
    assert (page.total, page.failed, page.text) == (2, 0, "2 videos, 6 s")
    assert [record.path.parent.name for record in listed(db, since="2024-01-02").videos] == [
        "2",
        "3",
    ]
    assert listed(db, folder=folder / "1", longer=2).videos == ()
    with pytest.raises(ArgumentError, match="give path or date"):
        listed(db, sort="best")


def test_a_failed_video_is_in_a_list_but_for_one_by_length(db, videos) -> None:
    assert (listed(db).total, listed(db).failed) == (status(db).videos, len(status(db).failed))
    assert listed(db, shorter=60).failed == 0
    assert listed(db, since="2020-01-01").failed == 1


def test_a_page_goes_on_behind_a_video_that_was_removed_meanwhile(store) -> None:
    first = listed(store, limit=2)
    store.remove([first.videos[1]])
    assert names(listed(store, limit=2, after=first.after)) == ["c"]


def test_a_name_in_no_encoding_is_listed(store) -> None:
    first = listed(store, limit=3)
    assert first.after is None
    below = listed(store, limit=1, folder=first.videos[2].path)
    assert below.to_dict()["videos"][0]["path"].endswith("c\ufffd.mp4")


@pytest.mark.parametrize("after", ["%", "é", "A", "_w"])
def test_a_cursor_from_elsewhere_is_told(store, after) -> None:
    with pytest.raises(QueryError, match="from no page"):
        listed(store, limit=1, after=after)


def test_a_time_beyond_calendars_is_left_out() -> None:
    record = VideoRecord(path=Path("/v/a.mp4"), kind="file", size=1, mtime_ns=2**63 - 1)
    assert video_values(record)["modified"][:4] == "2262"
    record = VideoRecord(path=Path("/v/a.mp4"), kind="file", size=1, mtime_ns=10**21)
    values = video_values(record)
    assert (values["modified"], values["date"], values["missing"]) == ("", "", True)


@pytest.fixture(scope="module")
def films(tmp_path_factory):
    """Videos of 1, 2 and 4 seconds, changed on the first three days of 2024."""
    root = tmp_path_factory.mktemp("films")
    for day, seconds in enumerate((1.0, 2.0, 4.0), 1):
        path = root / "v" / str(day) / "a.mp4"
        path.parent.mkdir(parents=True)
        coloured(path, ["red"], seconds=seconds, rate=5)
        noon = datetime(2024, 1, day, 12, tzinfo=UTC).timestamp()
        os.utime(path, (noon, noon))
    index(str(root / "db"), root / "v")
    return root / "v", open_index(root / "db")


def days_of(answer):
    return [int(hit.path.parent.name) for hit in answer]


def found(films, **wanted):
    return sorted(days_of(films[1].search("red", limit=9, merge_copies=False, **wanted)))


@pytest.mark.parametrize(
    "wanted, days",
    [
        ({}, [1, 2, 3]),
        ({"longer": 2.0}, [2, 3]),
        ({"shorter": 2.0}, [1, 2]),
        ({"longer": 1.5, "shorter": 3.0}, [2]),
        ({"since": date(2024, 1, 2)}, [2, 3]),
        ({"until": date(2024, 1, 2)}, [1, 2]),
        ({"since": date(2024, 1, 2), "until": date(2024, 1, 2)}, [2]),
        ({"since": date(2024, 1, 2), "shorter": 3.0}, [2]),
        ({"shorter": 0.5}, []),
        ({"shorter": 0.0}, []),
        ({"longer": "0:02", "until": "2024-01-02"}, [2]),
        ({"since": "2024", "until": "2024"}, [1, 2, 3]),
        ({"since": "2024-01", "until": "2024-01"}, [1, 2, 3]),
        ({"since": "2024-02"}, []),
        ({"until": "2023"}, []),
    ],
)
def test_only_videos_that_fit_are_searched(films, wanted, days) -> None:
    assert found(films, **wanted) == days


def test_a_folder_alone_needs_no_list_of_videos(films) -> None:
    folder, searcher = films
    assert VideoFilter(folder=folder / "1").videos(searcher.store) == folder / "1"
    assert found(films, folder=folder / "1") == [1]
    assert found(films, folder=folder / "1", longer=2.0) == []


def test_all_videos_are_read_once_for_one_filter_and_state_of_the_index(
    films, monkeypatch, tmp_path
) -> None:
    folder, _ = films
    copy = shutil.copytree(folder.parent / "db", tmp_path / "db")
    searcher, reads, videos = open_index(copy), [], Store.videos
    monkeypatch.setattr(Store, "videos", lambda store: reads.append(1) or videos(store))
    monkeypatch.chdir(folder)

    def days(**wanted):
        return sorted(days_of(searcher.search("red", merge_copies=False, **wanted)))

    assert [days(until="2024-01-02") for _ in range(3)] == 3 * [[1, 2]]
    assert len(reads) == 1
    assert days(folder="./2", until="2024-01-02") == [2]
    monkeypatch.chdir(folder / "1")
    assert days(folder="./2", until="2024-01-02") == []
    assert (days(since="2024-01-02"), days()) == ([2, 3], [1, 2, 3])
    reads.clear()
    Store.open(copy).remove([*Store.open(copy).at([folder / "2" / "a.mp4"]).values()])
    assert [days(since="2024-01-02") for _ in range(2)] == [[3], [3]]
    assert len(reads) == 1


def test_percentages_and_counts_are_of_what_is_searched(films) -> None:
    _, searcher = films
    some = VideoFilter(shorter=2.0).videos(searcher.store)
    assert isinstance(some, VideoSet)
    assert searcher.store.count(some) == 2 == searcher.store.count_videos(some)
    (query,) = searcher._queries(["red"], folder=some)
    assert searcher._context(query, 2).videos == 2


def test_an_empty_choice_says_what_was_wanted(films) -> None:
    _, searcher = films
    answer = searcher.search("red", folder="/v", longer=3600.0, until=date(2020, 1, 1))
    assert answer.warnings == (
        "Nothing is indexed at or below /v, that lasts 1 h or longer, dated 2020-01-01 or before.",
    )
    for until, said in ((date(1999, 1, 2), "dated 1999-01-02"), (date(1999, 1, 3), "dated from")):
        answer = searcher.search("red", since=date(1999, 1, 2), until=until)
        assert answer.warnings[0].startswith(f"Nothing is indexed {said}")


@pytest.mark.parametrize(
    "wanted, said",
    [
        ({"longer": 3.0, "shorter": 2.0}, "--shorter; exchange them"),
        ({"since": date(2024, 1, 2), "until": date(2024, 1, 1)}, "--until; exchange them"),
        ({"longer": -1.0}, "--longer is -1; give seconds, 0 or more"),
        ({"shorter": "long"}, "'long' is not a time"),
        (
            {"since": "yesterday"},
            "--since is 'yesterday', which is no date; write it as 2024-05-31, 2024-05 or 2024",
        ),
        ({"until": "2024-13"}, "--until is '2024-13', which is no date"),
        ({"since": "2024-05-31x"}, "--since is '2024-05-31x', which is no date"),
        ({"sort": "length"}, "--sort is 'length'; give best or date"),
    ],
)
def test_what_no_video_can_be_is_refused(films, wanted, said) -> None:
    for find in (films[1].search, lambda _, **kinds: films[1].like(films[0] / "1/a.mp4", **kinds)):
        with pytest.raises(ArgumentError, match=re.escape(said)):
            find("red", **wanted)


def test_the_same_hits_come_by_date_and_keep_their_numbers(films) -> None:
    folder, searcher = films
    for find in (searcher.search, searcher.like):
        best, dated = (
            find(str(folder / "1" / "a.mp4"), merge_copies=False, sort=sort)
            for sort in ("best", "date")
        )
        assert days_of(dated) == sorted(days_of(best), reverse=True)
        assert {(hit.rank, hit.path) for hit in dated} == {(hit.rank, hit.path) for hit in best}
        assert dated.warnings[-1].startswith(
            "Newest first; number 1 is the best match. The date of"
        )
        assert {hit.date_from for hit in best} == {"file"}
    few = searcher.search("red", merge_copies=False, sort="date", limit=2)
    assert {hit.rank for hit in few} == {1, 2}


def test_more_like_a_video_takes_the_filters_too(films) -> None:
    folder, searcher = films
    alike = searcher.like(folder / "1" / "a.mp4", merge_copies=False, longer=3)
    assert days_of(alike) == [3]


def test_a_date_in_a_file_goes_before_that_of_the_file(tmp_path) -> None:
    for name, stamp in (
        ("old", "2001-02-03T12:00:00Z"),
        ("new", "2002-02-03T12:00:00Z"),
        ("none", ""),
    ):
        path = coloured(tmp_path / "made.mp4", ["red"], seconds=1, rate=5)
        with av.open(path) as source, av.open(tmp_path / f"{name}.mp4", "w") as target:
            target.metadata.update({"creation_time": stamp} if stamp else {})
            stream = target.add_stream_from_template(source.streams.video[0])
            for packet in source.demux(source.streams.video[0]):
                if packet.dts is not None:
                    packet.stream = stream
                    target.mux(packet)
        path.unlink()
    os.utime(tmp_path / "none.mp4", (1e9, 1e9))  # in September 2001
    index(str(tmp_path / "db"), tmp_path)
    searcher = open_index(tmp_path / "db")
    answer = searcher.search("red", merge_copies=False, sort="date")
    assert [hit.path.stem for hit in answer] == ["new", "none", "old"]
    assert [hit.date_from for hit in answer] == ["creation_time", "file", "creation_time"]
    assert answer.to_dict()["hits"][2]["date"][:10] == "2001-02-03"
    assert "The date of 1 hit is that of the file's last change." in answer.warnings[-1]
    assert [r.path.stem for r in listed(tmp_path / "db", until="2001-12-31").videos] == [
        "none",
        "old",
    ]
