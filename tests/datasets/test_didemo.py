"""DiDeMo: paragraphs in the order of the file, ids whatever their extension."""

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, frames, put, told

ONE, TWO, GONE = "12090392@N02_13482799053_87ef417396", "1@N07_2_3a", "9@N07_9_9f"
DESCRIPTIONS = [
    (f"{ONE}.mov", "a child runs"),
    (f"{TWO}.MP4", "the boat turns. "),
    (f"{GONE}.avi", "nothing"),
    (f"{ONE}.mov", ""),
    (f"{ONE}.mov", " the child falls"),
    ("other@N1_1_1.avi", "another split"),
    (f"{ONE}.mov", "a child runs"),
]
TEXTS = {TWO: ["the boat turns."], ONE: ["a child runs the child falls a child runs"]}


@pytest.fixture
def root(tmp_path):
    films(tmp_path / "videos", f"{ONE}.mp4", f"{TWO}.MP4.mp4", "other@N1_1_1.avi")
    moments = [
        {
            "annotation_id": number,
            "video": video,
            "description": text,
            "times": [[0, 0], [0, 1]],
            "num_segments": 6,
        }
        for number, (video, text) in enumerate(DESCRIPTIONS)
    ]
    put(tmp_path / "test_data.json", moments)
    return tmp_path


@pytest.mark.parametrize("suffixes", [(".MP4", ".mov", ".avi"), ("", "", "")])
def test_descriptions_become_a_paragraph_of_the_first_thirty_seconds(root, suffixes):
    listed = [name + suffix for name, suffix in zip((TWO, ONE, GONE), suffixes, strict=True)]
    put(root / "test_list.txt", "\n".join(listed))
    test = load_split("didemo", "test", root)
    assert told(test) == TEXTS
    assert [item.path.name for item in test.items] == [f"{TWO}.MP4.mp4", f"{ONE}.mp4"]
    assert {(item.start, item.end) for item in test.items} == {(0.0, 30.0)}
    assert (test.missing, test.expected, test.dropped) == ((GONE,), 1004, 0)
    assert test.title() == "DiDeMo paragraph test, 2 of 1004 videos, 2 captions"


def test_a_file_may_keep_the_extension_of_either_spelling(root):
    put(root / "test_list.txt", f"{GONE}.m4v\n{TWO}.3gp")
    films(root / "videos", f"{GONE}.m4v.mp4")
    test = load_split("didemo", "test", root)
    assert [item.path.name for item in test.items] == [f"{GONE}.m4v.mp4", f"{TWO}.MP4.mp4"]


def test_folders_of_frames_are_refused_as_their_seconds_are_not_known(root):
    (root / "videos" / f"{ONE}.mp4").unlink()
    frames(root / "videos" / ONE)
    with pytest.raises(SureshotError, match=r"is a folder of frames, .* only 0 to 30 s count"):
        load_split("didemo", "test", root)


def test_without_a_list_all_described_videos_count(root):
    assert list(told(load_split("didemo", "test", root))) == [ONE, TWO, "other@N1_1_1"]


@pytest.mark.parametrize("spelled", [ONE, f"{ONE}.mov"])
def test_ids_to_restrict_it_need_no_extension(root, spelled):
    ids = put(root / "ids.txt", spelled)
    assert list(told(load_split("didemo", "test", root, ids=ids))) == [ONE]


def test_the_table_with_paragraphs_is_read_by_the_places_of_its_columns(root):
    (root / "test_data.json").unlink()
    put(
        root / "didemo_test_label.csv",
        "ok,where,from,to,text,pth\r\n"
        f'True,/data/didemo/{TWO}.MP4,"tensor([0])","tensor([31])",the boat turns.,x_1.pth\r\n'
        f'True,/data/didemo/{ONE}.mov,0,31,"a child runs, falls",x_2.pth',
    )
    test = load_split("didemo", "test", root)
    assert told(test) == {TWO: ["the boat turns."], ONE: ["a child runs, falls"]}
    assert test.items[0].end == 30.0
