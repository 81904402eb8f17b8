"""Files of judged queries: what they may look like, and what is said of those that are at fault."""

import json
import os
from pathlib import Path

import pytest

from sureshot.errors import SureshotError
from sureshot.library.labels import (
    JudgedMoment,
    Label,
    Names,
    append,
    drop_half_line,
    located,
    read_labels,
    write,
)
from tests.judged import label

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
    labels, _ = located(read_labels(path), path, dict.fromkeys(VIDEOS, ""), **options)
    return labels


# --- the two forms --------------------------------------------------------------------------------


def test_a_table_has_a_row_for_each_right_video(tmp_path):
    path = file(tmp_path, "query,video\na goal,a.mp4\nswans,b.mp4\na goal,c.mp4\nnothing,\n")
    assert read_labels(path) == [
        label("a goal", ["a.mp4", "c.mp4"], complete=True),
        label("swans", ["b.mp4"], complete=True),
        label("nothing", complete=True),
    ]


@pytest.mark.parametrize(
    "text",
    [
        "Video;Query;who\na.mp4;a goal, late;me\n",
        "query\tvideo\na goal, late\ta.mp4\n",
        '\ufeffquery,video\r\n"a goal, late",a.mp4\r\n',
        '\n\nquery, video\n" a  goal,\nlate ", a.mp4 \n \n',
    ],
    ids=["semicolons", "tabs", "windows", "lines"],
)
def test_tables_come_in_the_ways_that_programs_write_them(tmp_path, text):
    assert read_labels(file(tmp_path, text)) == [label("a goal, late", ["a.mp4"], complete=True)]


@pytest.mark.parametrize(
    "text",
    [
        "query,video\ngoals,s3://films/goal.mp4\n",
        '{"query": "goals", "moments": [{"video": "s3://films/goal.mp4", "right": true}]}\n',
    ],
)
def test_an_address_of_object_storage_stays_one(tmp_path, text):
    path = tmp_path / ("judged.csv" if text.startswith("query") else "judged.jsonl")
    path.write_text(text)
    (label,) = read_labels(path)
    assert list(map(str, label.relevant)) == ["s3://films/goal.mp4"]


def test_lines_of_json_say_what_was_looked_at(tmp_path):
    right, wrong = {"video": "a.mp4", "right": True}, {"video": "b.mp4", "right": False}
    lines = [
        {"query": "a goal", "moments": [right, right, wrong], "by": "me"},
        {"query": " a\u2028swan ", "moments": [], "complete": True},
        {"query": "a cat", "moments": [{**right, "right": False}], "absent": True},
        {"query": "a dog", "moments": [{**right, "right": False}]},
    ]
    text = "\n\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    labels = read_labels(file(tmp_path, text))
    assert labels == [
        label("a goal", ["a.mp4"], ["b.mp4"]),
        label("a swan", complete=True),
        label("a cat", [], ["a.mp4"], absent=True),
        label("a dog", [], ["a.mp4"]),
    ]
    assert [one.state for one in labels] == ["present", "absent", "absent", "not found"]


def test_utf16_is_read_too(tmp_path):
    (tmp_path / "labels").write_text("query,video\nein Tor für alle,a.mp4\n", "utf-16")
    assert read_labels(tmp_path / "labels")[0].query == "ein Tor für alle"


def test_a_table_may_name_the_time_of_what_is_right(tmp_path):
    path = file(tmp_path, "query,video,start,end\na goal,a.mp4,1:05,75\na goal,b.mp4,,\n")
    timed, whole = JudgedMoment(Path("a.mp4"), True, 65.0, 75.0), JudgedMoment(Path("b.mp4"), True)
    assert read_labels(path) == [Label("a goal", (timed, whole), complete=True)]


@pytest.mark.parametrize(
    "first, second, whole",
    [
        (label("q", [GOAL], [DOG]), label("q", [SWAN]), label("q", [GOAL, SWAN], [DOG])),
        (label("q", [GOAL]), label("q", [SWAN], complete=True),
         label("q", [GOAL, SWAN], complete=True)),
        (label("q", [], [DOG], absent=True), label("q", [GOAL]), label("q", [GOAL], [DOG])),
        (label("q", [], [DOG]), label("q", [], [GOAL]), label("q", [], [DOG, GOAL])),
        (label("q", [], [DOG]), label("q", [], [DOG], absent=True),
         label("q", [], [DOG], absent=True)),
        (label("q", complete=True), label("q", [], [DOG]),
         label("q", [], [DOG], absent=True, complete=True)),
    ],
)  # fmt: skip
def test_rows_of_one_query_are_taken_together(tmp_path, first, second, whole):
    for lines in ([first, second], [second, first]):
        (read,) = read_labels(file(tmp_path, "".join(one.to_line() for one in lines)))
        assert set(read.moments) == set(whole.moments)
        assert (read.state, read.complete) == (whole.state, whole.complete)


# --- what is at fault -----------------------------------------------------------------------------

MOMENT = '{{"query": "q", "moments": [{}]}}\n'


@pytest.mark.parametrize(
    "text, said",
    [
        ("", "labels are empty; write a query"),
        (" \n\n", "labels are empty"),
        ("query,video\n", "labels are empty"),
        ("query,file\nq,a.mp4\n", "line 1 must name the columns query and video; it has query, f"),
        ("query,video\nq,a.mp4,b.mp4\n", "line 2: has more fields than the first line"),
        ("query,video\nq,a.mp4\n ,b.mp4\n", "line 3: the query is empty; describe"),
        ("\n\nquery,video\nq,a.mp4,b.mp4\n", "line 4: has more fields than the first line"),
        ("\nquery,video\nq,a.mp4\n" + "x" * 140_000 + ",b.mp4\n", "line 4: field larger than"),
        ("query,video,start,end\nq,a,soon,75\n", "line 2: start and end are no times"),
        ("query,video,start,end\nq,a,5,\n", "line 2: start and end are no times"),
        ("query,video,start,end\nq,a,9,5\n", "line 2: the moment ends at 5, before it starts at 9"),
        ('{"query": "q", "moments": []}\n{"query": "q"', "line 2: is not JSON; write one obj"),
        ('[{"query": "q", "moments": []}]', "line 1: is not an object with query and moments"),
        ('{"query": "\\u0007", "moments": []}', "line 1: the query is empty"),
        ('{"query": 3, "moments": []}', "line 1: the query is 3; it must be text"),
        ('{"query": "q", "moment": []}', "line 1: moments is None; it must be a list"),
        ('{"query": "q", "moments": "a.mp4"}', "line 1: moments is 'a.mp4'; it must be a list"),
        ('{"query": "q", "moments": [], "absent": 1}', "absent is 1; it must be true or false"),
        ('{"query": "q", "moments": [], "complete": 1}', "complete is 1; it must be true or false"),
        (
            '{"query": "q", "moments": [{"video": "a", "right": true}], "absent": true}',
            "it can only be one of them",
        ),
        (MOMENT.format("3"), "line 1: a moment is 3; it needs video and right"),
        (MOMENT.format('{"video": "", "right": true}'), "line 1: a moment is"),
        (MOMENT.format('{"video": 1, "right": true}'), "line 1: a moment is"),
        (MOMENT.format('{"video": "a", "right": true, "digest": []}'), "line 1: a moment is"),
        (MOMENT.format('{"video": "a", "right": true, "start": 3}'), "line 1: a moment is"),
        (MOMENT.format('{"video": "a", "start": 3, "end": 9}'), "line 1: a moment is"),
        (MOMENT.format('{"video": "a", "start": 9, "end": 3, "right": true}'), "a moment is"),
        (MOMENT.format('{"video": "a", "start": "3", "end": 9, "right": true}'), "a moment is"),
        (MOMENT.format('{"video": "a", "start": NaN, "end": 9, "right": true}'), "line 1: "),
        (MOMENT.format('{"video": "a", "start": -1, "end": 9, "right": true}'), "a moment is"),
        (MOMENT.format('{"video": " ", "start": 3, "end": 9, "right": true}'), "a moment is"),
        (MOMENT.format('{"video": "a", "start": 3, "end": 9, "right": 1}'), "a moment is"),
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
        ("goal\nq,/v/goal.mp4", GOAL),  # one video by two names counts once
    ],
)
def test_a_video_is_found_by_its_path_or_the_end_of_it(tmp_path, name, path):
    assert found(tmp_path, f"query,video\nq,{name}\n") == [label("q", [path], complete=True)]


def test_a_path_may_start_from_the_folder_of_the_file(tmp_path, monkeypatch):
    videos = [tmp_path / "a" / "dog.mp4", tmp_path / "b" / "dog.mp4"]
    (tmp_path / "a").mkdir()
    path = file(tmp_path / "a", "query,video\nq,dog.mp4\nr,../b/dog.mp4\n")
    monkeypatch.chdir(tmp_path / "a")
    for name in (path, "labels"):
        labels, _ = located(read_labels(name), name, dict.fromkeys(videos, ""))
        assert [one.relevant for one in labels] == [(videos[0],), (videos[1],)]


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


def test_of_many_unknown_videos_only_those_that_are_shown_are_compared(tmp_path, monkeypatch):
    asked, hint = [], Names.hint
    monkeypatch.setattr(Names, "hint", lambda self, name: asked.append(name) or hint(self, name))
    with pytest.raises(SureshotError, match=r"names 900 videos .*; and 895 more\."):
        found(tmp_path, "query,video\n" + "".join(f"q,{n:04}.xyz\n" for n in range(900)))
    assert len(asked) == 5  # each is compared with every video of the index, which takes long


def test_queries_about_unknown_videos_can_be_left_out_whole(tmp_path):
    path = file(tmp_path, "query,video\nq,goal\nq,gone.mp4\nr,swan\nnothing,\n")
    videos = dict.fromkeys(VIDEOS, "")
    labels, left_out = located(read_labels(path), path, videos, skip_unknown=True)
    assert [one.query for one in labels] == ["r", "nothing"] and left_out == 1
    path = file(tmp_path, "query,video\nq,gone.mp4\n")
    with pytest.raises(SureshotError, match=r"Every query .* names a video that is not in the ind"):
        located(read_labels(path), path, videos, skip_unknown=True)


def test_a_video_that_was_looked_at_and_is_gone_does_no_harm(tmp_path):
    seen = [{"video": one, "right": one == "goal"} for one in ("gone.mp4", "goal", "swan")]
    text = json.dumps({"query": "q", "moments": seen})
    assert found(tmp_path, text) == [label("q", [GOAL], [SWAN])]


# --- written as they are judged -------------------------------------------------------------------


def test_what_is_written_is_what_is_read(tmp_path):
    odd = Path(os.fsdecode(b"/v/\xff \xe2\x80\xa8.mp4"))
    timed = (JudgedMoment(GOAL, True, 1.5, 4.0), JudgedMoment(SWAN, False, 2.0, 3.0))
    labels = [
        label("a goal für\x07 alle", [GOAL, odd], [SWAN]),
        label("b", [], [DOG]),
        label("c", [], [DOG], absent=True),
        label("d", complete=True),
        Label("e", (*timed, JudgedMoment(DOG, False))),
        Label("f", (JudgedMoment(GOAL, True, 1.0, 4.0, "ab12"), JudgedMoment(odd, False))),
        Label("g", (JudgedMoment(GOAL, True, 1.0, 4.0, "ab12", "speech"),)),
    ]
    for one in labels:
        append(tmp_path / "judged.jsonl", one)
    assert read_labels(tmp_path / "judged.jsonl") == labels
    (last,), _ = located(labels[4:5], "/labels", {GOAL: ""})
    assert last.moments == timed[:1]  # the other two are gone


def test_half_a_line_at_the_end_is_dropped(tmp_path):
    path = tmp_path / "judged.jsonl"
    assert not drop_half_line(path) and not path.exists()
    append(path, Label("a"))
    whole = path.read_bytes()
    assert not drop_half_line(path) and path.read_bytes() == whole
    path.write_bytes(whole + b'{"query": "b", "mom')
    assert drop_half_line(path) and path.read_bytes() == whole
    path.write_bytes(whole + Label("b").to_line().encode().rstrip())
    assert not drop_half_line(path)
    append(path, Label("c"))
    assert [one.query for one in read_labels(path)] == ["a", "b", "c"]
    path.write_bytes(whole + b'{"query": "b", moments: []}')
    assert not drop_half_line(path)  # a slip of somebody's hand is not ours to drop
    path.write_bytes(b'{"que')
    assert drop_half_line(path) and path.read_bytes() == b""


def test_a_place_that_cannot_be_written_is_said(tmp_path):
    with pytest.raises(SureshotError, match=r"cannot be written to .*: no such file"):
        append(tmp_path / "none" / "judged.jsonl", Label("a"))
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match=r"cannot be written to .*file.judged.jsonl: "):
        write(tmp_path / "file" / "judged.jsonl", [Label("a")])
    with pytest.raises(SureshotError, match=r"cannot be written to .*: is a directory"):
        drop_half_line(tmp_path)
    if os.path.exists("/dev/full"):  # noqa: PTH110
        with pytest.raises(SureshotError, match="cannot be written to /dev/full: no space left"):
            append(Path("/dev/full"), Label("a"))


@pytest.mark.parametrize(
    "moved", [{SWAN: "g", DOG: ""}, {GOAL: "other", SWAN: "g", OTHER_DOG: "g"}]
)
def test_a_video_that_was_moved_is_found_by_its_content(moved):
    moments = (JudgedMoment(GOAL, True, 3.0, 9.0, "g"), JudgedMoment(DOG, False))
    (one,), _ = located([Label("q", moments)], "/labels", moved)
    assert one.moments[0] == JudgedMoment(SWAN, True, 3.0, 9.0, "g")


def test_of_one_moment_judged_before_and_after_a_move_the_later_word_holds():
    moments = (
        JudgedMoment(GOAL, True, 3.0, 9.0, "g"),
        JudgedMoment(GOAL, True, 30.0, 39.0, "g"),
        JudgedMoment(SWAN, False, 4.0, 8.0, "g"),
    )
    (one,), _ = located([Label("q", moments)], "/labels", {SWAN: "g"})
    assert [(m.start, m.right) for m in one.moments] == [(30.0, True), (4.0, False)]


# --- judged again ---------------------------------------------------------------------------------


def _clicked(right, *, start=0.0, video="a.mp4"):
    """A label as one click gives it: one moment of one video is right or wrong."""
    return Label("q", (JudgedMoment(Path(video), right, start, start + 5),))


def test_what_is_judged_again_holds():
    one = _clicked(True).updated(_clicked(False))
    assert (one.relevant, one.state) == ((), "not found")
    assert [moment.right for moment in one.moments] == [False]
    one = one.updated(_clicked(True))
    assert one.relevant == (Path("a.mp4"),)
    assert [moment.right for moment in one.moments] == [True]


def test_another_moment_or_another_video_takes_nothing_back():
    one = _clicked(True).updated(_clicked(False, start=60.0)).updated(_clicked(False, video="b"))
    assert one.relevant == (Path("a.mp4"),)
    assert [moment.right for moment in one.moments] == [True, False, False]
    again = one.updated(label("q", ["a.mp4"]))  # right as a whole: its right moment stays
    timed = [moment for moment in again.moments if moment.is_timed]
    assert timed[0].right and len(timed) == 2


def test_a_whole_video_judged_again_later_takes_its_moments_along():
    one = _clicked(True).updated(label("q", [], ["a.mp4"], absent=True))
    assert not any(moment.is_timed for moment in one.moments)
    assert (one.relevant, one.absent) == ((), True)
    one = one.updated(_clicked(True))
    assert (one.relevant, one.absent) == ((Path("a.mp4"),), False)
    assert label("q", ["a.mp4"]).updated(_clicked(False)).relevant == ()


def test_a_verdict_is_of_the_time_where_it_is_known_and_else_of_the_video():
    a, b, c = (Path(f"/v/{name}.mp4") for name in "abc")
    timed = (JudgedMoment(a, True, 10.0, 20.0), JudgedMoment(a, False, 30.0, 40.0))
    one = Label("a goal", (*timed, JudgedMoment(b, True), JudgedMoment(c, False)))
    assert one.verdict(a, 15.0, 25.0) is True
    assert one.verdict(a, 30.0, 35.0) is False
    assert one.verdict(a, 20.0, 25.0) is None  # it only touches what was judged
    assert one.verdict(a, 50.0, 55.0) is None
    assert (one.verdict(b, 0.0, 5.0), one.verdict(c, 0.0, 5.0)) == (True, False)
    assert one.verdict(Path("/v/d.mp4"), 0.0, 5.0) is None
    assert label("a goal", [a], complete=True).verdict(c, 0.0, 5.0) is False
