"""What indexing leaves out, until it is taken back."""

from pathlib import Path

import pytest

import sureshot
from sureshot.errors import QueryError
from sureshot.library import remove, status
from tests.clips import coloured


@pytest.fixture
def videos(tmp_path: Path) -> Path:
    """Three videos: a.mp4, raw/b.mp4 and raw/[1].mp4."""
    folder = tmp_path / "videos"
    (folder / "raw").mkdir(parents=True)
    for name in ("a", "raw/b", "raw/[1]"):
        coloured(folder / f"{name}.mp4", ["red" if name == "a" else "blue"], seconds=1, rate=5)
    return folder


@pytest.fixture
def run(tmp_path: Path, videos: Path):
    """Indexes the videos with the tiny encoder."""
    return lambda **options: sureshot.index(videos, db=tmp_path / "db", model="tiny", **options)


def test_what_is_excluded_is_left_out_now_and_later_until_it_is_included(run, tmp_path) -> None:
    assert run().found == 3
    result = run(exclude=["raw"])
    assert (result.excluded, result.forgotten, result.found) == (1, 2, 1)
    assert status(tmp_path / "db").excluded == ("raw",)
    again = run()
    assert (again.excluded, again.forgotten, again.found) == (1, 0, 1)
    back = run(include=["raw"])
    assert (back.excluded, back.found, status(tmp_path / "db").excluded) == (0, 3, ())


def test_what_is_removed_for_good_stays_away(run, videos, tmp_path) -> None:
    run()
    odd = videos / "raw" / "[1].mp4"
    assert remove([odd], db=tmp_path / "db", exclude=True) == 1
    assert (run().found, status(tmp_path / "db").videos) == (2, 2)
    assert run(include=[str(odd)]).found == 3


def test_only_what_is_excluded_can_be_included_again(run) -> None:
    with pytest.raises(QueryError, match=r"b is not excluded; nothing is\."):
        run(include=["b"])
    run(exclude=["*.gif"])
    with pytest.raises(QueryError, match=r"b is not excluded; these are: \*\.gif\."):
        run(include=["b"])
