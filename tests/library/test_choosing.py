"""Which videos a search looks at."""

import os
from datetime import UTC, date, datetime
from pathlib import Path

import pytest

from sureshot.errors import QueryError
from sureshot.library.catalog import Choice
from sureshot.library.search import open_index
from sureshot.store.vector_search import VideoSet
from tests.clips import coloured
from tests.small_library import index


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


def found(films, **wanted):
    searcher = films[1]
    folder = Choice(**wanted).videos(searcher.store)
    return sorted(
        {
            int(hit.path.parent.name)
            for hit in searcher.search("red", folder=folder, limit=9, merge_copies=False)
        }
    )


@pytest.mark.parametrize(
    "wanted, days",
    [
        ({}, [1, 2, 3]),
        ({"shortest": 2.0}, [2, 3]),
        ({"longest": 2.0}, [1, 2]),
        ({"shortest": 1.5, "longest": 3.0}, [2]),
        ({"since": date(2024, 1, 2)}, [2, 3]),
        ({"until": date(2024, 1, 2)}, [1, 2]),
        ({"since": date(2024, 1, 2), "until": date(2024, 1, 2)}, [2]),
        ({"since": date(2024, 1, 2), "longest": 3.0}, [2]),
        ({"longest": 0.5}, []),
        ({"longest": 0.0}, []),
    ],
)
def test_only_videos_that_fit_are_searched(films, wanted, days) -> None:
    assert found(films, **wanted) == days


def test_a_folder_alone_needs_no_list_of_videos(films) -> None:
    folder, searcher = films
    assert Choice(folder=folder / "1").videos(searcher.store) == folder / "1"
    assert found(films, folder=folder / "1") == [1]
    assert found(films, folder=folder / "1", shortest=2.0) == []


def test_percentages_and_counts_are_of_what_is_searched(films) -> None:
    _, searcher = films
    some = Choice(longest=2.0).videos(searcher.store)
    assert isinstance(some, VideoSet)
    assert searcher.store.count(some) == 2 == searcher.store.count_videos(some)
    assert searcher.rivals("red", folder=some).about.videos == 2


def test_an_empty_choice_says_what_was_wanted(films) -> None:
    _, searcher = films
    wanted = Choice(folder=Path("/v"), shortest=3600.0, until=date(2020, 1, 1))
    answer = searcher.search("red", folder=wanted.videos(searcher.store))
    assert answer.warnings == (
        "Nothing is indexed at or below /v, that lasts 1 h or longer, that changed on 2020-01-01 "
        "or before.",
    )


@pytest.mark.parametrize(
    "wanted",
    [{"shortest": 3.0, "longest": 2.0}, {"since": date(2024, 1, 2), "until": date(2024, 1, 1)}],
)
def test_what_no_video_can_be_is_told(films, wanted) -> None:
    with pytest.raises(QueryError, match="exchange them"):
        Choice(**wanted).videos(films[1].store)
