"""Judging the hits of a real index, by somebody who knows the answers beforehand."""

from dataclasses import replace
from pathlib import Path

import pytest

import sureshot
from sureshot.errors import QueryError, SureshotError
from sureshot.library.judging import (
    Judgements,
    JudgingSession,
    current,
    judge,
    judge_moments,
    judge_query,
)
from sureshot.library.labels import JudgedMoment, Label, append, read_labels, write
from sureshot.library.search import open_index
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture(scope="module")
def searcher(library):
    return open_index(library.db)


class Person:
    """Gives the verdicts it was told to, and remembers what it was asked."""

    def __init__(self, *verdicts):
        self.verdicts = list(verdicts)
        self.hits = []
        self.more = []

    def ask(self, hit):
        self.hits.append(hit)
        return self.verdicts.pop(0)

    def ask_more(self, shown):
        self.more.append(shown)
        return self.verdicts.pop(0)

    def judge(self, searcher, query, limit=3):
        found = judge_query(searcher, query, self.ask, self.ask_more, {"limit": limit})
        assert not self.verdicts
        return found

    @property
    def names(self):
        return [hit.path.stem for hit in self.hits]


def names(paths):
    return {path.stem for path in paths}


def test_each_of_the_best_hits_is_judged_with_its_times_and_no_video_twice(searcher, tmp_path):
    person = Person("yes", "yes", "no")
    label = person.judge(searcher, "red")
    assert (label.query, label.state, person.more) == ("red", "present", [])
    assert len(set(person.names)) == 3
    assert [(m.video, m.start, m.end, m.right) for m in label.moments] == [
        (hit.path, hit.start, hit.end, right)
        for hit, right in zip(person.hits, (True, True, False), strict=True)
    ]
    append(tmp_path / "labels", label)
    assert read_labels(tmp_path / "labels") == [label]


def test_what_is_right_of_a_video_is_right_of_its_copies(searcher):
    label = Person("yes").judge(searcher, "white", limit=1)
    assert names(label.relevant) == names(m.video for m in label.moments) == {"tape", "copy"}


def test_more_hits_come_where_none_was_right_until_one_is(searcher):
    person = Person("no", "no", "more", "no", "yes")
    label = person.judge(searcher, "yellow", limit=2)
    assert person.more == [2]
    assert len(set(person.names)) == 4
    assert label.relevant[0].stem == person.names[3]
    assert len(label.moments) == 5  # one of the four has a copy


def test_what_was_looked_at_in_vain_may_still_be_there(searcher):
    label = Person("no", "unknown").judge(searcher, "red", limit=1)
    assert (label.state, len(label.moments)) == ("not found", 1)
    label = Person("no", "absent").judge(searcher, "red", limit=1)
    assert (label.state, len(label.moments)) == ("absent", 1)
    assert Person("absent").judge(searcher, "red").state == "absent"
    label = Person("yes", "absent").judge(searcher, "red")  # a right hit outweighs it
    assert (label.state, len(label.moments), label.absent) == ("present", 1, False)


def test_a_query_of_which_every_video_was_seen_in_vain_is_absent(searcher):
    person = Person("no", "no", "no", "more", "no", "more")
    label = person.judge(searcher, "red")
    assert (label.state, person.more) == ("absent", [3, 5])
    assert names(m.video for m in label.moments) == {"red", "scenes", "yellow", "tape", "copy"}


def test_what_is_judged_is_what_was_shown_of_some_videos(searcher):
    """Nothing is known then of what the library as a whole has."""
    only = {"limit": 3, "shorter": 3.5}
    shown = [hit.path for hit in searcher.search("red", per_video=1, **only)]
    for verdicts in (["no"] * len(shown) + ["absent"], ["absent"], ["no"] * len(shown) + ["more"]):
        person = Person(*verdicts)
        label = judge_query(searcher, "red", person.ask, person.ask_more, only)
        assert {hit.path for hit in person.hits} <= set(shown)
        assert label == "skip" if verdicts == ["absent"] else label.state == "not found"


def test_a_query_can_begin_again(searcher):
    person = Person("yes", "again", "no", "no", "again", "no", "no", "yes")
    label = person.judge(searcher, "red", limit=3)
    assert names(label.relevant) == {person.names[7]}
    person = Person("no", "again", "yes")
    assert names(person.judge(searcher, "red", limit=1).relevant) == {person.names[0]}
    assert person.names[0] == person.names[1]


@pytest.mark.parametrize("end", ["skip", "quit"])
def test_a_query_can_end_without_a_word(searcher, end):
    assert Person("yes", end).judge(searcher, "red") == end
    assert Person("no", end).judge(searcher, "red", limit=1) == end


def test_what_was_judged_is_shown_where_its_video_is_now(tmp_path):
    (tmp_path / "v").mkdir()
    film = coloured(tmp_path / "v" / "a.mp4", ["red"], seconds=2)
    coloured(tmp_path / "v" / "b.mp4", ["blue"], seconds=2)
    index(str(tmp_path / "db"), tmp_path / "v")
    searcher = open_index(tmp_path / "db")
    kept = judge_moments(searcher, "red", [JudgedMoment(film, True, 0.0, 1.0)])
    assert current([kept.of("red")], searcher.store) == [kept.of("red")]
    film.rename(tmp_path / "v" / "c.mp4")
    index(str(tmp_path / "db"), tmp_path / "v")
    (label,) = current([kept.of("red")], open_index(tmp_path / "db").store)
    (moment,) = label.moments
    assert (moment.video.name, moment.right, moment.end) == ("c.mp4", True, 1.0)
    coloured(tmp_path / "v" / "c.mp4", ["green"], seconds=2)
    index(str(tmp_path / "db"), tmp_path / "v")
    (replaced,) = current([label], open_index(tmp_path / "db").store, keep_gone=True)
    assert replaced.moments == (moment,)  # with the digest of what was judged
    (tmp_path / "v" / "c.mp4").unlink()
    sureshot.index(tmp_path / "v", db=tmp_path / "db", prune=True)
    store = open_index(tmp_path / "db").store
    assert current([kept.of("red")], store)[0].moments == ()
    assert current([kept.of("red")], store, keep_gone=True) == [kept.of("red")]


# --- a session ------------------------------------------------------------------------------------


def test_a_session_keeps_what_is_judged_and_the_next_goes_on(searcher, tmp_path):
    asked = {"to": tmp_path / "judged.jsonl", "db": searcher, "limit": 1}
    began = []
    first = Person("yes", "no", "quit")
    result = judge(
        ["red", "yellow", " red", "white"],
        first.ask,
        begin=lambda query, number, total: began.append((query, number, total)),
        **asked,
    )
    assert began == [("red", 1, 3), ("yellow", 2, 3), ("white", 3, 3)]
    assert (result.judged, result.present, result.not_found, result.left) == (2, 1, 1, 1)
    again = judge(["red", "yellow", "white"], Person("absent").ask, **asked)
    assert (again.judged, again.absent, again.left) == (3, 1, 0)
    # Nothing is left to ask, so no index is opened either.
    done = judge(["red"], Person().ask, to=asked["to"], db=tmp_path / "none")
    assert (done.judged, done.left) == (3, 0)


@pytest.mark.parametrize(
    "judged, more",
    [
        (4, "\n1 more, and percentages can be learned from them."),
        (5, "\nEnough to learn from; more, up to 100, make the percentages better."),
        (202, ""),
    ],
)
def test_a_result_says_how_many_more_it_takes(judged, more, tmp_path):
    write(tmp_path / "j", [Label(f"q{number}", absent=True) for number in range(judged)])
    result = JudgingSession(
        file=Path("j"),
        judged=judged,
        present=1,
        absent=2,
        not_found=0,
        left=0,
        next_step=Judgements(tmp_path / "j").next_step,
    )
    told = f"{judged} queries judged in j, 2 of them not in the library"
    assert repr(result) == f"{told}.{more}"
    assert repr(replace(result, left=3)) == f"{told}; 3 left, which the same command asks.{more}"


# --- the file -------------------------------------------------------------------------------------


def test_what_is_judged_is_kept_and_not_asked_again(tmp_path):
    file = tmp_path / "judged.jsonl"
    kept = Judgements(file)
    assert (len(kept), kept.repaired, file.exists()) == (0, False, False)
    assert kept.left(["a", " b  c ", "b c", "a"]) == ["a", "b c"]
    kept.add(Label("b c", absent=True))
    assert kept.left(["a", "b  c"]) == ["a"]
    again = Judgements(str(file))
    again.add(Label("d", complete=True))
    assert again.left(["a", "b c", "d"]) == ["a"]
    assert (len(again), again.count("absent"), again.count("present")) == (2, 2, 0)
    assert [label.query for label in read_labels(file)] == ["b c", "d"]
    with file.open("a") as opened:
        opened.write('{"query": "a", "rele')
    cut = file.read_bytes()
    again = Judgements(file)
    assert again.left(["a", "d"]) == ["a"]
    assert not again.repaired and file.read_bytes() == cut  # another process may be writing it
    again.add(Label("e", absent=True))
    assert again.repaired
    assert [label.query for label in read_labels(file)] == ["b c", "d", "e"]
    with pytest.raises(QueryError, match="query is empty"):
        again.left(["a", " "])


def test_another_file_is_left_as_it_is(tmp_path):
    file = tmp_path / "labels.csv"
    file.write_text("query,video\na,b.mp4")
    with pytest.raises(SureshotError, match="holds something other than judgements"):
        Judgements(file)
    assert file.read_text() == "query,video\na,b.mp4"
    with pytest.raises(SureshotError, match="cannot be read: is a folder"):
        Judgements(tmp_path)


def test_what_is_no_verdict_is_refused(library, tmp_path):
    file = tmp_path / "j.jsonl"
    for said in (True, "more", "unknown"):  # the last two are said where none was right
        with pytest.raises(SureshotError, match=f"{said!r}; say one of yes, no, absent, again"):
            judge(["red"], lambda hit, said=said: said, to=file, db=library.db)
    for said in (None, "yes"):
        with pytest.raises(SureshotError, match=f"{said!r}; say one of more, absent, unknown"):
            judge(
                ["red"],
                lambda hit: "no",
                ask_more=lambda n, said=said: said,
                to=file,
                db=library.db,
            )
    assert not file.exists()
