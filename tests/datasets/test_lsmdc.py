"""LSMDC: tabs, ids full of dots, clips that are described twice."""

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told

CLIPS = [f"0001_American_Beauty_00.00.51.{n}-00.00.54.{n}" for n in (926, 927, 928, 929)]
TIMES = "00.00.51.926\t00.00.54.129\t00.00.51.426\t00.00.54.629"


def line(clip, text):
    return f"{clip}\t{TIMES}\t{text}"


@pytest.fixture
def root(tmp_path):
    first, second, third, gone = CLIPS
    lines = [
        line(first, 'SOMEONE says "no" and leaves.'),
        line(second, "A car,\tred."),
        line(gone, "Nothing."),
        line(first, "The door shuts."),
        line(third, ""),
        '"' + line(second, 'A ""red"" car."'),
    ]
    put(tmp_path / "LSMDC16_annos_training.csv", "\n".join(lines))
    put(tmp_path / "LSMDC16_challenge_1000_publictect.csv", line(second, "A car.") + "\r\n")
    films(tmp_path / "0001_American_Beauty", *(f"{clip}.avi" for clip in CLIPS[:3]))
    return tmp_path


def test_a_repeated_clip_keeps_all_its_sentences(root):
    train = load_split("lsmdc", "train", root)
    assert told(train) == {
        CLIPS[0]: ['SOMEONE says "no" and leaves.', "The door shuts."],
        CLIPS[1]: ["A car,\tred.", 'A "red" car.'],
    }
    assert (train.missing, train.dropped, train.expected) == ((CLIPS[3], CLIPS[2]), 1, 101077)
    # Of 101,079 published annotations two are of clips that have one already.
    assert train.title() == "LSMDC all sentences train, 2 of 101077 videos, 4 captions"


def test_or_the_last_one_alone(root):
    train = load_split("lsmdc", "train", root, protocol="last")
    assert told(train) == {CLIPS[0]: ["The door shuts."], CLIPS[1]: ['A "red" car.']}
    assert train.protocol == "last sentence"


def test_the_test_set_is_a_file_of_its_own(root):
    test = load_split("lsmdc", "test", root)
    assert (told(test), test.expected) == ({CLIPS[1]: ["A car."]}, 1000)
    with pytest.raises(SureshotError, match=r"has no LSMDC16_annos_val\.csv"):
        load_split("lsmdc", "val", root)


def test_a_line_with_other_fields_is_named(root):
    put(root / "LSMDC16_annos_val.csv", line(CLIPS[0], "x") + "\nclip\tx, y")
    with pytest.raises(SureshotError, match=r"val\.csv, annotation 2 has 2 fields separated by"):
        load_split("lsmdc", "val", root)
