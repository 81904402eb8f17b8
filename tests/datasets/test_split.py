"""The value every reader gives: its tables agree, and parts of it stay honest."""

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sureshot.datasets.split import Caption, Item, Listing, Split, check_disjoint, to_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told


def split(captions, missing=(), folder="/v", **more):
    """A split from the texts of each id."""
    items = tuple(Item(name, Path(folder, f"{name}.mp4")) for name in captions)
    texts = tuple(Caption(t, i) for i, own in enumerate(captions.values()) for t in own)
    values = {"dataset": "msrvtt", "name": "test", "protocol": "1k-A"} | more
    return Split(**values, items=items, captions=texts, missing=tuple(missing))


THREE = {"a": ["one", "two"], "b": ["three"], "c": ["one"]}


def test_the_tables_of_a_split_agree():
    three = split(THREE)
    assert three.texts() == ["one", "two", "three", "one"]
    assert three.by_video() == [[0, 1], [2], [3]]
    assert three.owner().tolist() == [0, 0, 1, 2] and three.owner().dtype == np.int64
    assert split({}).owner().shape == (0,)


def test_captions_of_a_video_need_not_stand_together():
    items = (Item("a", Path("a")), Item("b", Path("b")))
    captions = (Caption("x", 1), Caption("y", 0), Caption("z", 1))
    mixed = Split("msvd", "test", "multi-caption", items, captions)
    assert mixed.by_video() == [[1], [0, 2]]
    assert told(mixed.part(["b"])) == {"b": ["x", "z"]}


@pytest.mark.parametrize(
    ("more", "title"),
    [
        ({"expected": 3}, "MSR-VTT 1k-A test, 3 videos, 4 captions"),
        ({"expected": 1000}, "MSR-VTT 1k-A test, 3 of 1000 videos, 4 captions"),
        ({"expected": 2}, "MSR-VTT 1k-A test, 3 videos, 4 captions"),
        ({"missing": ["d", "e"]}, "MSR-VTT 1k-A test, 3 of 5 videos, 4 captions"),
        ({"dataset": "flickr8k"}, "Flickr8k 1k-A test, 3 photos, 4 captions"),
        ({"dataset": "pairs", "protocol": "my.csv"}, "pairs my.csv test, 3 videos, 4 captions"),
        ({"label": "1k-A frame subset"}, "MSR-VTT 1k-A frame subset (3)"),
        ({"label": "subset", "name": "val"}, "MSR-VTT subset val (3)"),
    ],
)
def test_a_title_says_how_much_of_the_published_split_this_is(more, title):
    assert split(THREE, **more).title() == title


def test_a_part_keeps_order_and_captions_and_counts_itself():
    part = split(THREE, missing=["d", "e"], expected=9, label="mine").part(["c", "e", "a"])
    assert told(part) == {"a": ["one", "two"], "c": ["one"]}
    assert (part.missing, part.expected, part.title()) == (("e",), 9, "MSR-VTT mine (2)")


@given(st.sets(st.integers(0, 9), min_size=1), st.lists(st.integers(0, 9), max_size=30))
def test_a_part_is_the_captions_of_its_videos(chosen, more):
    owners = [*range(10), *more]
    items = tuple(Item(str(i), Path(f"{i}.mp4")) for i in range(10))
    captions = tuple(Caption(f"{row}", video) for row, video in enumerate(owners))
    part = Split("msvd", "test", "x", items, captions).part({str(i) for i in chosen})
    assert [item.id for item in part.items] == [str(i) for i in range(10) if i in chosen]
    expected = [(str(row), str(video)) for row, video in enumerate(owners) if video in chosen]
    assert [(c.text, part.items[c.video].id) for c in part.captions] == expected


@pytest.mark.parametrize(
    ("ids", "reason"),
    [(["a", "y", "x"], "3 of 4 videos, 4 captions has no video x, y;"), (["d"], "would be left")],
)
def test_a_part_of_unknown_videos_or_of_none_is_refused(ids, reason):
    with pytest.raises(SureshotError, match=reason):
        split(THREE, missing=["d"]).part(ids)


def test_a_shared_id_is_named_wherever_the_file_is():
    check_disjoint(split(THREE, name="train"), split({"d": ["x"]}))
    train = split(THREE, name="train", folder="/elsewhere")
    with pytest.raises(SureshotError, match=r"train, 3 .* test, 2 .* share 1 videos: b\. "):
        check_disjoint(train, split({"b": ["x"], "d": ["y"]}))


def test_of_many_shared_videos_the_first_are_named():
    many = split({f"v{i}": ["x"] for i in range(7)})
    with pytest.raises(SureshotError, match="share 7 videos: v0, v1, v2, v3, v4 and 2 more"):
        check_disjoint(many, many)


def test_the_same_id_in_another_data_set_is_another_video():
    check_disjoint(split(THREE, dataset="msvd", folder="/w"), split(THREE))
    own = {"dataset": "pairs"}
    check_disjoint(split(THREE, folder="/w", **own), split(THREE, **own))


def test_one_file_under_two_ids_is_shared(tmp_path):
    films(tmp_path, "a.mp4", "b.mp4")
    (tmp_path / "copy.mp4").symlink_to(tmp_path / "a.mp4")
    train = split({"a": ["x"], "b": ["y"]}, folder=tmp_path, dataset="msvd", name="train")
    with pytest.raises(SureshotError, match=r"1 videos: copy \(the same file as a\)"):
        check_disjoint(train, split({"copy": ["x"]}, folder=tmp_path))
    train = split({"copy": ["x"]}, folder=tmp_path, dataset="msvd", name="train")
    with pytest.raises(SureshotError, match=r"1 videos: a \(the same file as copy\)"):
        check_disjoint(train, split({"a": ["x"], "b": ["y"]}, folder=tmp_path))


def test_two_parts_of_one_file_are_shared():
    def part(start, end):
        item = Item(f"a#{start}", Path("/v/a.mp4"), start, end)
        return Split("pairs", "test", "my.csv", (item,), (Caption("x", 0),))

    with pytest.raises(SureshotError, match="share 1 videos"):
        check_disjoint(part(0.0, 5.0), part(20.0, 30.0))


def listing(captions, **more):
    return Listing("paragraph", captions, **more)


def test_empty_captions_of_the_videos_found_are_dropped_and_counted(tmp_path):
    films(tmp_path, "a.mp4", "b.mp4")
    captions = {"a": [" x ", "", " \n"], "b": [""], "gone": ["", ""]}
    split = to_split(listing(captions), "msvd", "test", [tmp_path])
    assert told(split) == {"a": ["x"]}
    assert (split.dropped, split.missing) == (3, ("b", "gone"))


@pytest.mark.parametrize(
    ("captions", "reason"),
    [
        ({"a": [], "b": ["x"]}, "None of the 1 videos found for msvd test has a"),
        ({}, "msvd test lists no video"),
    ],
)
def test_nothing_that_can_be_used_is_an_error(tmp_path, captions, reason):
    with pytest.raises(SureshotError, match=reason):
        to_split(listing(captions), "msvd", "test", [films(tmp_path, "a.mp4")])


def test_only_the_videos_of_a_file_in_the_order_of_the_split(tmp_path):
    whole = listing({"a": ["x"], "b": ["y"], "c": ["z"]}, names={"a": ("v_a", "a.mov")}, expected=3)
    part = whole.only(put(tmp_path / "ids.txt", "c\nv_a\nc"))
    assert list(part.captions.items()) == [("a", ["x"]), ("c", ["z"])]
    assert (part.expected, part.names) == (3, whole.names)


@pytest.mark.parametrize(
    ("ids", "reason"), [("a\nx\ny\n", "names 2 of 3 videos .* the first x;"), ("\n", "is empty")]
)
def test_ids_of_another_split_and_no_ids_are_refused(tmp_path, ids, reason):
    with pytest.raises(SureshotError, match=rf"ids\.txt {reason}"):
        listing({"a": ["x"]}).only(put(tmp_path / "ids.txt", ids))
