"""Flickr8k: photos, listed with another extension if need be; the real one where it is."""

import pytest

from sureshot.datasets import check_disjoint, load_split
from tests.datasets.files import data, films, put, told

CAPTIONS = (
    'image,caption\r\n1_a.jpg,A dog .\r\n2_b.jpg,A cat .\r\n1_a.jpg,"A dog , running ."\r\n'
    "3_c.jpg,Gone .\r\n2_b.jpg,\r\n9_z.jpg,Another split ."
)


@pytest.mark.parametrize("table", ["captions.csv", "captions.txt"])
@pytest.mark.parametrize("listed", ["split_val.txt", "Flickr_8k.devImages.txt"])
@pytest.mark.parametrize("suffix", [".jpg", ".webp"])
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


def test_the_real_one_has_five_captions_a_photo():
    folder = data("flickr8k")
    train, val, test = (load_split("flickr8k", s, folder) for s in ("train", "val", "test"))
    assert [len(s.items) for s in (train, val, test)] == [6000, 1000, 1000]
    assert [len(s.captions) for s in (train, val, test)] == [30000, 5000, 5000]
    assert not train.missing + val.missing + test.missing
    check_disjoint(train, test)
    check_disjoint(train, val)
    check_disjoint(val, test)
