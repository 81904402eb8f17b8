"""The table of lines: all of a source or nothing, found by words and by what they say."""

import random
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from sureshot.media.lines import Line
from sureshot.store.index import Store
from sureshot.store.lines import WordsRead, index_lines
from sureshot.store.maintenance import find_faults
from sureshot.store.vector_search import VideoSet
from tests.encoded import fail, make_store, random_windows, record
from tests.store.test_checksums import flip, largest

TEXTS = ["the password is swordfish", "我们 meet at the harbour", "Ärzte, bitte!"]


def vectors(count: int) -> np.ndarray:
    """As many that are far apart."""
    return np.eye(384, dtype=np.float32)[:count]


def read(video, *texts: str, stamp: str = "1", source: str = "subtitles") -> WordsRead:
    lines = [
        Line(start=10.0 * n, end=10.0 * n + 2, text=text, source=source, language="en")
        for n, text in enumerate(texts)
    ]
    return WordsRead(
        video=video, source=source, stamp=stamp, lines=lines, vectors=vectors(len(texts))
    )


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """An index of three videos: the first has lines, the second was found to have none."""
    store = make_store(tmp_path / "index")
    for number in range(3):
        store.write(record(f"/{number}.mp4"), random_windows(2, seed=number))
    one, two, _ = store.videos()
    store.write_lines([read(one, *TEXTS), read(two)])
    return store


def texts(store: Store, query: str) -> list[str]:
    """Lines that are found by their words."""
    return [one.line.text for one in store.lines.having(query, np.eye(384)[300], 3)]


def test_an_index_without_lines_has_no_table_of_them(tmp_path):
    store = make_store(tmp_path / "index")
    store.write(record("/0.mp4"), random_windows(2))
    store.compact()
    store.remove(store.videos())
    assert store.lines.count() == 0 and store.lines.known() == {}
    assert not (tmp_path / "index" / "lines.lance").exists()


@pytest.mark.parametrize("indexed", [False, True])
def test_a_line_is_found_by_a_word_in_any_form_and_by_what_it_says(store, indexed):
    if indexed:
        index_lines(store._tables)
        assert texts(store, "passwords") == TEXTS[:1]
    assert store.lines.has("我们") and store.lines.has("swordfish") and not store.lines.has("zebra")
    assert texts(store, "password") == TEXTS[:1]
    (near,) = store.lines.search("nothing", np.eye(384)[1], 1)  # by its vector
    assert near.line.text == TEXTS[1]
    both = store.lines.search("password", np.eye(384)[1], 1)
    assert [one.line.text for one in both] == [TEXTS[1], TEXTS[0]]
    assert [one.similarity for one in both] == pytest.approx([1, 0])
    assert store.lines.having("password is", np.eye(384)[0], 5)[0].line.text == TEXTS[0]
    assert not store.lines.having("is password", np.eye(384)[0], 5)


@pytest.mark.parametrize("indexed", [False, True])
def test_lines_of_some_videos_alone_are_searched(store, indexed):
    one, two, _ = store.videos()
    store.write_lines([read(two, TEXTS[0], "on a wall")])
    if indexed:
        index_lines(store._tables)
    for video, words in ((one, TEXTS[:2]), (two, [TEXTS[0], "on a wall"])):
        for chosen in (video.path, VideoSet(frozenset([video.id]), "one of them")):
            found = [
                *store.lines.search("password", np.eye(384)[1], 1, chosen),
                *store.lines.having("the password", np.eye(384)[1], 5, chosen),
            ]
            assert {one.path for one in found} == {video.path}
            assert sorted({one.line.text for one in found}) == sorted(words)
            assert store.lines.count(chosen) == len(store.lines.of(video.path))
    assert store.lines.count(VideoSet(frozenset(), "none")) == 0


def test_what_is_read_again_takes_the_place_of_what_was_there_of_that_source(store):
    one, two, _ = store.videos()
    store.write_lines([read(one, "on a wall", "later", source="picture")])
    store.write_lines([read(one, "new words", stamp="2"), read(two, "more of them")])
    assert store.lines.known() == {
        one.id: {"subtitles": ("2", 1), "picture": ("1", 2)},
        two.id: {"subtitles": ("1", 1)},
    }
    assert [line.text for line in store.lines.of(one.path)] == ["on a wall", "new words", "later"]
    assert store.lines.count() == 4 and store.lines.count(two.path) == 1


def test_a_copy_and_a_removed_video_take_their_lines_along(store):
    one = store.videos()[0]
    [copy] = store.copy([(one, record("/9.mp4"))])
    store.remove([one])
    assert store.lines.known().keys() >= {copy.id} and one.id not in store.lines.known()
    assert [line.text for line in store.lines.of(copy.path)] == TEXTS
    fail(store, record("/9.mp4", reason="is broken"))
    assert store.lines.count() == 0


def test_lines_without_a_video_are_swept_once_they_are_old(store, monkeypatch):
    stray = store.videos()[0]
    store._tables.drop("videos", f"id = '{stray.id}'")  # as a kill in the middle of a removal does
    store.sweep()
    assert stray.id in store.lines.known()  # its video may be written just now
    later = time.time() + 3600
    monkeypatch.setattr(time, "time", lambda: later)
    store.sweep()
    assert stray.id not in store.lines.known() and store.lines.count() == 0


def test_words_of_a_video_that_was_removed_while_they_were_read_are_not_kept(store):
    gone, there, _ = store.videos()
    store.remove([gone])
    store.write_lines([read(gone, "over and out"), read(there, "on a wall")])
    assert not store.lines.has("over") and texts(store, "wall") == ["on a wall"]
    assert store.lines.known().keys() == {there.id}


@pytest.mark.parametrize("column", ["text", "vector", "start", "stamp"])
def test_damaged_lines_are_left_out_reported_and_count_as_not_read(store, column):
    one = store.videos()[0]
    rows = store._tables.use("lines", lambda t: t.to_table(filter=f"video = '{one.id}'"))
    row = rows.filter(rows.column("stamp" if column == "stamp" else "text").is_valid()).slice(0, 1)
    changed = {"text": "the password is trout", "vector": [0.5] * 384, "start": 1.5, "stamp": "{}"}
    at = row.schema.get_field_index(column)
    value = pa.array([changed[column]], row.schema.field(at).type)
    store._tables.upsert("lines", row.set_column(at, row.schema.field(at), value))
    assert one.id not in store.lines.known()
    if column != "stamp":
        assert not texts(store, "password") and not texts(store, "trout")
        (said,) = store.trouble()
        assert "/0.mp4" in said and "sureshot index" in said
    assert any("Words in 1 video" in fault.what for fault in find_faults(store.location))


def test_a_source_of_which_a_line_is_lost_counts_as_not_read(store):
    store._tables.drop("lines", f"text = '{TEXTS[0]}'")
    assert store.videos()[0].id not in store.lines.known()


def test_a_damaged_index_of_words_is_made_again(store):
    index_lines(store._tables)
    flip(largest(Path(store.location) / "lines.lance" / "_indices"), random.Random(0))
    again = Store.open(store.location)
    again.lines.count()
    assert "index of words" in again.trouble()[0]
    assert "The index of words was damaged and was made again." in again.repair()
    assert texts(Store.open(store.location), "passwords") == TEXTS[:1]
    assert not find_faults(store.location)


def test_an_index_with_lines_is_deleted_whole(store):
    Store.delete(store.location)
    assert not Path(store.location).exists()
