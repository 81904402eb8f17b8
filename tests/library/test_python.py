"""What Python adds to the commands: an open index as a value, answers as tables, hits as files."""

import asyncio
import json
import math
import pickle
import shutil
import sys
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path

import av
import numpy as np
import pytest
from PIL import Image

import sureshot
from sureshot.errors import ArgumentError, QueryError, StoreError, SureshotError, VideoError
from sureshot.models.encoders.toy import COLOURS
from sureshot.store.index import Store
from tests.encoded import make_store
from tests.small_library import Library


@pytest.fixture(scope="module")
def films(library: Library):
    with sureshot.open_index(library.db) as opened:
        yield opened


def test_an_index_has_the_videos_that_it_holds(films, library: Library, tmp_path: Path) -> None:
    assert len(films) == 5 == len(list(films)) == len(films.videos())
    assert {video.path for video in films} == {video.path for video in films.videos()}
    listed = films.videos(folder="tapes", sort="date")
    assert (len(listed), listed.total, listed[0].path.parent.name) == (2, 2, "tapes")
    lines = repr(films.videos()).splitlines()
    assert lines[0] == films.videos().text and len(lines) == 6
    assert [video.path.name for video in films.videos(longer=15)] == ["yellow.mp4"]
    make_store(tmp_path / "empty")
    empty = sureshot.open_index(tmp_path / "empty")
    assert empty and not len(empty) and not list(empty)


def test_an_index_that_was_closed_searches_again(films) -> None:
    before = films.search("green")
    films.close()
    assert films.search("green").hits == before.hits


def test_an_index_that_is_gone_is_shown_still(library: Library, tmp_path: Path) -> None:
    opened = sureshot.open_index(shutil.copytree(library.db, tmp_path / "index"))
    shutil.rmtree(tmp_path / "index")
    assert "cannot be read" in repr(opened)


def test_hits_that_were_chosen_are_exported_as_an_answer(films, tmp_path: Path) -> None:
    answer = films.search("green", limit=2)
    with pytest.raises(SureshotError, match="list is not the answer"):
        sureshot.library.export(list(answer)[1:], tmp_path)
    chosen = replace(answer, hits=tuple(answer)[1:])
    (cut,) = sureshot.library.export(chosen, tmp_path, min="0%").written
    assert cut.name.startswith("02 ")


def test_all_hits_may_be_asked_for(films) -> None:
    assert len(films.search("green", limit=sys.maxsize)) == len(films.search("green", limit=100))


def test_an_index_pickles(films) -> None:
    copy = pickle.loads(pickle.dumps(films))
    assert copy.search("green").hits == films.search("green").hits
    assert copy.store.location == films.store.location


def test_searches_that_are_awaited_together_find_what_each_finds_alone(films) -> None:
    async def ask() -> list[sureshot.Answer]:
        return await asyncio.gather(*(films.asearch(name, limit=2) for name in list(COLOURS) * 3))

    for name, answer in zip(list(COLOURS) * 3, asyncio.run(ask()), strict=True):
        assert answer.hits == films.search(name, limit=2).hits


def test_some_hits_of_an_answer_are_an_answer(films) -> None:
    answer = films.search("red", limit=4)
    some = answer[1:3]
    assert isinstance(some, sureshot.Answer) and [hit.rank for hit in some] == [2, 3]
    assert (some.query, some.status, some.warnings) == (
        answer.query,
        answer.status,
        answer.warnings,
    )
    assert answer[-1] == answer.hits[-1] and answer[:0].to_dict()["hits"] == []
    assert len(repr(answer[0])) < 100 and "red.mp4" in repr(films.search("red")[:9])


def test_an_answer_is_a_table(films, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = films.search("red", limit=3)
    table = answer.to_pandas()
    assert table["rank"].tolist() == [1, 2, 3]
    assert [Path(path) for path in table["path"]] == [hit.path for hit in answer]
    assert table["probability"].isna().all() and set(table["date_from"]) == {"file"}
    assert list(answer[:0].to_pandas().columns) == list(table.columns)
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(SureshotError, match="pip install pandas"):
        answer.to_pandas()


GREEN = np.full((48, 64, 3), COLOURS["green"], np.uint8)


@pytest.mark.parametrize(
    "picture",
    [
        GREEN,
        np.dstack([GREEN, np.full((48, 64), 255, np.uint8)]),
        Image.fromarray(GREEN),
        Image.fromarray(GREEN).convert("P"),
    ],
    ids=["rgb", "alpha", "pillow", "palette"],
)
def test_a_picture_in_memory_is_looked_for(films, library: Library, picture) -> None:
    answer = films.like(picture, limit=1)
    assert answer[0].path == library.videos / "scenes.mp4" and 3.5 < answer[0].peak < 8.5
    assert answer.query == "a picture"


@pytest.mark.parametrize(
    "none",
    [
        *(GREEN / 255, GREEN[..., 0] / 255, GREEN[..., 0].astype(np.uint16), GREEN[..., :2], 5),
        *(np.zeros(5, np.uint8), np.zeros((0, 0, 3), np.uint8)),
    ],
)
def test_what_is_no_picture_is_refused(films, none) -> None:
    with pytest.raises(QueryError, match="A picture has no seconds; leave out at"):
        films.like(np.zeros((32, 32, 3), np.uint8), at=1.0)
    with pytest.raises(QueryError, match=r"What to look for is .* give a file, an image of Pillow"):
        films.like(none)
    for mode in "IF":
        with pytest.raises(QueryError, match=f"A picture of mode {mode} has no range; convert it"):
            films.like(Image.new(mode, (64, 64), 100))


def test_a_hit_gives_its_frame_and_its_clip(films, tmp_path: Path) -> None:
    (hit,) = films.search("green", limit=1)
    frame = hit.frame(side=24)
    assert frame.size == (32, 24)
    assert np.abs(np.asarray(frame)[18, 20].astype(int) - COLOURS["green"]).max() < 30
    assert np.abs(np.asarray(hit.frame(1.0))[30, 20].astype(int) - COLOURS["red"]).max() < 30
    clip = hit.clip(tmp_path / "green.mp4", pad=1)
    with av.open(clip) as container:
        assert container.duration / 1e6 == pytest.approx(hit.end - hit.start + 2, abs=0.3)
    with pytest.raises(SureshotError, match="exists already"):
        hit.clip(clip)
    with pytest.raises(SureshotError, match=r"give it a name that ends in \.mp4"):
        hit.clip(tmp_path / "green.mov")


@pytest.mark.parametrize("rate", [0, -1, float("nan"), float("inf")])
def test_a_frame_rate_that_cannot_be_is_refused(films, tmp_path: Path, rate: float) -> None:
    for number in range(2):
        Image.fromarray(GREEN).save(tmp_path / f"{number}.png")
    hit = replace(films.search("green", limit=1)[0], path=tmp_path, frame_rate=rate)
    for use in (hit.frame, lambda: hit.clip(tmp_path / "c.mp4")):
        with pytest.raises(SureshotError, match=f"frame rate of {rate:g}.*give one above 0"):
            use()
    assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.parametrize(
    "options, said",
    [
        ({"limit": None}, "limit is None; give a whole number"),
        ({"limit": "3"}, "limit is '3'"),
        ({"limit": 2.5}, "limit is 2.5"),
        ({"per_video": "2"}, "per_video is '2'"),
        ({"min": None}, "min is None; give a share"),
        ({"coverage": "much"}, "coverage is 'much'"),
        ({"min": 10**400}, "min is 1000"),
        ({"since": 5}, "--since is 5, which is no date"),
        ({"longer": [1]}, r"--longer is \[1\]; give seconds"),
    ],
)
def test_an_option_of_another_kind_is_named(films, options, said) -> None:
    with pytest.raises(SureshotError, match=said):
        films.search("red", **options)


@pytest.mark.parametrize(
    "at", ["soon", math.nan, -1, [1], Fraction(-1, 3), Decimal("NaN"), np.array([1, 2]), 10**400]
)
def test_a_time_that_is_none_is_named(films, library: Library, at) -> None:
    for asked in (films.like, partial(films.describe, texts="red")):
        with pytest.raises(ArgumentError, match=r"--at( is|: 'soon' is not a time)"):
            asked(library.videos / "red.mp4", at=at)


@pytest.mark.parametrize("path", [None, 5, ["red.mp4"]])
def test_what_is_no_path_is_named(films, path) -> None:
    for asked in (films.like, partial(films.describe, texts="red"), films.lines):
        with pytest.raises(SureshotError, match=r"is not a path|What to look for is"):
            asked(path)


def test_options_are_numbers_of_any_kind_and_shares_as_they_are_typed(films) -> None:
    answer = films.search("red", limit=np.int64(2), prior=np.float32(0.5), min="0%")
    assert len(answer) == 2 and json.dumps(answer.to_dict())
    video = answer[0].path
    assert films.like(video, at="0:01").hits == films.like(video, at=1).hits
    assert films.describe(video, "red", at="0:01") == films.describe(video, "red", at=1)
    for query in (None, ["red"], 3):
        with pytest.raises(QueryError, match="give a sentence as text"):
            films.search(query)


@pytest.mark.parametrize(
    "settings",
    [{"frames": 4.5}, {"frames": "3"}, {"scenes": "no"}, {"window": "a"}, {"decode": "x"}],
)
def test_settings_of_another_kind_leave_no_index_behind(
    library: Library, tmp_path, settings
) -> None:
    with pytest.raises(ArgumentError, match=f"Setting {next(iter(settings))} is"):
        sureshot.index(library.videos, db=tmp_path / "db", model="tiny", **settings)
    assert not (tmp_path / "db").exists()


def test_settings_may_be_numbers_of_numpy(library: Library, tmp_path: Path) -> None:
    red = library.videos / "red.mp4"
    assert sureshot.open_index(library.db).search("red", longer=np.float32(1))
    made = {"frames": np.int64(3), "scenes": np.bool_(False), "frame_rate": 2}
    sureshot.index(red, db=tmp_path / "db", model="tiny", workers=1, **made)
    settings = sureshot.open_index(tmp_path / "db").store.settings
    assert (settings.frames, settings.scenes, settings.frame_rate) == (3, False, 2.0)


def test_an_index_is_named_by_its_place_or_given_open(library: Library, tmp_path: Path) -> None:
    red, db = library.videos / "red.mp4", tmp_path / "db"
    sureshot.index(red, db=db, model="tiny", workers=1)
    opened = sureshot.open_index(db)
    assert sureshot.open_index(opened) is opened
    assert sureshot.index(library.videos / "scenes.mp4", db=opened, workers=1).indexed == 1
    for given in (db, opened, opened.store):
        assert sureshot.library.has_index(given) and len(sureshot.library.videos(given)) == 2
        assert sureshot.library.status(given) == sureshot.library.status(db)
        assert {"index", "disk"} <= {check.name for check in sureshot.library.examine(given)}
        assert not sureshot.library.forget(given)
        assert sureshot.library.describe(red, "red", db=given) == opened.describe(red, "red")
    assert sureshot.library.remove(red, db=opened) == 1 == len(opened)
    assert [hit.path.name for hit in opened.search("red", limit=1)] == ["scenes.mp4"]
    assert sureshot.library.reset(opened) and not sureshot.library.has_index(db)
    with pytest.raises(StoreError, match="There is no index at"):
        opened.search("red")
    for given in (5, False, [], {}):  # not the default index
        with pytest.raises(ArgumentError, match="is not a path"):
            sureshot.library.reset(given)


def test_a_model_may_be_named_by_a_path(library: Library, tmp_path: Path) -> None:
    for options in ({"model": tmp_path / "none"}, {"speech": tmp_path / "none"}):
        with pytest.raises(SureshotError, match=r"/none|faster-whisper"):
            sureshot.index(library.videos, db=tmp_path / "db", **options)


def test_pictures_are_found_without_the_table_of_videos(library: Library, tmp_path: Path) -> None:
    db = shutil.copytree(library.db, tmp_path / "db")
    shutil.rmtree(db / "videos.lance" / "_versions")
    with sureshot.open_index(db) as opened:
        for answer in (opened.search("red"), opened.search("red", folder=library.videos)):
            assert answer[0].path.name in ("red.mp4", "scenes.mp4")
            assert "`sureshot index FOLDER`" in " ".join(answer.warnings)


def test_a_hit_whose_file_went_meanwhile_says_so(tmp_path: Path, films, library: Library) -> None:
    (hit,) = films.search("green", limit=1)
    gone = replace(hit, path=tmp_path / "moved.mp4")
    for use in (gone.frame, lambda: gone.clip(tmp_path / "clip.mp4")):
        with pytest.raises(VideoError, match=r"moved\.mp4 (has vanished|does not exist)"):
            use()
    assert list(tmp_path.iterdir()) == []
    assert Store.open(library.db).count_videos() == 5
