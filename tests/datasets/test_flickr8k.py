"""Flickr8k: photos, listed with another extension if need be; the real one where it is."""

import re

import pytest

from sureshot.datasets import check_disjoint, load_split
from sureshot.errors import SureshotError
from tests.datasets.files import data, films, put, told

CAPTIONS = (
    'image,caption\r\n1_a.jpg,A dog .\r\n2_b.jpg,A cat .\r\n1_a.jpg,"A dog , running ."\r\n'
    "3_c.jpg,Gone .\r\n2_b.jpg,\r\n9_z.jpg,Another split ."
)


@pytest.mark.parametrize(
    ("table", "listed", "suffix"),
    [
        ("captions.csv", "split_val.txt", ".jpg"),
        ("captions.txt", "Flickr_8k.devImages.txt", ".webp"),
    ],
)
def test_photos_are_videos_of_one_frame(tmp_path, table, listed, suffix):
    put(tmp_path / table, CAPTIONS)
    put(tmp_path / listed, f"2_b{suffix}\n1_a{suffix}\n3_c{suffix}")
    films(tmp_path / "images", "1_a.webp", "2_b.JPG", "9_z.jpg")
    val = load_split("flickr8k", "val", tmp_path)
    assert told(val) == {
        f"2_b{suffix}": ["A cat ."],
        f"1_a{suffix}": ["A dog .", "A dog , running ."],
    }
    assert (val.missing, val.dropped, val.expected) == ((f"3_c{suffix}",), 1, 1000)
    assert val.title() == "Flickr8k multi-caption val, 2 of 1000 photos, 3 captions"


TOKENS = (
    "1_a.jpg#0\tA dog .\n1_a.jpg#1\tA dog , running # 1 .\n2_b.jpg#0\tA cat .\n2_b.jpg#1\t\n"
    "3_c.jpg#0\tGone .\n2258277193_586949ec62.jpg.1#0\tA name of the official file .\n"
)
KARPATHY = {
    "images": [
        {
            "sentids": [2 * number, 2 * number + 1],
            "imgid": number,
            "sentences": [
                {"tokens": raw.lower().split(), "raw": raw, "imgid": number, "sentid": place}
                for place, raw in enumerate(raws)
            ],
            "split": part,
            "filename": name,
        }
        for number, (name, part, raws) in enumerate(
            [
                ("2_b.jpg", "val", ["A cat .", ""]),
                ("9_z.jpg", "train", ["Another split ."]),
                ("1_a.jpg", "val", ["A dog .", "A dog , running # 1 ."]),
                ("3_c.jpg", "val", ["Gone ."]),
            ]
        )
    ],
    "dataset": "flickr8k",
}
TEXTS = {"2_b.jpg": ["A cat ."], "1_a.jpg": ["A dog .", "A dog , running # 1 ."]}


def official(root, folder=""):
    put(root / folder / "Flickr8k.token.txt", TOKENS)
    put(root / folder / "Flickr_8k.devImages.txt", "2_b.jpg\n1_a.jpg\n3_c.jpg\n")


def karpathy(root):
    put(root / "dataset_flickr8k.json", KARPATHY)


def sentences_of_one_and_splits_of_the_other(root):
    put(root / "Flickr8k.token.txt", TOKENS)
    karpathy(root)


@pytest.mark.parametrize(
    "write",
    [
        official,
        lambda root: official(root, "Flickr8k_text"),
        karpathy,
        sentences_of_one_and_splits_of_the_other,
    ],
)
def test_files_are_read_as_they_were_published(tmp_path, write):
    write(tmp_path)
    films(tmp_path / "Flicker8k_Dataset", "1_a.jpg", "2_b.jpg", "9_z.jpg")
    val = load_split("flickr8k", "val", tmp_path)
    assert told(val) == TEXTS
    assert (val.missing, val.dropped, val.expected) == (("3_c.jpg",), 1, 1000)


@pytest.mark.parametrize("line", ["1_a.jpg\tA dog .", "#0\tA dog ."])
def test_a_line_without_a_photo_and_a_number_is_shown(tmp_path, line):
    official(tmp_path)
    put(tmp_path / "Flickr8k.token.txt", f"{TOKENS}{line}\n")
    with pytest.raises(SureshotError, match=re.escape(repr(line)) + ".*should hold lines of PHOTO"):
        load_split("flickr8k", "val", tmp_path)


@pytest.mark.parametrize(
    "photo", [{"filename": "1_a.jpg"}, {"filename": "1_a.jpg", "split": "val", "sentences": [1]}]
)
def test_a_json_of_something_else_says_what_is_expected(tmp_path, photo):
    put(tmp_path / "dataset.json", {"images": [photo]})
    with pytest.raises(
        SureshotError, match=r'dataset\.json is not as .* should hold "images" with'
    ):
        load_split("flickr8k", "val", tmp_path)


@pytest.mark.slow
def test_the_real_one_has_five_captions_a_photo():
    folder = data("flickr8k")
    train, val, test = (load_split("flickr8k", s, folder) for s in ("train", "val", "test"))
    assert [len(s.items) for s in (train, val, test)] == [6000, 1000, 1000]
    assert [len(s.captions) for s in (train, val, test)] == [30000, 5000, 5000]
    assert not train.missing + val.missing + test.missing
    check_disjoint(train, test)
    check_disjoint(train, val)
    check_disjoint(val, test)
