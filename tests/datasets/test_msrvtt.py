"""MSR-VTT in the files the community has, its three protocols, and the real one where it is."""

import json

import pytest

from sureshot.datasets import check_disjoint, load_split
from sureshot.datasets.msrvtt import PROTOCOLS
from sureshot.errors import SureshotError
from tests.datasets.files import data, films, frames, put, told

# The sentences of video0 do not stand together; video3 has none; video9 has no file.
PARTS = {
    "video0": "train",
    "video1": "train",
    "video2": "validate",
    "video3": "train",
    "video7": "test",
    "video8": "test",
    "video9": "test",
}
SENTENCES = [
    ("video0", "a dog runs"),
    ("video7", "a cat sleeps"),
    ("video1", "a man talks "),
    ("video0", "a dog barks"),
    ("video2", "two cars race"),
    ("video9", "a bird"),
    ("video8", "rain falls"),
    ("video0", "a dog runs"),
    ("video8", ""),
    ("video7", "a cat dreams"),
]


@pytest.fixture
def root(tmp_path):
    put(
        tmp_path / "MSRVTT_data.json",
        {
            "info": {"description": "MSR-VTT"},
            "videos": [
                {
                    "video_id": name,
                    "url": "https://www.youtube.com/watch?v=9lZi22qLlEo",
                    "category": 9,
                    "start time": 137.72,
                    "end time": 149.44,
                    "split": part,
                    "id": int(name[5:]),
                }
                for name, part in PARTS.items()
            ],
            "sentences": [
                {"caption": text, "video_id": name, "sen_id": number}
                for number, (name, text) in enumerate(SENTENCES)
            ],
        },
    )
    put(tmp_path / "MSRVTT_train.9k.csv", "video_id\nvideo2\nvideo0\nvideo1\nvideo3\nvideo4")
    put(tmp_path / "MSRVTT_train.7k.csv", "video_id\nvideo1\nvideo2")
    put(
        tmp_path / "MSRVTT_JSFUSION_test.csv",
        'key,vid_key,video_id,sentence\nret0,msr9,video9,a bird\nret1,msr8,video8,"rain, falls"\n'
        "ret2,msr7,video7,a cat dreams",
    )
    names = (f"{name}.mp4" for name in PARTS if name not in ("video7", "video9"))
    films(tmp_path / "MSRVTT_Videos", *names)
    frames(tmp_path / "MSRVTT_Videos" / "video7")
    return tmp_path


@pytest.fixture
def official(root):
    """The same in the two official files, and the folders that their archives make."""
    whole = json.loads((root / "MSRVTT_data.json").read_text())
    (root / "MSRVTT_data.json").unlink()
    for name, parts in (
        ("train_val_annotation/train_val_videodatainfo.json", ("train", "validate")),
        ("test_videodatainfo.json", ("test",)),
    ):
        videos = [video for video in whole["videos"] if video["split"] in parts]
        ids = {video["video_id"] for video in videos}
        sentences = [one for one in whole["sentences"] if one["video_id"] in ids]
        put(root / name, {"info": whole["info"], "videos": videos, "sentences": sentences})
    (root / "MSRVTT_Videos").rename(root / "TrainValVideo")
    (root / "TestVideo").mkdir()
    for name in ("video7", "video8.mp4"):
        (root / "TrainValVideo" / name).rename(root / "TestVideo" / name)
    return root


def test_the_test_set_has_one_sentence_a_video_in_the_order_of_the_file(root):
    test = load_split("msrvtt", "test", root)
    assert told(test) == {"video8": ["rain, falls"], "video7": ["a cat dreams"]}
    assert test.missing == ("video9",)
    assert test.items[1].path == root / "MSRVTT_Videos" / "video7"
    assert test.title() == "MSR-VTT 1k-A test, 2 of 1000 videos, 2 captions"


def test_the_training_set_has_all_sentences_of_its_videos(root):
    train = load_split("msrvtt", "train", root)
    assert told(train) == {
        "video2": ["two cars race"],
        "video0": ["a dog runs", "a dog barks", "a dog runs"],
        "video1": ["a man talks"],
    }
    assert train.missing == ("video3", "video4")  # without a sentence; without a file
    assert train.title() == "MSR-VTT 1k-A 9k train, 3 of 9000 videos, 5 captions"
    check_disjoint(train, load_split("msrvtt", "test", root))


@pytest.mark.parametrize(
    ("protocol", "ids", "expected"),
    [
        ("1k-A", ["video2", "video0", "video1"], 9000),
        ("1k-A 9k", ["video2", "video0", "video1"], 9000),
        ("1k-A 7k", ["video1", "video2"], 7010),
        ("full", ["video0", "video1"], 6513),
    ],
)
def test_each_protocol_trains_on_its_videos(root, protocol, ids, expected):
    train = load_split("msrvtt", "train", root, protocol=protocol)
    assert ([item.id for item in train.items], train.expected) == (ids, expected)


def test_the_full_protocol_takes_the_official_split_of_the_json(root):
    test = load_split("msrvtt", "test", root, protocol="full")
    assert told(test) == {"video7": ["a cat sleeps", "a cat dreams"], "video8": ["rain falls"]}
    assert (test.dropped, test.missing, test.expected) == (1, ("video9",), 2990)
    assert test.title() == "MSR-VTT full multi-caption test, 2 of 2990 videos, 3 captions"
    val = load_split("msrvtt", "val", root, protocol="full")
    assert (told(val), val.expected) == ({"video2": ["two cars race"]}, 497)
    put(root / "MSRVTT_val.full.csv", "video_id\nvideo1\n")
    assert told(load_split("msrvtt", "val", root, protocol="full")) == {"video1": ["a man talks"]}


@pytest.mark.parametrize(
    ("split", "protocol", "names"),
    [
        ("train", "1k-A", ("MSRVTT_train.9k.csv", "MSRVTT_train.9000.csv")),
        ("train", "1k-A 7k", ("MSRVTT_train.7k.csv", "MSRVTT_train.7010.csv")),
        ("test", "1k-A", ("MSRVTT_JSFUSION_test.csv", "MSRVTT_test.1000.csv")),
    ],
)
def test_files_may_have_either_name(root, split, protocol, names):
    before = load_split("msrvtt", split, root, protocol=protocol)
    (root / names[0]).rename(root / names[1])
    assert load_split("msrvtt", split, root, protocol=protocol) == before
    (root / names[1]).unlink()
    with pytest.raises(SureshotError, match=f"has no {names[0]} or {names[1]}"):
        load_split("msrvtt", split, root, protocol=protocol)


def test_there_is_no_validation_set_and_the_error_says_what_to_do(root):
    with pytest.raises(SureshotError, match=r"1k-A has no validation set\. .* give it as ids"):
        load_split("msrvtt", "val", root)
    assert [bool(reason) for reason in PROTOCOLS.values()] == [True, True, True, False]


def test_a_validation_set_is_held_out_of_the_training_set(root):
    ids = put(root / "val.txt", "video0\nvideo2\n")
    val = load_split("msrvtt", "val", root, ids=ids)
    assert told(val)["video0"] == ["a dog runs", "a dog barks", "a dog runs"]
    assert val.title() == "MSR-VTT 1k-A 9k val, 2 videos, 4 captions"
    with pytest.raises(SureshotError, match="share 2 videos: video0, video2"):
        check_disjoint(load_split("msrvtt", "train", root), val)
    with pytest.raises(SureshotError, match=r"not in this split, the first video8"):
        load_split("msrvtt", "val", root, ids=put(root / "val.txt", "video2\nvideo8\n"))


def test_a_json_of_something_else_says_what_is_expected(root):
    put(root / "MSRVTT_data.json", {"videos": [{"id": 1}]})
    with pytest.raises(SureshotError, match=r'KeyError: \'video_id\'.* should hold "videos" with'):
        load_split("msrvtt", "train", root)


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("split", ["train", "test"])
def test_the_two_official_files_say_the_same(root, request, protocol, split):
    put(root / "MSRVTT_train.9k.csv", "video_id\nvideo2\nvideo8\nvideo3\nvideo4")
    before = load_split("msrvtt", split, root, protocol=protocol)
    root = request.getfixturevalue("official")
    after = load_split("msrvtt", split, root, protocol=protocol)
    assert (told(after), after.missing) == (told(before), before.missing)


def test_both_official_files_are_needed_wherever_they_lie(official):
    folder = official / "train_val_annotation"
    (folder / "train_val_videodatainfo.json").rename(official / "train_val_videodatainfo.json")
    val = load_split("msrvtt", "val", official, protocol="full")
    assert told(val) == {"video2": ["two cars race"]}
    (official / "test_videodatainfo.json").unlink()
    with pytest.raises(
        SureshotError, match=r"has no MSRVTT_data\.json or test_videodatainfo\.json"
    ):
        load_split("msrvtt", "train", official)


# The real one


@pytest.mark.parametrize(
    ("split", "ids", "videos", "captions"),
    [
        ("train", "split_train", 4107, 82140),
        ("val", "split_val", 244, 4880),
        ("test", "split_test", 476, 476),
        ("test", "split_test_unshared", 348, 348),
    ],
)
def test_our_splits_of_the_real_one(split, ids, videos, captions):
    folder = data("msrvtt")
    ours = load_split("msrvtt", split, folder, ids=folder / f"{ids}.txt", label="1k-A frame subset")
    assert (len(ours.items), len(ours.captions), ours.dropped) == (videos, captions, 0)
    assert ours.missing == ()
    name = "" if split == "test" else f" {split}"
    assert ours.title() == f"MSR-VTT 1k-A frame subset{name} ({videos})"


@pytest.mark.slow
def test_of_the_real_one_all_sentences_are_read_and_half_the_videos_are_missing():
    folder = data("msrvtt")
    full = [load_split("msrvtt", s, folder, protocol="full") for s in ("train", "val", "test")]
    assert sum(len(split.captions) for split in full) == 96_540
    test = load_split("msrvtt", "test", folder)
    assert test.title() == "MSR-VTT 1k-A test, 476 of 1000 videos, 476 captions"
    assert len(test.missing) == 524
    train = load_split("msrvtt", "train", folder)
    check_disjoint(train, test)
    with pytest.raises(SureshotError, match="share 956 videos"):
        check_disjoint(train, full[2])
