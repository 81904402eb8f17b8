"""ActivityNet: paragraphs, and ids that lose their first two letters."""

import math

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, frames, put, told

TEXTS = {"QOlSCBRmfWY": ["A woman dances. She stops."], "_-v_x": ["Rain. Rain."]}


@pytest.fixture
def root(tmp_path):
    def described(*sentences):
        times = [[0.0, 9.5] for _ in sentences]
        return {"duration": math.nan, "timestamps": times, "sentences": list(sentences)}

    put(
        tmp_path / "val_1.json",
        {
            "v__-v_x": described("Rain.", "", " Rain."),
            "v_QOlSCBRmfWY": described("A woman dances.", " She stops. "),
            "v_gone": described("Nothing."),
            "v_unlisted": described("Another."),
        },
    )
    put(tmp_path / "val_ids.json", ["v_QOlSCBRmfWY", "v__-v_x", "v_gone"])
    put(tmp_path / "train.json", {"v_unlisted": described("Another.")})
    films(tmp_path / "videos", "v_QOlSCBRmfWY.mkv", "unlisted.mp4")
    frames(tmp_path / "videos" / "_-v_x")
    return tmp_path


@pytest.mark.parametrize("prefix", ["v_", ""])
def test_sentences_become_a_paragraph_and_names_may_lack_the_prefix(root, prefix):
    put(root / "val_ids.json", [prefix + name for name in ("QOlSCBRmfWY", "_-v_x", "gone")])
    test = load_split("activitynet", "test", root)
    assert told(test) == TEXTS
    assert [item.path.name for item in test.items] == ["v_QOlSCBRmfWY.mkv", "_-v_x"]
    assert (test.items[0].start, test.items[0].end) == (None, None)
    assert (test.missing, test.expected) == (("gone",), 4917)
    assert test.title() == "ActivityNet paragraph val1 test, 2 of 4917 videos, 2 captions"


def test_without_a_list_all_described_videos_count(root):
    train = load_split("activitynet", "train", root)
    assert (told(train), train.expected) == ({"unlisted": ["Another."]}, 10009)
    assert train.protocol == "paragraph"


def test_val1_is_the_test_set(root):
    with pytest.raises(SureshotError, match="val1 is what papers report results on: ask for the"):
        load_split("activitynet", "val", root)
    for spelled in ("unlisted", "v_unlisted"):
        val = load_split("activitynet", "val", root, ids=put(root / "val.txt", spelled))
        assert told(val) == {"unlisted": ["Another."]}


def test_other_contents_say_what_is_expected(root):
    put(root / "val_1.json", {"v_a": {"sentences": "A text."}})
    with pytest.raises(SureshotError, match=r"val_1\.json is not as expected .* an id and its"):
        load_split("activitynet", "test", root)
    put(root / "val_1.json", {})
    put(root / "val_ids.json", {"v_a": 1})
    with pytest.raises(SureshotError, match=r"val_ids\.json is not as expected .* a list of ids"):
        load_split("activitynet", "test", root)
