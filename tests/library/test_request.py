from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import QueryError
from sureshot.library.ranking import (
    Moment,
    NearWindows,
    Request,
    WindowScores,
    check_shares,
    why_few,
    why_nothing,
)
from sureshot.models.similarity import MeanFrames
from sureshot.store.index import Store
from tests.encoded import make_store, random_windows, record


def test_numbers_that_ask_for_nothing_are_refused() -> None:
    with pytest.raises(QueryError, match="limit is 0"):
        Request(limit=0, per_video=None, merge_copies=True)
    with pytest.raises(QueryError, match=r"coverage is 1\.0"):
        check_shares(1.0, 0.0)
    with pytest.raises(QueryError, match=r"min is 1\.0"):
        check_shares(0.9, 1.0)


def test_why_an_answer_is_short_is_said(tmp_path: Path) -> None:
    make_store(tmp_path).write(record("/v.mp4"), random_windows(2))
    windows = Store.open(tmp_path).windows_of(Path("/v.mp4"))
    asked = Request(limit=5, per_video=1, merge_copies=True, folder=Path("/films"))
    every, some = (
        NearWindows.of(WindowScores(windows, MeanFrames()), np.ones((1, 24)), 2, whole=whole)
        for whole in (True, False)
    )
    (said,) = why_few(asked, 2, every, True)
    assert said.startswith("2 hits of 5 asked for: one video gives at most 1")
    (said,) = why_few(asked, 2, some, False)
    assert said.startswith("2 hits of 5 asked for: the 2 nearest windows are copies of these.")
    assert why_few(asked, 2, every, False) == why_few(asked, 5, some, True) == []
    assert why_nothing(asked, 0).startswith("Nothing is indexed yet")
    assert why_nothing(asked, 3) == "Nothing is indexed at or below /films."


def test_the_moment_that_was_asked_about_is_known() -> None:
    film = Path("/film.mp4")
    asked = Request(limit=5, per_video=None, merge_copies=True, like=film, at=4.0)
    moment = Moment(path=film, best=0, rows=[0], start=3.0, end=9.0, score=0.5)
    assert asked.is_asked(moment) and asked.without is None
    assert Request(limit=5, per_video=None, merge_copies=True, like=film).without == film
