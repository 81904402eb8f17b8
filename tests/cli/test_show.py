"""How things look on a terminal and elsewhere."""

import json
from pathlib import Path

import pytest

from sureshot.cli import show
from sureshot.library.answer import Answer, FrameScore, Hit
from sureshot.library.ingest import Report


def answer(*hits, warnings=()):
    return Answer("red", hits, "not calibrated", "tiny", 9, 0.1, warnings)


def hit(path="/v/a.mp4", copies=()):
    frames = (FrameScore(3725.0, 0.5),)
    return Hit(1, Path(path), 3720.0, 3750.0, 0.5, frames, tuple(map(Path, copies)))


def printed(capsys, *answers):
    show.print_answers(show.console(), answers)
    return capsys.readouterr().out.splitlines()


def test_hits_are_a_table_and_their_copies_below_them(capsys):
    lines = printed(capsys, answer(hit(copies=["/v/b.mp4"]), warnings=("Mind the gap.",)))
    assert lines == [
        "red",
        "   score             time  best at  video",
        "1  0.500  1:02:00-1:02:30  1:02:05  /v/a.mp4",
        "                                      = /v/b.mp4",
        "note: Mind the gap.",
        f"not calibrated: {show._MEANING['not calibrated']}",
    ]


def test_several_answers_share_one_line_about_their_scores(capsys):
    lines = printed(capsys, answer(hit()), answer(), answer(hit()))
    assert sum("not calibrated" in line for line in lines) == 1
    assert lines.count("") == 2


@pytest.mark.parametrize("order", [[0, 1], [1, 0]])
def test_one_answer_with_hits_is_enough_for_that_line(capsys, order):
    both = [answer(), answer(hit())]
    assert "not calibrated" in printed(capsys, *(both[i] for i in order))[-1]


def test_answers_without_hits_have_no_scores_to_explain(capsys):
    assert printed(capsys, answer(warnings=("Nothing is indexed.",))) == [
        "red",
        "note: Nothing is indexed.",
    ]


def test_no_answers_print_nothing(capsys):
    assert printed(capsys) == []


def test_paths_are_shown_from_here_or_from_home(monkeypatch, tmp_path):
    home, here = tmp_path / "home", tmp_path / "home" / "here"
    here.mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(here)
    assert show.short(here / "a" / "b.mp4") == "a/b.mp4"
    assert show.short(home / "c.mp4") == "~/c.mp4"
    assert show.short(tmp_path / "d.mp4") == str(tmp_path / "d.mp4")
    assert show.short(here) == "~/here"
    assert show.short(home) == str(home)


@pytest.mark.parametrize(
    "seconds, words",
    [
        (0, "0 s"),
        (0.4, "0 s"),
        (59.6, "1 min"),
        (61, "1 min 1 s"),
        (3599.9, "1 h"),
        (7260, "2 h 1 min"),
        (360_000, "100 h"),
    ],
)
def test_lengths_of_time_in_words(seconds, words):
    assert show.duration(float(seconds)) == words


@pytest.mark.parametrize(
    "text", ["plain", "é日本🐕", "\x1b\x7f\x9b\u2028\u202e\U000e0041", "\udce9"]
)
def test_json_has_no_character_that_could_steer_a_terminal_and_loses_none(capsys, text):
    show.print_json({"text": text})
    out = capsys.readouterr().out
    assert out.endswith("\n") and out[:-1].isprintable()
    assert json.loads(out) == {"text": text}


def report(**values):
    return Report(**{"found": 3, "bytes_found": 9, "bytes_done": 9, "elapsed": 2.0} | values)


def told(capsys, **values):
    show.print_report(show.console(), report(**values), "/index")
    return capsys.readouterr().out.splitlines()


def test_a_report_tells_every_number_that_is_not_zero(capsys):
    lines = told(
        capsys,
        indexed=1,
        unchanged=2,
        moved=3,
        copied=4,
        failed=[(Path("/v/a.mp4"), "is broken")],
        notes=[(Path("/v/b.mp4"), "breaks off")],
        known_failures=5,
        pruned=6,
        missing=7,
        windows=8,
        seconds=90.0,
    )
    assert lines == [
        "3 videos found: 1 indexed, 2 unchanged, 3 moved, 4 with the content of another, "
        "1 failed, 5 failed before.",
        "1 min 30 s of video in 8 windows; took 2 s, 45.0 times real time.",
        "  failed: /v/a.mp4 — is broken",
        "  damaged, indexed as far as it goes: /v/b.mp4 — breaks off",
        "What failed before is tried again with --force; `sureshot status` lists it.",
        "Gone from disk and forgotten: 6 videos.",
        "Gone from disk, still indexed: 7 videos; --prune forgets what is gone.",
        "Index: /index",
    ]


def test_a_report_of_an_interrupted_run_says_so_first(capsys):
    assert told(capsys, interrupted=True)[0].startswith("Interrupted. What is indexed stays")


def test_a_report_names_twenty_failures_and_counts_the_rest(capsys):
    lines = told(capsys, failed=[(Path(f"/v/{n}.mp4"), "is broken") for n in range(50)])
    assert sum("is broken" in line for line in lines) == 20
    assert "  … and 30 more; `sureshot status` lists them all." in lines


def test_reasons_cannot_steer_the_terminal(capsys):
    lines = told(capsys, failed=[(Path("/v/\x1b[2J.mp4"), "frame \x1b[2J\udce9 is broken")])
    assert not any("\x1b" in line for line in lines)
