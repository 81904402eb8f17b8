"""MSVD: words that become sentences, and a pickle that is not trusted."""

import pickle
from collections import OrderedDict, defaultdict

import pytest

from sureshot.datasets import load_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told

WORDS = {
    "mv89psg6zh4_33_46": [["a", "bird", "sings"], ["a", "parrot", "in", "a", "sink"]],
    "-4wsuPCjDBc_5_15": [["a", "squirrel", "eats"], [], ["a", "squirrel", "eats"]],
    "gone_1_2": [["nobody"]],
    "other_1_2": [["another", "split"]],
}
TEXTS = {
    "-4wsuPCjDBc_5_15": ["a squirrel eats", "a squirrel eats"],
    "mv89psg6zh4_33_46": ["a bird sings", "a parrot in a sink"],
}


@pytest.fixture
def root(tmp_path):
    put(tmp_path / "test_list.txt", "-4wsuPCjDBc_5_15\nmv89psg6zh4_33_46\ngone_1_2")
    films(tmp_path / "YouTubeClips", "-4wsuPCjDBc_5_15.avi", "mv89psg6zh4_33_46.avi", "x.avi")
    return tmp_path


def pickled(root, value, protocol=None):
    (root / "raw-captions.pkl").write_bytes(pickle.dumps(value, protocol))


def test_words_are_joined_and_every_sentence_counts(root):
    pickled(root, WORDS)
    test = load_split("msvd", "test", root)
    assert told(test) == TEXTS
    assert (test.missing, test.dropped, test.expected) == (("gone_1_2",), 1, 670)
    assert test.title() == "MSVD multi-caption test, 2 of 670 videos, 4 captions"


@pytest.mark.parametrize("ending", ["", ".avi", ".npy"])
def test_the_json_says_the_same_and_lists_may_name_files(root, ending):
    names = (root / "test_list.txt").read_text().split()
    put(root / "test_list.txt", "\n".join(name + ending for name in names))
    texts = {name: [" ".join(words) for words in own] for name, own in WORDS.items()}
    put(root / "captions_msvd.json", texts)
    assert told(load_split("msvd", "test", root)) == TEXTS


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_any_protocol_of_pickle_is_read(root, protocol):
    odd = [b"bytes", {1}, frozenset({2.5}), 1j, bytearray(b"x"), OrderedDict(a=1)]
    pickled(root, defaultdict(list, {**WORDS, "more": odd}), protocol)
    assert told(load_split("msvd", "test", root)) == TEXTS


def test_a_pickle_of_python_2_is_read(root):
    put(root / "test_list.txt", "mv1_0_1")
    films(root / "YouTubeClips", "mv1_0_1.avi")
    # {'mv1_0_1': [['caf\xc3\xa9']]} with byte strings, as Python 2 wrote it
    text = b"\x80\x02}q\x00U\x07mv1_0_1q\x01]q\x02]q\x03U\x05caf\xc3\xa9q\x04aas."
    (root / "raw-captions.pkl").write_bytes(text)
    assert told(load_split("msvd", "test", root)) == {"mv1_0_1": ["café"]}


@pytest.mark.parametrize("value", [[1, 2], {"gone_1_2": "a sentence"}, {"gone_1_2": [[1]]}])
def test_other_contents_say_what_is_expected(root, value):
    pickled(root, value)
    with pytest.raises(SureshotError, match="it should hold a list of sentences for each id"):
        load_split("msvd", "test", root)


def test_missing_files_are_named(root):
    with pytest.raises(SureshotError, match=r"has no raw-captions\.pkl or captions_msvd\.json"):
        load_split("msvd", "test", root)
    with pytest.raises(SureshotError, match=r"has no val_list\.txt"):
        load_split("msvd", "val", root)
