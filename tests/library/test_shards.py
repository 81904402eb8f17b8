"""A shard that nobody has indexed is named by `status` until its videos are there."""

from pathlib import Path

import pytest

import sureshot
from sureshot.library import status
from sureshot.store.index import Store
from tests.small_library import Library

MADE = {"model": "tiny", "workers": 1}


def missing(db: Path) -> list[str]:
    return [sentence for sentence in status(db).trouble if "hard" in sentence]


def test_shards_that_are_not_indexed_are_named_until_all_is(
    library: Library, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    db, videos = tmp_path / "db", library.videos
    sureshot.index(videos / "red.mp4", db=db, **MADE)
    assert missing(db) == []
    for number in (1, 3, 4):
        sureshot.index(videos, db=db, shard=f"{number}/16", **MADE)
    (said,) = missing(db)
    assert f"Shards 2, 5, 6, 7, 8 and 8 more of 16 of {videos} have not been indexed yet." in said
    assert f"`sureshot index {videos} --shard 2/16` indexes the first of them." in said
    sureshot.index(videos / "red.mp4", db=db, **MADE)  # not all of them
    assert missing(db) == [said]
    for number in range(5, 17):
        sureshot.index(videos, db=db, shard=f"{number}/16", **MADE)
    assert "Shard 2 of 16 of" in missing(db)[0] and "--shard 2/16` indexes it." in missing(db)[0]

    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:  # begun and not finished
        patch.setattr(Store, "sweep", interrupted)
        assert sureshot.index(videos, db=db, shard="2/16", **MADE).interrupted
    assert "Shard 2 of 16" in missing(db)[0]
    sureshot.index(videos, db=db, shard="2/16", **MADE)
    with monkeypatch.context() as patch:  # what was finished before stays so
        patch.setattr(Store, "sweep", interrupted)
        sureshot.index(videos, db=db, shard="2/16", **MADE)
    assert missing(db) == []
    sureshot.index(videos, db=db, shard="1/3", **MADE)
    assert "Shards 2 and 3 of 3 of" in missing(db)[0]
    sureshot.index(videos.parent, db=db, **MADE)  # all of them at once
    assert missing(db) == []
