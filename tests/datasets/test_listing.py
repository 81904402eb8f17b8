"""From what an annotation says to what is on disk."""

import pytest

from sureshot.datasets.split import Listing, to_split
from sureshot.errors import SureshotError
from tests.datasets.files import films, put, told


def listing(captions, **more):
    return Listing("paragraph", captions, **more)


def test_what_is_found_is_a_split_and_the_rest_is_missing(tmp_path):
    films(tmp_path, "a.mp4", "c.avi", "e.mp4")
    captions = {"c": ["x", "x"], "b": ["y"], "a": [" z "], "e": []}
    split = to_split(
        listing(captions, expected=9, span=(0.0, 30.0)), "didemo", "test", [tmp_path], "mine"
    )
    assert told(split) == {"c": ["x", "x"], "a": ["z"]}
    assert [item.path.name for item in split.items] == ["c.avi", "a.mp4"]
    assert {(item.start, item.end) for item in split.items} == {(0.0, 30.0)}
    assert (split.dataset, split.name, split.protocol) == ("didemo", "test", "paragraph")
    assert (split.missing, split.expected, split.label) == (("b", "e"), 9, "mine")


def test_all_of_a_video_counts_unless_a_span_says_otherwise(tmp_path):
    split = to_split(listing({"a": ["x"]}), "msvd", "val", [films(tmp_path, "a.mp4")])
    assert (split.items[0].start, split.items[0].end, split.label) == (None, None, None)


def test_empty_captions_of_the_videos_found_are_dropped_and_counted(tmp_path):
    films(tmp_path, "a.mp4", "b.mp4")
    captions = {"a": ["x", "", " \n"], "b": [""], "gone": ["", ""]}
    split = to_split(listing(captions), "msvd", "test", [tmp_path])
    assert told(split) == {"a": ["x"]}
    assert (split.dropped, split.missing) == (3, ("b", "gone"))


def test_videos_without_any_caption_are_an_error(tmp_path):
    with pytest.raises(SureshotError, match="None of the 1 videos found for msvd test has a"):
        to_split(listing({"a": [], "b": ["x"]}), "msvd", "test", [films(tmp_path, "a.mp4")])


def test_an_annotation_of_nothing_is_an_error(tmp_path):
    with pytest.raises(SureshotError, match="msvd test lists no video"):
        to_split(listing({}), "msvd", "test", [tmp_path])


def test_only_the_videos_of_a_file_in_the_order_of_the_split(tmp_path):
    whole = listing({"a": ["x"], "b": ["y"], "c": ["z"]}, names={"a": ("v_a", "a.mov")}, expected=3)
    part = whole.only(put(tmp_path / "ids.txt", "c\nv_a\nc"))
    assert list(part.captions.items()) == [("a", ["x"]), ("c", ["z"])]
    assert (part.expected, part.names) == (3, whole.names)


def test_a_video_of_another_split_is_named(tmp_path):
    ids = put(tmp_path / "ids.txt", "a\nx\ny\n")
    with pytest.raises(SureshotError, match=r"ids\.txt names 2 of 3 videos .* the first x;"):
        listing({"a": ["x"]}).only(ids)


def test_an_empty_file_of_ids_is_an_error(tmp_path):
    with pytest.raises(SureshotError, match=r"ids\.txt is empty"):
        listing({"a": ["x"]}).only(put(tmp_path / "ids.txt", "\n"))
