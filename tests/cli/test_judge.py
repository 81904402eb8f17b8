"""`sureshot judge`: asked in a terminal, scripted, stopped and taken up again."""

import codecs
import json
import os
import pty
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sureshot.library.labels import append, read_labels
from tests.cli.terminal import COMMAND, spawn
from tests.clips import coloured
from tests.judged import label
from tests.small_library import index


@pytest.fixture
def queries(tmp_path):
    path = tmp_path / "queries.txt"
    path.write_text("red\nyellow\n\nwhite\nred\n")
    return path


@pytest.fixture
def judged(tmp_path):
    return tmp_path / "judged.jsonl"


def judge(library, queries, judged, said, *options):
    """Run without a terminal, the answers one a line."""
    command = ("judge", queries, "--to", judged, "--db", library.db, *options)
    return spawn(*command, stdin=said.encode())


def lines(judged):
    return [json.loads(line) for line in judged.read_text().splitlines()]


def states(judged):
    return [
        (line["query"], sum(m["right"] for m in line["moments"]), line.get("absent", False))
        for line in lines(judged)
    ]


def test_answers_can_come_from_a_file(library, queries, judged):
    ran = judge(library, queries, judged, "x\n\nm\ny\n\x1b[A\nYES\nno\n n \nn\nn\nu\ns\n")
    assert (ran.code, ran.err) == (0, "")
    assert "'x' is none of: y yes, n no" in ran.out
    assert ran.out.count("y yes, n no") == 5 and "\x1b" not in ran.out
    assert states(judged) == [("red", 2, False), ("yellow", 0, False)]
    assert [len({m["video"] for m in line["moments"]}) for line in lines(judged)] == [3, 3]
    assert "2 of 3  yellow" in ran.out
    assert "None of 3 videos is right" in ran.out
    assert ran.out.splitlines()[-2:] == [
        f"2 queries judged in {judged}, 1 of them not found; 1 left, which the same command asks.",
        "48 more, and percentages can be learned from them.",
    ]


def test_the_same_command_goes_on_with_what_is_left(library, queries, judged):
    judge(library, queries, judged, "y\nn\nn\nq\n")
    assert states(judged) == [("red", 1, False)]
    before = judged.read_bytes()
    ran = judge(library, queries, judged, "")
    assert ran.code == 0 and judged.read_bytes() == before
    assert "1 of 2  yellow" in ran.out and "red" not in ran.out.splitlines()[1]
    ran = judge(library, queries, judged, "a\ny\nn\nn\n")
    assert states(judged) == [("red", 1, False), ("yellow", 0, True), ("white", 2, False)]
    ran = judge(library, queries, judged, "")
    assert len(ran.out.splitlines()) == 2
    assert ran.out.startswith("3 queries judged in") and "1 of them not in the library" in ran.out


def test_enough_is_said_with_what_comes_next(library, tmp_path, judged):
    queries = tmp_path / "many.txt"
    queries.write_text("".join(f"red {n}\n" for n in range(51)))
    ran = judge(library, queries, judged, "y\n" * 50 + "q\n", "-k", "1")
    assert ran.out.splitlines()[-2:] == [
        "Enough to learn from; more, up to 100, make the percentages better.",
        f"sureshot calibrate --labels {judged} --db {library.db}",
    ]


def test_json_has_the_counts_and_the_questions_go_elsewhere(library, queries, judged):
    ran = judge(library, queries, judged, "y\nn\nn\na\n", "--json")
    assert json.loads(ran.out) == {
        "schema": 4,
        "labels": str(judged),
        "judged": 2,
        "present": 1,
        "absent": 1,
        "not_found": 0,
        "left": 1,
    }
    assert "right? " in ran.err


@pytest.mark.parametrize(
    "text, said",
    [("", "There is no line in"), ("query,video\nred,a.mp4\n", "something other than judgements")],
)
def test_files_at_fault_are_said(library, queries, judged, text, said):
    if text:
        judged.write_text(text)
    else:
        queries.write_text(text)
    ran = judge(library, queries, judged, "y\n")
    assert (ran.code, ran.out) == (1, "")
    assert said in ran.err and len(ran.err.splitlines()) == 1
    assert not text or judged.read_text() == text


# --- after a search -------------------------------------------------------------------------------


@pytest.fixture
def copied(library, tmp_path):
    """The index of the library in a place of its own, so that judgements can lie in it."""
    return shutil.copytree(library.db, tmp_path / "index")


def after_search(index, query, said):
    return spawn("search", query, "--judge", "--db", index, stdin=said.encode())


def test_a_search_can_be_judged_at_once(copied):
    ran = after_search(copied, "red", "y\n")  # what was said before the end of input is kept
    assert ran.code == 0 and "right? y" in ran.err and "right? " not in ran.out
    assert "1 search judged. 49 more, and percentages can be learned from them." in ran.err
    ran = after_search(copied, " red ", "n\nn\nn\na\n")  # what is said last holds
    assert "1 search judged, 1 of them for what is not here. 49 more, and" in ran.err
    (found,) = read_labels(copied / "judged.jsonl")
    assert (found.query, found.relevant, found.absent) == ("red", (), True)
    one = spawn("search", "blue", "-k", "1", "--judge", "--db", copied, stdin=b"y\ny\ny\n")
    assert one.err.count("right? ") == 1  # of the one hit that was shown
    ran = spawn("status", "--db", copied)
    assert "Judged      2 searches, 1 of them for what is not here. 48 more, and" in ran.out


def test_a_search_that_is_judged_at_once_is_numbered_as_its_table(tmp_path):
    """Of each video one moment is asked about, and so not each row of the table."""
    coloured(tmp_path / "one.mp4", ["red", "yellow"], seconds=4)
    coloured(tmp_path / "two.mp4", ["blue"], seconds=4)
    index(str(tmp_path / "db"), tmp_path)
    ran = after_search(tmp_path / "db", "red", "n\nn\nq\n")
    table = [line.split() for line in ran.out.splitlines() if line[:1].isdigit()]
    assert [(row[0], Path(row[-1]).stem) for row in table] == [
        ("1", "one"),
        ("2", "one"),
        ("3", "two"),
    ]
    asked = [line.split() for line in ran.err.splitlines() if " best at " in line]
    assert [row[0] for row in asked if row[0].isdigit()] == ["1", "3"]


def test_ten_judged_searches_are_learned_from_and_outlive_the_index(copied):
    for number in range(9):
        append(copied / "judged.jsonl", label(f"blue {number}", [], ["/v/1.mp4"]))
    append(copied / "judged.jsonl", label("snow", absent=True))
    ran = after_search(copied, "red", "y\nn\nn\n")
    assert ran.code == 0
    assert "11 searches judged, 1 of them for what is not here. 39 more, and" in ran.err
    spawn("reset", "--yes", "--db", copied)
    assert len(read_labels(copied / "judged.jsonl")) == 11


def test_judgements_are_listed_and_one_is_taken_back(library, queries, judged, sureshot):
    judge(library, queries, judged, "y\nn\nn\na\nn\nn\nn\nu\n")
    before = [label.query for label in read_labels(judged)]
    ran = sureshot("judge", "--list", "--to", judged)
    rows = ran.out.splitlines()
    assert ran.code == 0 and rows[-1].startswith(f"{len(before)} searches judged")
    assert [row.split("  ")[-1].split(":")[0] for row in rows[:-1]] == before
    assert "absent" in rows[1]
    ran = sureshot("judge", "--remove", "2", "--to", judged)
    assert f"Taken back: {before[1]}." in ran.out
    left = json.loads(sureshot("judge", "--list", "--json", "--to", judged).out)["queries"]
    assert [one["query"] for one in left] == [before[0], *before[2:]]
    assert [label.query for label in read_labels(judged)] == [before[0], *before[2:]]
    ran = sureshot("judge", "--remove", "9", "--to", judged)
    assert ran.code == 1 and "There is no judged query 9" in ran.err
    assert sureshot("judge", "--to", judged).code == 2


def test_what_was_judged_stays_when_its_video_is_gone(tmp_path):
    for name in ("red", "green"):
        coloured(tmp_path / f"{name}.mp4", [name], seconds=1)
    index(str(tmp_path / "db"), tmp_path)
    after_search(tmp_path / "db", "red", "y\nn\n")
    after_search(tmp_path / "db", "green", "y\nn\n")
    (tmp_path / "red.mp4").unlink()
    spawn("index", tmp_path, "--prune", "--db", tmp_path / "db")
    ran = spawn("judge", "--list", "--db", tmp_path / "db")
    assert "red.mp4" in ran.out.splitlines()[0] and "not found" not in ran.out
    ran = spawn("judge", "--remove", "1", "--json", "--db", tmp_path / "db")
    assert [one["query"] for one in json.loads(ran.out)["queries"]] == ["green"]


def test_a_sentence_in_place_of_a_file_is_shown_the_way(sureshot):
    ran = sureshot("judge", "a cat")
    assert ran.code == 1 and "To rate one search: sureshot search 'a cat' --judge" in ran.err
    assert "There is no file" in sureshot("judge", "a cat " * 60).err


def test_judgements_follow_a_folder_that_is_renamed(tmp_path):
    (tmp_path / "Videos").mkdir()
    for name in ("red", "green"):
        coloured(tmp_path / "Videos" / f"{name}.mp4", [name], seconds=1)
    index(str(tmp_path / "db"), tmp_path / "Videos")
    after_search(tmp_path / "db", "red", "y\nn\n")
    (tmp_path / "Videos").rename(tmp_path / "Filme")
    index(str(tmp_path / "db"), tmp_path / "Filme")
    ran = spawn("judge", "--list", "--db", tmp_path / "db")
    assert "Filme/red.mp4" in ran.out and "Videos" not in ran.out
    ran = spawn("calibrate", "--db", tmp_path / "db")
    assert ran.code == 1 and "1 judged query; 50 are needed" in ran.err


def test_an_index_keeps_what_is_judged_of_it(copied, queries):
    ran = spawn("judge", queries, "--db", copied, stdin=b"y\nn\nn\nq\n")
    assert ran.code == 0
    assert states(copied / "judged.jsonl") == [("red", 1, False)]
    ran = spawn("calibrate", "--db", copied)
    assert ran.code == 1 and "1 judged query; 50 are needed" in ran.err
    (copied / "judged.jsonl").unlink()
    ran = spawn("calibrate", "--db", copied)
    assert ran.code == 1 and "No hit of this index was judged yet. `sureshot search" in ran.err


# --- in a terminal --------------------------------------------------------------------------------


# Makes standard input the terminal that Ctrl-C comes from, and then becomes the command.
TAKE = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); "
TAKE += "os.execv(sys.argv[1], sys.argv[1:])"


class Session:
    """A command in a terminal that is answered as it asks."""

    def __init__(self, *arguments):
        self.ours, theirs = pty.openpty()
        self.process = subprocess.Popen(
            [sys.executable, "-c", TAKE, *COMMAND, *map(str, arguments)],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self.sent = ""
        self._decoded = codecs.getincrementaldecoder("utf-8")()  # a read may end within a letter

    def until(self, text):
        """Read until a text was sent, and forget all up to its end."""
        deadline = time.monotonic() + 60
        while text not in self.sent:
            assert time.monotonic() < deadline, self.sent
            self.sent += self._decoded.decode(os.read(self.ours, 4096))
        self.sent = self.sent.split(text, 1)[1]

    def type(self, keys):
        os.write(self.ours, keys)

    def end(self):
        """Read what is left, so that nothing blocks; the exit code."""
        try:
            while part := os.read(self.ours, 4096):
                self.sent += self._decoded.decode(part)
        except OSError:
            pass
        os.close(self.ours)
        return self.process.wait(60)


def test_keys_that_are_no_answer_are_none(library, queries, judged):
    session = Session("judge", queries, "--to", judged, "--db", library.db)
    for key in (b"\x1b[A", "\u00e4".encode(), b"y", b"\x1bOA", b"n", b"n", b"q"):
        session.until("right? ")
        session.type(key)
    assert session.end() == 0
    assert states(judged) == [("red", 1, False)]


def test_control_c_keeps_what_is_judged(library, queries, judged):
    session = Session("judge", queries, "--to", judged, "--db", library.db)
    for key in (b"y", b"n", b"n", b"y"):
        session.until("right? ")
        session.type(key)
    session.until("right? ")
    session.type(b"\x03")
    assert session.end() == 130
    assert "1 query judged" in session.sent
    assert "Traceback" not in session.sent
    assert states(judged) == [("red", 1, False)]


def test_a_kill_loses_the_query_in_hand_at_most(library, queries, judged):
    session = Session("judge", queries, "--to", judged, "--db", library.db)
    for key in (b"y", b"y", b"n", b"n"):
        session.until("right? ")
        session.type(key)
    session.until("right? ")
    session.process.send_signal(signal.SIGKILL)
    assert session.end() == -signal.SIGKILL
    assert states(judged) == [("red", 2, False)]
    ran = judge(library, queries, judged, "y\nn\nn\ny\nn\nn\n")
    assert [state[0] for state in states(judged)] == ["red", "yellow", "white"]
    assert "1 of 2  yellow" in ran.out


def test_what_is_rated_is_what_was_typed(tmp_path):
    """With the bundled model, which corrects words and searches some queries by name alone."""
    (tmp_path / "videos").mkdir()
    for name in ("VID_2085", "VID_2086"):
        coloured(tmp_path / "videos" / f"{name}.mp4", ["red"], seconds=1)
    spawn("index", tmp_path / "videos", "--db", tmp_path / "db")
    (tmp_path / "queries.txt").write_text("VID_2085\nelefant\n")
    spawn("judge", tmp_path / "queries.txt", "-k", "1", "--db", tmp_path / "db", stdin=b"y\ny\n")
    spawn("search", "girafe", "-k", "1", "--judge", "--db", tmp_path / "db", stdin=b"y\n")
    rated = [one.query for one in read_labels(tmp_path / "db" / "judged.jsonl")]
    assert rated == ["VID_2085", "elefant", "giraffe"]
