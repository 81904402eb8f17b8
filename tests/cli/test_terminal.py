"""Progress in a terminal and elsewhere."""

import io
import json
import os
import time
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console
from rich.table import Table
from rich.text import Text

from sureshot.cli import terminal
from sureshot.cli import terminal as module
from sureshot.cli.terminal import Bar, compute_alone
from sureshot.library import results
from sureshot.library.results import Answer, Confidence, Copy, FrameScore, Hit, Piece
from sureshot.library.video_list import VideoPage
from sureshot.store.rows import VideoRecord


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def clock(monkeypatch):
    """Seconds that the test decides."""
    now = [100.0]
    monkeypatch.setattr(module.time, "monotonic", lambda: now[0])
    return now


def plain():
    return Console(file=io.StringIO(), width=1000)


def test_elsewhere_a_line_comes_now_and_then(clock):
    console = plain()
    with Bar(console) as bar:
        bar.update("videos", 1, 40)
        clock[0] += 9
        bar.update("videos", 9, 40)
        clock[0] += 1
        bar.update("videos", 10, 40, ", slow")
        clock[0] += 1
        bar.update("videos", 11, 40)
        clock[0] += 9
        bar.update("videos", 40, 40)
    lines = console.file.getvalue().splitlines()
    assert lines == ["10 of 40 videos, slow, about 30 s left", "40 of 40 videos"]


def test_the_time_left_begins_anew_with_other_work(clock):
    console = plain()
    with Bar(console) as bar:
        bar.update("videos", 0, 4)
        clock[0] += 1000
        bar.update("captions", 0, 100)
        clock[0] += 50
        bar.update("captions", 1, 100)
    first, second = console.file.getvalue().splitlines()
    assert first == "0 of 100 captions"
    assert second == "1 of 100 captions, about 1 h 22 min left"  # 99 times 50 seconds, to a minute


def test_a_terminal_shows_a_bar_and_takes_it_away():
    console = Console(file=Terminal(), force_terminal=True, width=100)
    with Bar(console) as bar:
        bar.update("steps", 3, 7, ", loss 1.5")
        until = time.monotonic() + 60
        while "3 of 7 steps, loss 1.5" not in console.file.getvalue():  # drawn by a thread
            assert time.monotonic() < until
            time.sleep(0.01)
        bar.update("runs", 0, 0)
    assert console.file.getvalue().rstrip().endswith("\x1b[2K")  # the line is cleared at last


def test_a_fault_inside_is_not_swallowed_and_ends_the_bar():
    console = Console(file=Terminal(), force_terminal=True, width=100)
    with pytest.raises(ValueError, match="a fault"), Bar(console) as bar:
        bar.update("steps", 1, 2)
        raise ValueError("a fault")
    assert "\x1b[?25h" in console.file.getvalue()  # the cursor is back


def answer(*hits, warnings=()):
    return Answer("red", hits, "not calibrated", "tiny", 9, 0.1, warnings)


def hit(path="/v/a.mp4", copies=()):
    frames = (FrameScore(3725.0, 0.5),)
    same = tuple(Copy(Path(copy), 61.0, 90.0) for copy in copies)
    return Hit(1, Path(path), 3720.0, 3750.0, 0.5, frames, same)


def printed(capsys, *answers):
    terminal.print_answers(terminal.console(), answers)
    return capsys.readouterr().out.splitlines()


def test_hits_are_a_table_with_pieces_of_a_scene_and_copies_below_them(capsys):
    first = replace(hit(copies=["/v/b.mp4"]), pieces=(Piece(3800.0, 3810.0),))
    lines = printed(capsys, answer(first, warnings=("Mind the gap.",)))
    assert lines == [
        "red",
        "note: Mind the gap.",
        "   best at             time  score  video",
        "1  1:02:05  1:02:00-1:02:30  0.500  /v/a.mp4",
        "                                      same scene: 1:03:20-1:03:30",
        "                                      copy: /v/b.mp4  1:01-1:30",
        "Not calibrated: the best match comes first, but even that may be wrong.",
    ]


@pytest.mark.parametrize(
    "yours, learned",
    [
        (True, "your own judgements."),
        (False, "other people's videos. Rate a few searches with --judge to fit them to yours."),
    ],
)
def test_percentages_stand_beside_the_hits_and_where_they_come_from_below(capsys, yours, learned):
    confidence = Confidence(
        right=0.57, coverage=0.9, plausible=19, prior=0.5, valid_for="mine", personal=yours
    )
    known = replace(
        answer(replace(hit(), probability=0.57)),
        status="several plausible",
        present=0.8,
        confidence=confidence,
    )
    assert printed(capsys, known) == [
        "red",
        "Not sure: 57% that the first result is right, 23% that only a later one is, 20% that it's "
        "not in your videos. If it's there, it's among the first 19 in 90% of searches.",
        "   best at  right             time  score  video",
        "1  1:02:05    57%  1:02:00-1:02:30  0.500  /v/a.mp4",
        f"Percentages are calibrated on {learned} If you know it's there, add --present.",
    ]


def test_one_long_path_does_not_change_the_form_of_the_list():
    path = "/home/somebody/Videos/2024 summer/by the lake/family holiday at the lake.mp4"
    out = Console(file=io.StringIO(), width=80)
    terminal.print_answer(out, answer(hit(), hit(path)))
    assert [line.rstrip() for line in out.file.getvalue().splitlines()] == [
        "red",
        "   best at             time  score  video",
        "1  1:02:05  1:02:00-1:02:30  0.500  /v/a.mp4",
        "1  1:02:05  1:02:00-1:02:30  0.500  /home/somebody/Videos/2024 summer/",
        "                                    by the lake/family holiday at the lake.mp4",
    ]


def test_a_name_is_not_torn_where_the_terminal_is_narrower_than_its_path():
    path = "/home/somebody/Videos/2024 summer/by the lake/family holiday at the lake.mp4"
    out = Console(file=io.StringIO(), width=60)
    terminal.print_answer(out, answer(hit(path, copies=["/v/b.mp4"])))
    assert out.file.getvalue().splitlines() == [
        "red",
        "1  best at 1:02:05  1:02:00-1:02:30  0.500",
        "/home/somebody/Videos/2024 summer/by the lake/",
        "family holiday at the lake.mp4",
        "  copy: /v/b.mp4  1:01-1:30",
    ]


def test_paths_are_shown_from_here_or_from_home(monkeypatch, tmp_path):
    home, here = tmp_path / "home", tmp_path / "home" / "here"
    here.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    assert terminal.short(here / "a" / "b.mp4") == "a/b.mp4"
    assert terminal.short(home / "c.mp4") == "~/c.mp4"
    assert terminal.short(tmp_path / "d.mp4") == str(tmp_path / "d.mp4")
    assert terminal.short(here) == "~/here"
    assert terminal.short(home) == str(home)


@pytest.mark.parametrize(
    "text", ["plain", "é日本🐕", "\x1b\x7f\x9b\u2028\u202e\U000e0041", "\udce9"]
)
def test_json_has_no_character_that_could_steer_a_terminal_and_loses_none(capsys, text):
    terminal.print_json({"text": text})
    out = capsys.readouterr().out
    assert out.endswith("\n") and out[:-1].isprintable()
    assert json.loads(out) == {"schema": 4, "text": text}


def test_a_path_that_is_too_long_for_the_line_gets_lines_of_its_own():
    out = Console(file=io.StringIO(), width=30)
    long, short = Path("/films/holidays of 2024/the beach.mp4"), Path("/v/a.mp4")
    terminal.print_paths(out, "failed", [(short, "is cut"), (long, "is no video")], "red")
    terminal.print_path(out, "Index:", str(long))
    assert out.file.getvalue().splitlines() == [
        "  failed: /v/a.mp4 — is cut",
        "  failed:",
        "    /films/holidays of 2024/",
        "    the beach.mp4",
        "    is no video",
        "Index:",
        "    /films/holidays of 2024/",
        "    the beach.mp4",
    ]


def test_what_the_user_says_stays(monkeypatch) -> None:
    monkeypatch.delenv("OPENBLAS_NUM_THREADS", raising=False)
    compute_alone()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "1"
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "3")
    compute_alone()
    assert os.environ["OPENBLAS_NUM_THREADS"] == "3"


def test_of_thousands_of_copies_a_few_are_listed():
    copies = tuple(Copy(Path(f"/v/{number}.mp4"), 0.0, 5.0) for number in range(2000))
    hit = Hit(1, Path("/v/a.mp4"), 0.0, 5.0, 0.5, (FrameScore(1.0, 0.5),), copies=copies)
    assert terminal.videos_of(hit)[-2:] == ["  copy: /v/4.mp4  0:00-0:05", "  and 1995 more copies"]


@pytest.mark.parametrize("grid", [False, True])
def test_a_table_in_a_pipe_is_what_rich_would_print_without_its_trailing_spaces(monkeypatch, grid):
    rows = [
        ("1 s", Text("日本語", "red"), Text("/a/日本.mp4\n  failed: x [bold]y[/] :smile:\n\n= b")),
        ("10 min 3 s", "-0.123", Text("é\u0301 of all  ")),
        ("", "", ""),
    ]

    def made() -> Table:
        names = "length", "", "video"
        table = Table.grid(padding=(0, 2, 0, 0)) if grid else terminal._table(*names)
        for row in rows:
            table.add_row(*row)
        return table

    slow = Console(file=io.StringIO(), width=1000, highlight=False, emoji=False, markup=False)
    slow.print(made())
    quick = Console(file=io.StringIO(), width=1000)
    monkeypatch.setattr(Table, "__rich_console__", None)
    terminal.print_table(quick, made())
    printed = quick.file.getvalue().splitlines()
    assert printed == [line.rstrip() for line in slow.file.getvalue().splitlines()]


def test_a_list_is_shown_while_files_are_looked_for(monkeypatch):
    """Of thousands, or on a disk that answers slowly, the first come at once."""
    out = Console(file=io.StringIO(), width=70, force_terminal=True, color_system=None)
    printed = []
    monkeypatch.setattr(
        results, "is_gone", lambda path: printed.append(out.file.getvalue().count("\n"))
    )
    records = [
        VideoRecord(path=Path(f"/films/{name}"), kind="file", size=1, mtime_ns=0, reason=why)
        for name, why in [("a.mp4", ""), ("b" * 40 + ".mp4", "is no video"), ("c.mp4", "")]
    ]
    terminal.print_videos(out, VideoPage(tuple(records), total=2, failed=1, seconds=0.0))
    lines = out.file.getvalue().splitlines()
    assert printed == [1, 2, 6] and max(map(len, lines)) <= 70
    column = lines[0].index("video")
    assert [line[column:].rstrip() for line in lines[1:-1]] == [
        "/films/a.mp4",
        "/films/",
        "b" * 30,
        "b" * 10 + ".mp4",
        "  failed: is no video",
        "/films/c.mp4",
    ]


def test_why_a_video_failed_is_broken_between_words_not_at_slashes():
    out = Console(file=io.StringIO(), width=70, force_terminal=True, color_system=None)
    why = "breaks off at 10/12 of its length"
    one = VideoRecord(path=Path("/a.mp4"), kind="file", size=1, mtime_ns=0, reason=why)
    terminal.print_videos(out, VideoPage((one,), total=0, failed=1, seconds=0.0))
    lines = [line.strip() for line in out.file.getvalue().splitlines()]
    assert lines[2:-1] == ["failed: breaks off at 10/12", "of its length"]
