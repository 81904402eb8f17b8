"""Lists of one's own: what they may say, and errors that name the file and the line."""

import json

import pytest

from sureshot.datasets import check_disjoint, load_split
from sureshot.datasets.pairs import read_pairs
from sureshot.errors import SureshotError
from tests.datasets.files import data, films, frames, put, told


@pytest.fixture
def root(tmp_path):
    films(tmp_path, "a.mp4", "sub/b.mkv", "videos/c.mp4")
    frames(tmp_path / "shots")
    return tmp_path


def test_a_table_of_videos_and_captions(root):
    text = (
        '\ufeffvideo,caption\na.mp4, a dog \nsub/b.mkv,"a man, a plan"\ngone.mp4,x\na.mp4,a dog\n'
    )
    own = load_split("pairs", "test", put(root / "my.csv", text + "shots,frames\nc.mp4,below"))
    assert told(own) == {
        "a.mp4": ["a dog", "a dog"],
        "sub/b.mkv": ["a man, a plan"],
        "shots": ["frames"],
        "c.mp4": ["below"],
    }
    assert own.items[3].path == root / "videos" / "c.mp4"
    assert (own.missing, own.dropped, own.expected) == (("gone.mp4",), 0, None)
    assert own.title() == "pairs my.csv test, 4 of 5 videos, 5 captions"


def test_lines_of_json_say_the_same(root):
    lines = [
        {"video": "a.mp4", "caption": "a dog", "split": "train"},
        {
            "file": str(root / "sub" / "b.mkv"),
            "caption": "è",
            "split": "test",
            "start": 1,
            "end": 2.5,
        },
        {"video": "a.mp4", "caption": "a dog", "split": "test", "start": None},
    ]
    file = put(root / "my.jsonl", "\n\n".join(json.dumps(line) for line in lines))
    test = read_pairs(file, "test")
    assert told(test) == {f"{root}/sub/b.mkv#t=1.0,2.5": ["è"], "a.mp4": ["a dog"]}
    assert (test.items[0].start, test.items[0].end) == (1.0, 2.5)
    assert test.items[0].path == root / "sub" / "b.mkv"
    assert told(read_pairs(file, "train")) == {"a.mp4": ["a dog"]}


def test_each_part_of_a_video_is_an_item(root):
    lines = ["a.mp4,x,0,5", "a.mp4,y,5,", "a.mp4,z,,", "a.mp4,w,0.0,5", "a.mp4,v,,2"]
    text = "\n".join(["video,caption,start,end", *lines, "gone.mp4,u,1,2"])
    own = read_pairs(put(root / "my.csv", text), "val")
    assert told(own) == {
        "a.mp4#t=0.0,5.0": ["x", "w"],
        "a.mp4#t=5.0,": ["y"],
        "a.mp4": ["z"],
        "a.mp4#t=0.0,2.0": ["v"],
    }
    assert own.missing == ("gone.mp4#t=1.0,2.0",)
    parts = [(item.start, item.end) for item in own.items]
    assert parts == [(0.0, 5.0), (5.0, None), (None, None), (0.0, 2.0)]


def test_from_zero_on_is_the_same_part_as_from_the_start_on(root):
    video = next(root.rglob("*.mp4")).relative_to(root)
    lines = f"video,caption,start,end\n{video},one,,5\n{video},two,0,5\n{video},three,1,5\n"
    (root / "parts.csv").write_text(lines)
    split = load_split("pairs", "test", root / "parts.csv")
    assert [item.start for item in split.items] == [0.0, 1.0]
    assert split.owner().tolist() == [0, 0, 1]


def test_two_spellings_are_one_item_of_any_split(root):
    file = put(root / "my.csv", f"video,caption\na.mp4,x\n{root}/a.mp4,y\n")
    train, test = read_pairs(file, "train"), read_pairs(file, "test")
    assert told(train) == told(test) == {"a.mp4": ["x", "y"]}
    with pytest.raises(SureshotError, match=r"share 1 videos: a\.mp4"):
        check_disjoint(train, test)


def test_ids_labels_and_videos_are_as_everywhere(root):
    file = put(root / "lists" / "my.csv", "video,caption\na.mp4,x\nsub/b.mkv,y\ngone.mp4,z\n")
    ids = put(root / "ids.txt", "sub/b.mkv\ngone.mp4\n")
    own = load_split("pairs", "test", file, videos=root, ids=ids, label="mine")
    assert (told(own), own.missing) == ({"sub/b.mkv": ["y"]}, ("gone.mp4",))
    assert own.title() == "pairs mine (1)"
    with pytest.raises(SureshotError, match="has no protocol; leave out script"):
        load_split("pairs", "test", file, videos=root, protocol="script")


def test_a_video_stands_for_all_its_parts_in_a_list_of_ids(root):
    lines = "a.mp4,x,0,1\na.mp4,y,1,2\nsub/b.mkv,z,0,1\nsub/b.mkv,w,1,2\ngone.mp4,v,0,1\n"
    file = put(root / "parts.csv", "video,caption,start,end\n" + lines)
    ids = put(root / "ids.txt", "a.mp4\nsub/b.mkv#t=1.0,2.0\ngone.mp4\n")
    own = read_pairs(file, "test", ids=ids)
    parts = {"a.mp4#t=0.0,1.0": ["x"], "a.mp4#t=1.0,2.0": ["y"]}
    assert told(own) == {**parts, "sub/b.mkv#t=1.0,2.0": ["w"]}
    assert own.missing == ("gone.mp4#t=0.0,1.0",)
    with pytest.raises(SureshotError, match=r"has no video b\.mkv; take"):
        read_pairs(file, "test", ids=put(root / "ids.txt", "b.mkv\n"))


def test_a_folder_stands_for_the_list_in_it_and_tabs_for_commas(root):
    put(root / "pairs.jsonl", '{"video": "a.mp4", "caption": "x"}')
    assert read_pairs(root, "test").protocol == "pairs.jsonl"
    put(root / "captions.csv", "video,caption\na.mp4,x\n")
    assert read_pairs(root, "test").protocol == "captions.csv"
    file = put(root / "my.tsv", "caption\tvideo\na dog, a cat\ta.mp4\n")
    assert told(read_pairs(file, "test")) == {"a.mp4": ["a dog, a cat"]}


def test_where_no_video_is_there_a_path_is_named(root):
    file = put(root / "my.csv", "video,caption\nx.mp4,a\ny.mp4,b\n")
    with pytest.raises(SureshotError, match=rf"names 2 videos and none .* example {root}/x\.mp4\."):
        read_pairs(file, "test")


@pytest.mark.parametrize("video", ["empty", "x\0y", "n" * 300, "a.mp4/b", "~nobody/a.mp4"])
def test_odd_paths_are_missing_and_no_harm(root, video):
    (root / "empty").mkdir()
    lines = [{"video": "a.mp4", "caption": "x"}, {"video": video, "caption": "y"}]
    own = read_pairs(put(root / "my.jsonl", "\n".join(map(json.dumps, lines))), "test")
    assert own.missing == (video,)


def test_a_split_without_lines_names_those_there_are(root):
    file = put(root / "my.csv", "video,caption,split\na.mp4,x,val\na.mp4,y,train\n")
    with pytest.raises(SureshotError, match="no line of the split test; it has: train, val"):
        read_pairs(file, "test")
    with pytest.raises(SureshotError, match="it has: none, the file is empty"):
        read_pairs(put(root / "my.csv", "video,caption\n"), "test")


@pytest.mark.parametrize(
    ("text", "line", "reason"),
    [
        ("video,text\na.mp4,x\n", 1, "must name the columns video and caption; it has video, text"),
        ("", 1, "it has nothing"),
        ("video,caption\na.mp4,x\na.mp4, \n", 3, "the caption is empty"),
        ("video,caption\n,x\n", 2, "the video is empty"),
        ("video,caption\na.mp4,a man, a plan\n", 2, "more fields than the first line; put the"),
        ('video,caption\na.mp4,"two\nlines"\na.mp4,\n', 4, "the caption is empty"),
        ("video,caption,split\na.mp4,x,dev\n", 2, "the split is dev; it must be train, val, test"),
        ("video,caption,split\na.mp4,x,\n", 2, "the split is empty"),
        ("video,caption,split\na.mp4,x,test\na.mp4,,train\n", 3, "the caption is empty"),
        ("video,caption,start\na.mp4,x,1:30\n", 2, "the start is '1:30'; it must be seconds"),
        ("video,caption,end\na.mp4,x,nan\n", 2, "the end is 'nan'"),
        ("video,caption,Split\na.mp4,x,test\n", 1, "write split for 'Split'"),
        ("video,caption, end\na.mp4,x,1\n", 1, "write end for ' end'"),
        ('video,caption\na.mp4,"open\nb.mp4,y\n', 2, "a quotation mark is never closed"),
        ('video,caption\n"a.mp4,x\nb.mp4","y"\n', 3, "has a line break; close the quotation"),
        (
            "video,caption,start,end\na.mp4,x,5,5\n",
            2,
            "ends at 5.0 s, which is not after its start",
        ),
    ],
)
def test_a_fault_in_a_table_names_the_file_and_the_line(root, text, line, reason):
    with pytest.raises(SureshotError) as caught:
        read_pairs(put(root / "my.csv", text), "test")
    assert str(caught.value).startswith(f"{root}/my.csv, line {line}")
    assert reason in str(caught.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("{", "is not JSON: Expecting property name"),
        ('{"video": "a", "caption": "x", "Split": "test"}', "it has 'Split'; write split"),
        ("[1]", "must be a JSON object with video and caption, not [1]"),
        ('{"caption": "x"}', "the file is empty"),
        ('{"video": 7, "caption": "x"}', "the video is 7; it must be text"),
        ('{"video": "a", "caption": ["x"]}', "the caption is ['x']; it must be text"),
        ('{"video": "a", "caption": "x", "split": null}', "the split is empty"),
        ('{"video": "a", "caption": "x", "start": true}', "the start is True"),
        ('{"video": "a", "caption": "x", "end": [1]}', "the end is [1]"),
        ('{"video": "a", "caption": "x", "end": 1' + "0" * 400 + "}", "a number of 401 digits"),
    ],
)
def test_a_fault_in_lines_of_json_names_the_file_and_the_line(root, text, reason):
    file = put(root / "my.jsonl", '{"video": "a.mp4", "caption": "x"}\n\n' + text)
    with pytest.raises(SureshotError) as caught:
        read_pairs(file, "test")
    assert str(caught.value).startswith(f"{file}, line 3: ")
    assert reason in str(caught.value)


def test_a_list_that_is_not_there_or_not_utf8_is_named(root):
    with pytest.raises(SureshotError, match=r"gone\.csv cannot be read: no such file"):
        read_pairs(root / "gone.csv", "test")
    (root / "my.csv").write_bytes("video,caption\na.mp4,café\n".encode("latin-1"))
    with pytest.raises(
        SureshotError, match=r"my\.csv cannot be read: it is not UTF-8 .* Save it as"
    ):
        read_pairs(root / "my.csv", "test")


def test_real_clips_are_a_list_of_ones_own():
    clips = load_split("pairs", "test", data("clips"))
    assert (len(clips.items), len(clips.captions), clips.missing) == (26, 26, ())
