"""Videos and folders are found by their names, apart from what their pictures show."""

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.compute as pc
import pytest

from sureshot.library.file_names import FileNames
from sureshot.paths import absolute
from sureshot.store.index import Store
from sureshot.store.vector_search import VideoSet
from tests.encoded import make_store, random_windows, record

TOP = Path("/films")
PATHS = [
    "VID_2085.mp4",
    "VID_2086.mp4",
    "beach/dog.mp4",
    "beach/sunset.mp4",
    "2019/Urlaub Ostsee/beach volley.mp4",
    "2019/Ärzte live/GOPR0123.MP4",
    "dogs and cats.mkv",
    "carnival.mp4",
    "seven.mp4",
    "Bergstraße/Fuß.mp4",
    "street 7/house.mp4",
    "Show.S01E01.mkv",
    "Show.S01E02.mkv",
]


@pytest.fixture(scope="module")
def names(tmp_path_factory):
    store = make_store(tmp_path_factory.mktemp("names") / "db")
    for number, path in enumerate(PATHS):
        store.write(record(TOP / path), random_windows(1, seed=number))
    return FileNames(store)


@pytest.mark.parametrize(
    "query, found",
    [
        ("VID_2085", ["VID_2085.mp4"]),
        ("vid 2085", ["VID_2085.mp4"]),
        ("2085", ["VID_2085.mp4"]),
        ("VID_2085.mp4", ["VID_2085.mp4"]),
        ("vid", ["VID_2085.mp4", "VID_2086.mp4"]),
        ("beach", ["beach", "2019/Urlaub Ostsee/beach volley.mp4"]),  # a folder once, not its films
        ("the beach in 2019", ["2019/Urlaub Ostsee/beach volley.mp4"]),
        ("a dog on a beach", ["beach/dog.mp4"]),
        ("dog", ["beach/dog.mp4", "dogs and cats.mkv"]),
        ("cat", ["dogs and cats.mkv"]),
        ("arzte", ["2019/Ärzte live"]),
        ("ÄRZTE LIVE", ["2019/Ärzte live"]),
        ("bergstrasse", ["Bergstraße"]),
        ("FUß", ["Bergstraße/Fuß.mp4"]),
        ("car", []),  # not carnival
        ("a red car on a street", []),
        ("7", []),  # too little
        ("street 7", ["street 7"]),
        ("mp4", []),
        ("s01e02", ["Show.S01E02.mkv"]),  # not S01E01
        ("the show s01e1", []),
        ("S1E2", []),
        ("gopr0123", ["2019/Ärzte live/GOPR0123.MP4"]),
        ("vid2085", ["VID_2085.mp4"]),
        ("films", []),  # the folder that all are in
        ("the and", []),
        ("", []),
        ("(.*", []),
        ("%", []),
    ],
)
def test_names_with_all_words_of_a_query(names, query, found):
    shown, number = names.matches(query, None)
    assert [str(name.path.relative_to(TOP)) for name in shown] == found
    assert number == len(found)


def test_folders_say_how_many_videos_they_hold(names):
    (folder, video), _ = names.matches("beach", None)
    assert (folder.videos, folder.mark, folder.to_dict()["id"]) == (2, "/ (2 videos)", None)
    assert (video.videos, len(video.to_dict()["id"])) == (None, 32)
    assert video.mark == " (not there now)"


def test_a_folder_stands_for_those_in_it(tmp_path):
    store = make_store(tmp_path / "db")
    for number, path in enumerate(["2023/a.mp4", "2023/b/c.mp4", "2023/b/d/e.mp4", "f/2023/g.mp4"]):
        store.write(record(TOP / path), random_windows(1, seed=number))
    store.write(record(TOP / "other.mp4"), random_windows(1, seed=4))
    shown, number = FileNames(store).matches("2023", None)
    assert [(one.path, one.videos) for one in shown] == [(TOP / "2023", 3), (TOP / "f" / "2023", 1)]
    assert number == 2


def test_only_the_videos_that_are_searched_count(names):
    assert names.matches("dog", TOP / "beach")[1] == 1
    chosen = VideoSet(ids=frozenset({record(TOP / "dogs and cats.mkv").id}), words="chosen")
    assert [name.path.name for name in names.matches("dog", chosen)[0]] == ["dogs and cats.mkv"]


def test_the_first_five_are_shown_of_many(tmp_path):
    store = make_store(tmp_path / "db")
    for number in range(12):
        name = "other.mp4" if number > 8 else f"match {number}.mp4"
        store.write(record(TOP / str(number) / name), random_windows(1, seed=number))
    shown, number = FileNames(store).matches("match", None)
    assert (len(shown), number) == (5, 9)


def test_names_follow_the_index(tmp_path):
    store = make_store(tmp_path / "db")
    names = FileNames(store)
    assert names.matches("holiday", None) == ((), 0)
    assert not names.has("holiday")
    for number, name in enumerate(["holiday.mp4", "work.mp4"]):
        Store.open(store.location).write(record(TOP / name), random_windows(1, seed=number))
    assert names.matches("holiday", None)[1] == 1
    assert names.has("Holiday")
    store.remove(list(store.at([absolute(TOP / "holiday.mp4")]).values()))
    assert names.matches("holiday", None)[1] == 0


def test_names_may_be_asked_for_while_another_thread_reads_them(tmp_path, monkeypatch):
    store = make_store(tmp_path / "db")
    for number, name in enumerate(["match.mp4", "other.mp4"]):
        store.write(record(TOP / name), random_windows(1, seed=number))
    names, whole, found = FileNames(store), pc.replace_substring_regex, []

    def asked_meanwhile(*arguments):
        if not found:
            found.append(None)
            with ThreadPoolExecutor() as pool:
                found.append(pool.submit(names.matches, "match", None).result())
        return whole(*arguments)

    monkeypatch.setattr(pc, "replace_substring_regex", asked_meanwhile)
    assert names.matches("match", None) == found[1] and found[1][1] == 1


def test_damage_to_the_table_of_videos_costs_only_names(tmp_path):
    for number in range(2):
        folder = record(TOP / f"VID_{number}085.mp4")
        make_store(tmp_path).write(folder, random_windows(1, seed=number))
    files = sorted((tmp_path / "videos.lance" / "data").iterdir())
    (damaged,) = [file for file in files if b"VID_1085" in file.read_bytes()]
    damaged.write_bytes(damaged.read_bytes().replace(b"VID_1085", b"VID_3085"))
    names = FileNames(Store.open(tmp_path))
    assert names.matches("VID_3085", None) == ((), 0)
    assert names.matches("VID_0085", None)[1] == 1
    for file in files:
        file.unlink()
    assert FileNames(Store.open(tmp_path)).matches("VID_0085", None) == ((), 0)
