"""Files of judged queries: what they may look like, and what is said of those that are at fault."""

import json
import os
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.labels import (
    JudgedMoment,
    Label,
    append,
    located,
    mend,
    read_labels,
    taken_together,
)

VIDEOS = [
    Path(p) for p in ("/v/goal.mp4", "/v/2024/swan.mov", "/v/2024/dog.mp4", "/v/2025/dog.mp4")
]
GOAL, SWAN, DOG, OTHER_DOG = VIDEOS


def file(tmp_path, text, name="labels"):
    path = tmp_path / name
    path.write_text(text, "utf-8")
    return path


def found(tmp_path, text, **options):
    path = file(tmp_path, text)
    return located(read_labels(path), path, VIDEOS, **options)[0]


# --- the two forms --------------------------------------------------------------------------------


def test_a_table_has_a_row_for_each_right_video(tmp_path):
    path = file(tmp_path, "query,video\na goal,a.mp4\nswans,b.mp4\na goal,c.mp4\nnothing,\n")
    assert read_labels(path) == [
        Label("a goal", (Path("a.mp4"), Path("c.mp4"))),
        Label("swans", (Path("b.mp4"),)),
        Label("nothing", ()),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Video;Query;who\na.mp4;a goal, late;me\n",
        "query\tvideo\na goal, late\ta.mp4\n",
        '\ufeffquery,video\r\n"a goal, late",a.mp4\r\n',
        '\n\nquery, video\n" a  goal,\nlate ", a.mp4 \n\n',
    ],
    ids=["semicolons", "tabs", "windows", "lines"],
)
def test_tables_come_in_the_ways_that_programs_write_them(tmp_path, text):
    assert read_labels(file(tmp_path, text)) == [Label("a goal, late", (Path("a.mp4"),))]


def test_lines_of_json_may_say_what_was_looked_at(tmp_path):
    lines = [
        {"query": "a goal", "relevant": ["a.mp4", "a.mp4"], "judged": ["b.mp4"], "by": "me"},
        {"query": " a\u2028swan ", "relevant": []},
        {"query": "a cat", "relevant": [], "judged": ["a.mp4"], "absent": True},
        {"query": "a dog", "relevant": [], "judged": ["a.mp4"]},
    ]
    text = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    labels = read_labels(file(tmp_path, text))
    assert labels == [
        Label("a goal", (Path("a.mp4"),), (Path("b.mp4"), Path("a.mp4"))),
        Label("a swan", ()),
        Label("a cat", (), (Path("a.mp4"),), absent=True),
        Label("a dog", (), (Path("a.mp4"),)),
    ]
    assert [label.state for label in labels] == ["present", "absent", "absent", "not found"]


def test_utf16_is_read_too(tmp_path):
    (tmp_path / "labels").write_text("query,video\nein Tor für alle,a.mp4\n", "utf-16")
    assert read_labels(tmp_path / "labels")[0].query == "ein Tor für alle"


@pytest.mark.parametrize(
    "first, second, whole",
    [
        (Label("q", (GOAL,), (GOAL, DOG)), Label("q", (SWAN,), (SWAN,)),
         Label("q", (GOAL, SWAN), (GOAL, DOG, SWAN))),
        (Label("q", (GOAL,), (GOAL,)), Label("q", (SWAN,)), Label("q", (GOAL, SWAN))),
        (Label("q", (), (DOG,), absent=True), Label("q", (GOAL,), (GOAL,)),
         Label("q", (GOAL,), (DOG, GOAL))),
        (Label("q", (), (DOG,)), Label("q", (), (GOAL,)), Label("q", (), (DOG, GOAL))),
        (Label("q", (), (DOG,)), Label("q", (), (DOG,), absent=True),
         Label("q", (), (DOG,), absent=True)),
        (Label("q", ()), Label("q", (), (DOG,)), Label("q", (), None, absent=True)),
    ],
)  # fmt: skip
def test_rows_of_one_query_are_taken_together(tmp_path, first, second, whole):
    path = file(tmp_path, first.to_line() + second.to_line())
    assert read_labels(path) == [whole]
    path = file(tmp_path, second.to_line() + first.to_line())
    (other,) = read_labels(path)
    assert set(other.relevant) == set(whole.relevant)
    assert (other.state, other.judged is None) == (whole.state, whole.judged is None)


# --- what is at fault -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "labels are empty; write a query"),
        (" \n\n", "labels are empty"),
        ("query,video\n", "labels are empty"),
        ("query,file\nq,a.mp4\n", "line 1 must name the columns query and video; it has query, f"),
        ("query,video\nq,a.mp4,b.mp4\n", "line 2: has more fields than the first line"),
        ("query,video\nq,a.mp4\n ,b.mp4\n", "line 3: the query is empty; describe"),
        ('{"query": "q", "relevant": ["a"]}\n{"query": "q"', "line 2: is not JSON; write one obj"),
        ('[{"query": "q", "relevant": ["a"]}]', "line 1: is not an object with query and relevant"),
        ('{"query": "\\u0007", "relevant": []}', "line 1: the query is empty"),
        ('{"query": 3, "relevant": []}', "line 1: the query is 3; it must be text"),
        ('{"query": "q", "relevent": []}', "line 1: relevant is None; it must be a list"),
        ('{"query": "q", "relevant": "a.mp4"}', "line 1: relevant is 'a.mp4'; it must be a list"),
        ('{"query": "q", "relevant": [""]}', r"relevant is \[''\]; it must be a list"),
        ('{"query": "q", "relevant": [], "judged": [1]}', r"judged is \[1\]; it must be a list"),
        ('{"query": "q", "relevant": [], "absent": 1}', "absent is 1; it must be true or false"),
        ('{"query": "q", "relevant": ["a"], "absent": true}', "it can only be one of them"),
        ("[" * 100_000, "line 1: it nests too deeply"),
    ],
)
def test_a_fault_is_named_with_its_file_and_line(tmp_path, text, said):
    with pytest.raises(SureshotError, match=said) as error:
        read_labels(file(tmp_path, text))
    assert str(tmp_path / "labels") in str(error.value)


def test_a_file_that_cannot_be_read_is_said(tmp_path):
    with pytest.raises(SureshotError, match=r"labels .*none cannot be read: no such file"):
        read_labels(tmp_path / "none")
    (tmp_path / "latin").write_bytes("query,video\nein Türchen,a.mp4\n".encode("latin-1"))
    with pytest.raises(SureshotError, match="latin cannot be read: it is not UTF-8"):
        read_labels(tmp_path / "latin")


# --- names of videos ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name, path",
    [
        ("/v/goal.mp4", GOAL),
        ("/v/2024/../goal.mp4", GOAL),
        ("goal.mp4", GOAL),
        ("goal", GOAL),
        ("swan.mov", SWAN),
        ("2025/dog.mp4", OTHER_DOG),
        ("./2024/dog", DOG),
    ],
)
def test_a_video_is_found_by_its_path_or_the_end_of_it(tmp_path, name, path):
    assert found(tmp_path, f"query,video\nq,{name}\n") == [Label("q", (path,))]


def test_a_path_may_start_from_the_folder_of_the_file(tmp_path, monkeypatch):
    videos = [tmp_path / "a" / "dog.mp4", tmp_path / "b" / "dog.mp4"]
    (tmp_path / "a").mkdir()
    path = file(tmp_path / "a", "query,video\nq,dog.mp4\nr,../b/dog.mp4\n")
    monkeypatch.chdir(tmp_path / "a")
    for name in (path, "labels"):
        labels, _ = located(read_labels(name), name, videos)
        assert [label.relevant for label in labels] == [(videos[0],), (videos[1],)]


def test_one_video_by_two_names_counts_once(tmp_path):
    assert found(tmp_path, "query,video\nq,goal\nq,/v/goal.mp4\n") == [Label("q", (GOAL,))]


def test_a_name_that_fits_several_is_no_guess(tmp_path):
    said = r"dog.mp4 may be any of 2 videos of the index \(/v/2024/dog.mp4, /v/2025/dog.mp4\)"
    with pytest.raises(SureshotError, match=said):
        found(tmp_path, "query,video\nq,dog.mp4\n")


def test_unknown_videos_are_counted_listed_and_hinted_at(tmp_path):
    text = "query,video\nq,gaol.mp4\nq,swan.mov\nr,zzzz.avi\ns,zzzz.avi\nt,/w/goal.mp4\n"
    with pytest.raises(SureshotError) as error:
        found(tmp_path, text)
    assert str(error.value) == (
        f"{tmp_path}/labels names 3 videos that are not in the index: gaol.mp4 (did you mean "
        "/v/goal.mp4?); zzzz.avi; /w/goal.mp4 (did you mean /v/goal.mp4?). Index what is missing, "
        "fix the names, or leave these queries out with --skip-unknown."
    )
    many = "query,video\n" + "".join(f"q,{n:04}.xyz\n" for n in range(9))
    with pytest.raises(SureshotError, match=r"names 9 videos that are .*0004.xyz; and 4 more\."):
        found(tmp_path, many)
    with pytest.raises(SureshotError, match=r"names 1 video that is not in the index"):
        found(tmp_path, "query,video\nq,.\n")


def test_of_names_as_like_the_one_that_begins_alike_is_hinted_at(tmp_path):
    path = file(tmp_path, "query,video\nq,video8252.mp4\n")
    videos = [Path(f"/v/video{n}.mp4") for n in (9825, 8251, 5822)]
    with pytest.raises(SureshotError, match=r"did you mean /v/video8251\.mp4\?"):
        located(read_labels(path), path, videos)


def test_queries_about_unknown_videos_can_be_left_out_whole(tmp_path):
    path = file(tmp_path, "query,video\nq,goal\nq,gone.mp4\nr,swan\nnothing,\n")
    labels, left_out = located(read_labels(path), path, VIDEOS, skip_unknown=True)
    assert (labels, left_out) == ([Label("r", (SWAN,)), Label("nothing", ())], 1)
    path = file(tmp_path, "query,video\nq,gone.mp4\n")
    with pytest.raises(SureshotError, match=r"Every query .* names a video that is not in the ind"):
        located(read_labels(path), path, VIDEOS, skip_unknown=True)


def test_a_video_that_was_looked_at_and_is_gone_does_no_harm(tmp_path):
    text = '{"query": "q", "relevant": ["goal"], "judged": ["gone.mp4", "goal", "swan"]}'
    assert found(tmp_path, text) == [Label("q", (GOAL,), (GOAL, SWAN))]


# --- written as they are judged -------------------------------------------------------------------


def test_what_is_written_is_what_is_read(tmp_path):
    odd = Path(os.fsdecode(b"/v/\xff \xe2\x80\xa8.mp4"))
    labels = [
        Label("a goal \u2028 für\x07 alle", (GOAL, odd), (GOAL, odd, SWAN)),
        Label("b", (), (DOG,)),
        Label("c", (), (DOG,), absent=True),
        Label("d", ()),
    ]
    for label in labels:
        append(tmp_path / "judged.jsonl", label)
    again = read_labels(tmp_path / "judged.jsonl")
    assert [label.query for label in again] == ["a goal für\x07 alle", "b", "c", "d"]
    assert [(r.relevant, r.judged, r.absent) for r in again] == [
        (r.relevant, r.judged, r.absent) for r in labels
    ]


def test_half_a_line_at_the_end_is_dropped(tmp_path):
    path = tmp_path / "judged.jsonl"
    assert not mend(path) and not path.exists()
    append(path, Label("a", ()))
    whole = path.read_bytes()
    assert not mend(path) and path.read_bytes() == whole
    path.write_bytes(whole + b'{"query": "b", "rel')
    assert mend(path) and path.read_bytes() == whole
    path.write_bytes(whole + Label("b", ()).to_line().encode().rstrip())
    assert not mend(path)
    append(path, Label("c", ()))
    assert [label.query for label in read_labels(path)] == ["a", "b", "c"]
    path.write_bytes(whole + b'{"query": "b", relevant: []}')
    assert not mend(path)  # a slip of somebody's hand is not ours to drop
    path.write_bytes(b'{"que')
    assert mend(path) and path.read_bytes() == b""


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(SureshotError, match=r"cannot be written to .*: no such file"):
        append(tmp_path / "none" / "judged.jsonl", Label("a", ()))
    with pytest.raises(SureshotError, match=r"cannot be written to .*: is a directory"):
        mend(tmp_path)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs a disk that is full")  # noqa: PTH110
def test_a_full_disk_is_said():
    with pytest.raises(SureshotError, match="cannot be written to /dev/full: no space left"):
        append(Path("/dev/full"), Label("a", ()))


# --- judged again ---------------------------------------------------------------------------------


def _clicked(right, *, start=0.0, video="a.mp4"):
    """A label as one click gives it: one moment of one video is right or wrong."""
    path = Path(video)
    moment = JudgedMoment(path, start, start + 5, right)
    return Label("q", (path,) if right else (), (path,), moments=(moment,))


def test_what_is_judged_again_holds():
    label = taken_together(_clicked(True), _clicked(False))
    assert (label.relevant, label.state) == ((), "not found")
    assert [moment.right for moment in label.moments] == [False]
    label = taken_together(label, _clicked(True))
    assert label.relevant == (Path("a.mp4"),)
    assert [moment.right for moment in label.moments] == [True]


def test_another_moment_or_another_video_takes_nothing_back():
    label = taken_together(_clicked(True), _clicked(False, start=60.0))
    assert label.relevant == (Path("a.mp4"),)
    assert [moment.right for moment in label.moments] == [True, False]
    label = taken_together(label, _clicked(False, video="b.mp4"))
    assert label.relevant == (Path("a.mp4"),)
    assert label.judged == (Path("a.mp4"), Path("b.mp4"))


def test_a_whole_video_judged_wrong_later_takes_its_moments_along():
    label = taken_together(_clicked(True), Label("q", (), (Path("a.mp4"),), absent=True))
    assert (label.relevant, label.moments, label.absent) == ((), (), True)
    label = taken_together(label, _clicked(True))
    assert (label.relevant, label.absent) == ((Path("a.mp4"),), False)


# --- moments --------------------------------------------------------------------------------------


def test_a_table_may_name_the_time_of_what_is_right(tmp_path):
    file = tmp_path / "judged.csv"
    file.write_text("query,video,start,end\na goal,a.mp4,1:05,75\na goal,b.mp4,,\n")
    (label,) = read_labels(file)
    assert label.relevant == (Path("a.mp4"), Path("b.mp4"))
    assert label.moments == (JudgedMoment(Path("a.mp4"), 65.0, 75.0, True),)
    file.write_text("query,video,start,end\na goal,a.mp4,soon,75\n")
    with pytest.raises(SureshotError, match="line 2: start and end are no times"):
        read_labels(file)


def test_judged_moments_survive_their_file_and_get_the_paths_of_the_index(tmp_path):
    moments = tuple(JudgedMoment(Path(f"{n}.mp4"), 1.5, 4.0, n == "a") for n in "ab")
    label = Label("a goal", (Path("a.mp4"),), (Path("a.mp4"), Path("b.mp4")), moments=moments)
    append(tmp_path / "judged.jsonl", label)
    assert read_labels(tmp_path / "judged.jsonl") == [label]
    videos = [Path("/v/a.mp4"), Path("/v/c.mp4")]
    ((found,), _) = located([label], tmp_path / "judged.jsonl", videos)
    assert found.moments == (JudgedMoment(Path("/v/a.mp4"), 1.5, 4.0, True),)  # b is gone


@pytest.mark.parametrize(
    "moment",
    [
        "3",
        '{"video": "a.mp4", "start": 3, "end": 9}',
        '{"video": "a.mp4", "start": 9, "end": 3, "right": true}',
        '{"video": "a.mp4", "start": "3", "end": 9, "right": true}',
        '{"video": "", "start": 3, "end": 9, "right": true}',
    ],
)
def test_a_moment_that_is_none_is_an_error(tmp_path, moment):
    file = tmp_path / "judged.jsonl"
    file.write_text(f'{{"query": "a goal", "relevant": ["a.mp4"], "moments": [{moment}]}}\n')
    with pytest.raises(SureshotError, match="line 1: a moment is"):
        read_labels(file)


def test_a_verdict_is_of_the_time_where_it_is_known_and_else_of_the_video():
    a, b, c = (Path(f"/v/{name}.mp4") for name in "abc")
    timed = (JudgedMoment(a, 10.0, 20.0, True), JudgedMoment(a, 30.0, 40.0, False))
    label = Label("a goal", (a, b), judged=(a, b, c), moments=timed)
    assert label.verdict(a, 15.0, 25.0) is True
    assert label.verdict(a, 30.0, 35.0) is False
    assert label.verdict(a, 50.0, 55.0) is None  # nobody looked there
    assert (label.verdict(b, 0.0, 5.0), label.verdict(c, 0.0, 5.0)) == (True, False)
    assert label.verdict(Path("/v/d.mp4"), 0.0, 5.0) is None
    assert Label("a goal", (a,)).verdict(c, 0.0, 5.0) is False


LABEL_PATHS_VIDEOS = [
    Path("/films/2023/goal.mp4"),
    Path("/films/2024/goal.mp4"),
    Path("/films/dog.mp4"),
]


def test_the_end_of_a_path_names_its_video() -> None:
    labels = [Label(query="a goal", relevant=(Path("2024/goal"),))]
    found, left_out = located(labels, "/labels.csv", LABEL_PATHS_VIDEOS)
    assert found[0].relevant == (LABEL_PATHS_VIDEOS[1],) and left_out == 0


def test_a_name_of_two_videos_and_a_name_of_none_are_told() -> None:
    with pytest.raises(SureshotError, match="may be any of 2 videos"):
        located(
            [Label(query="a goal", relevant=(Path("goal.mp4"),))], "/labels.csv", LABEL_PATHS_VIDEOS
        )
    with pytest.raises(SureshotError, match=r"did you mean /films/dog\.mp4"):
        located(
            [Label(query="a dog", relevant=(Path("dogs.mp4"),))], "/labels.csv", LABEL_PATHS_VIDEOS
        )
