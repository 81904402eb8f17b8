"""VATEX: three forms of its sentences, two test sets, never one text out of ten."""

import math

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told

ONE, TWO, GONE = "Ptf_2VRj-V0_000122_000132", "-abc_000001_000011", "gone_000001_000011"
SENTENCES = {ONE: ["A man climbs.", "A wall is climbed."], TWO: ["Rain."], GONE: ["Nothing."]}
TEXTS = {TWO: ["Rain."], ONE: ["A man climbs.", "A wall is climbed."]}


@pytest.fixture
def root(tmp_path):
    put(tmp_path / "test_list.txt", f"{TWO}\n{ONE}\n{GONE}")
    films(tmp_path / "videos", f"{ONE}.mp4", f"{TWO}.webm")
    return tmp_path


def official(root, name, ids):
    put(root / name, [{"videoID": i, "enCap": SENTENCES[i], "chCap": ["雨"]} for i in ids])


def with_chinese(root):
    put(
        root / "vatex_data.json",
        {name: {"enCap": own, "chCap": ["雨"]} for name, own in SENTENCES.items()},
    )


def lists(root):
    put(root / "ref_captions.json", SENTENCES)


def published(root):
    official(root, "vatex_training_v1.0.json", [TWO])
    official(root, "vatex_validation_v1.0.json", [ONE, GONE])


@pytest.mark.parametrize("write", [with_chinese, lists, published])
@pytest.mark.parametrize("ending", ["", ".npy"])
def test_each_form_gives_the_english_sentences_one_by_one(root, write, ending):
    write(root)
    put(root / "test_list.txt", "\n".join(name + ending for name in (TWO, ONE, GONE)))
    test = load_split("vatex", "test", root)
    assert told(test) == TEXTS
    assert (test.missing, test.expected) == ((GONE,), 1500)
    assert test.title() == "VATEX HGR multi-caption test, 2 of 1500 videos, 3 captions"


def test_the_random_test_set_is_another_protocol(root):
    lists(root)
    put(root / "test1k5_sec_list.txt", ONE)
    put(root / "val_list.txt", TWO)
    test = load_split("vatex", "test", root, protocol="CLIP2Video")
    assert test.title() == "VATEX CLIP2Video multi-caption test, 1 of 1500 videos, 2 captions"
    assert told(load_split("vatex", "val", root, protocol="CLIP2Video")) == {TWO: ["Rain."]}
    assert len(load_split("vatex", "test", root).items) == 2


def test_without_lists_the_training_set_is_the_official_file(root):
    published(root)
    train = load_split("vatex", "train", root)
    assert (told(train), train.expected) == ({TWO: ["Rain."]}, 25991)
    put(root / "train_list.txt", ONE)
    assert list(told(load_split("vatex", "train", root))) == [ONE]
    with pytest.raises(SureshotError, match=r"has no val_list\.txt"):
        load_split("vatex", "val", root)


def test_a_clip_may_be_called_by_its_youtube_id_alone(root):
    lists(root)
    (root / "videos" / f"{ONE}.mp4").rename(root / "videos" / "Ptf_2VRj-V0.mp4")
    test = load_split("vatex", "test", root)
    assert told(test) == TEXTS
    assert test.items[1].path == root / "videos" / "Ptf_2VRj-V0.mp4"
    ids = put(root / "ids.txt", "Ptf_2VRj-V0\n")
    assert list(told(load_split("vatex", "test", root, ids=ids))) == [ONE]


def test_a_youtube_id_that_two_clips_share_names_neither(root):
    other = "Ptf_2VRj-V0_000140_000150"
    put(root / "ref_captions.json", {**SENTENCES, other: ["A roof."]})
    put(root / "test_list.txt", f"{TWO}\n{ONE}\n{other}")
    (root / "videos" / f"{ONE}.mp4").rename(root / "videos" / "Ptf_2VRj-V0.mp4")
    test = load_split("vatex", "test", root)
    assert (list(told(test)), test.missing) == ([TWO], (ONE, other))


def test_a_text_in_place_of_sentences_is_refused(root):
    put(root / "ref_captions.json", {ONE: "A man climbs."})
    with pytest.raises(SureshotError, match=r"'A man climbs\.' is no list of texts"):
        load_split("vatex", "test", root)


@pytest.mark.parametrize("odd", [None, 7, math.nan])
def test_an_id_that_is_no_text_is_refused(root, odd):
    put(root / "vatex_training_v1.0.json", [{"videoID": odd, "enCap": ["Rain."]}])
    with pytest.raises(SureshotError, match=r"v1\.0\.json is not as expected"):
        load_split("vatex", "train", root)
