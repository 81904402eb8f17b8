"""`sureshot index`."""

import json
import re
import shlex
import signal
import subprocess
import time
from pathlib import Path
from typing import get_args

import pytest

from sureshot.cli import index as module
from sureshot.cli import terminal
from sureshot.cli.terminal import console
from sureshot.library.index_result import Indexed, IndexProgress
from sureshot.store.rows import Decode
from tests.cli.terminal import COMMAND, in_terminal
from tests.clips import coloured

TINY = ("--model", "tiny", "--workers", "1")


@pytest.fixture
def videos(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "a.mp4", ["red"], seconds=2, rate=5)
    coloured(folder / "b.mp4", ["blue"], seconds=1, rate=5)
    return folder


@pytest.fixture
def index(sureshot, tmp_path):
    def call(*arguments):
        ran = sureshot("index", *arguments, "--db", tmp_path / "db", *TINY)
        assert "\x1b" not in ran.out + ran.err
        return ran

    return call


def steady(text):
    """A report without what differs from run to run."""
    return re.sub(r"in [\d.]+ s, [\d.]+x", "in N s, Nx", text)


def test_a_first_run_says_what_it_did_and_where(index, videos, tmp_path):
    ran = index(videos)
    assert ran.code == 0 and ran.err.startswith("Searches with tiny show no percentages yet.")
    assert steady(ran.out).splitlines() == [
        "2 videos found: 2 indexed.",
        "Indexed 3 s of video (2 windows) in N s, Nx real time.",
        f"Index: {tmp_path / 'db'}",
    ]


def test_a_second_run_says_that_nothing_is_new(index, videos, tmp_path):
    index(videos)
    assert index(videos).out.splitlines() == [
        "2 videos found: nothing new, 2 unchanged.",
        f"Index: {tmp_path / 'db'}",
    ]


def test_a_folder_without_videos_is_said_and_an_error(index, tmp_path):
    ran = index(tmp_path)
    assert ran.code == 1
    assert ran.out.splitlines()[0] == f"No videos in {tmp_path}. Single photos are not indexed."


def test_a_folder_whose_last_video_is_forgotten_is_no_error(index, videos):
    index(videos)
    for video in videos.iterdir():
        video.unlink()
    assert index(videos).code == 1
    assert index(videos, "--prune").code == 0


def test_a_path_that_does_not_exist_makes_no_index(index, tmp_path):
    ran = index(tmp_path / "typo", tmp_path / "another")
    assert (ran.code, ran.out) == (1, "")
    assert f"There is nothing at {tmp_path / 'typo'}, {tmp_path / 'another'};" in ran.err
    assert not (tmp_path / "db").exists()


@pytest.mark.parametrize("name", ["unplugged", "loop", "n" * 300])
def test_one_path_that_cannot_be_read_does_not_stop_the_others(index, videos, tmp_path, name):
    (tmp_path / "loop").symlink_to("loop")
    ran = index(tmp_path / name, videos)
    assert ran.code == 1
    assert "2 videos found: 2 indexed, 1 failed." in ran.out
    assert f"failed: {tmp_path / name} — " in ran.out
    assert not ran.err


def test_a_broken_video_in_a_folder_is_told_and_no_error(index, videos):
    (videos / "broken.mp4").write_text("no video")
    ran = index(videos)
    assert ran.code == 0
    assert "3 videos found: 2 indexed, 1 failed." in ran.out
    assert f"failed: {videos / 'broken.mp4'} — " in ran.out
    ran = index(videos)
    assert "nothing new, 2 unchanged, 1 failed before." in ran.out
    assert "--force" in ran.out


def test_files_that_are_gone_are_told_and_forgotten_when_asked(index, videos, tmp_path):
    index(videos)
    (videos / "b.mp4").unlink()
    assert "Deleted on disk, still indexed: 1 video; --prune removes" in (said := index(videos).out)
    assert "is the disk connected" not in said
    (videos / "disk").mkdir()
    coloured(videos / "disk" / "c.mp4", ["green"], seconds=1)
    index(videos)
    (videos / "disk").rename(tmp_path / "unplugged")
    away = f"Not there: 1 video of {videos}/disk; is the disk connected? --prune would forget them."
    assert away in index(videos).out.replace("\n", " ")
    (tmp_path / "unplugged").rename(videos / "disk")
    assert "Deleted on disk, removed from the index: 1 video." in index(videos, "--prune").out


def test_json_tells_the_same(index, videos, tmp_path):
    (videos / "broken.mp4").write_text("no video")
    ran = index(videos, "--json")
    (line,) = ran.out.splitlines()
    told = json.loads(line)
    assert (told["schema"], told["index"]) == (4, str(tmp_path / "db"))
    assert (told["found"], told["indexed"], told["windows"], told["seconds"]) == (3, 2, 2, 3.0)
    assert told["failed"][0]["path"] == str(videos / "broken.mp4")
    assert told["interrupted"] is False


def test_settings_of_an_index_are_kept_and_others_refused(index, sureshot, videos, tmp_path):
    index(videos, "--window", "5", "--frames", "4", "--no-scenes")
    settings = json.loads(sureshot("status", "--db", tmp_path / "db", "--json").out)["settings"]
    assert (settings["window"], settings["frames"], settings["scenes"]) == (5.0, 4, False)
    assert index(videos).code == 0
    ran = index(videos, "--window", "6")
    assert (ran.code, ran.out) == (1, "")
    assert "window = 5.0" in ran.err


@pytest.mark.parametrize(
    "option",
    [
        ["--frames", "0"],
        ["--window", "0.5"],
        ["--frame-rate", "nan"],
        ["--frames", "65"],
        ["--engine", "steam"],
    ],
)
def test_settings_out_of_range_are_refused_before_an_index_is_made(
    sureshot, videos, tmp_path, option
):
    ran = sureshot("index", videos, "--db", tmp_path / "db", *option)
    assert (ran.code, ran.out) == (2, "")
    assert option[0].removeprefix("--").replace("-", "_") in ran.err
    assert not (tmp_path / "db").exists()


def test_frames_to_decode_are_those_that_settings_know(index, sureshot, videos, tmp_path):
    assert get_args(module.Decoded) == get_args(Decode)
    index(videos, "--decode", "keyframes")
    told = json.loads(sureshot("status", "--db", tmp_path / "db", "--json").out)
    assert told["settings"]["decode"] == "keyframes"


def test_a_new_index_with_the_bundled_model_says_what_that_means(sureshot, tmp_path):
    pytest.importorskip("all_minilm_l6_v2")
    ran = sureshot("index", tmp_path, "--db", tmp_path / "db")
    assert "--model openai/clip-vit-base-patch16" in ran.err
    assert "--model" not in sureshot("index", tmp_path, "--db", tmp_path / "db").err


def told(capsys, **values):
    values = {"found": 3, "bytes_found": 9, "bytes_done": 9, "elapsed": 2.0} | values
    module._print(console(), Indexed(index="/index", **values), [Path("/v")])
    return capsys.readouterr().out.splitlines()


def test_a_run_tells_every_number_that_is_not_zero(capsys):
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
        away=1,
        windows=8,
        seconds=90.0,
        worded={"subtitles": 3},
        lines={"subtitles": 8},
        unread={"picture": 24 * 3600.0},
        left_out=[(Path("/v/c.mp4"), "c.srt is left out: it is not text")],
    )
    lines[3] = re.sub(r"\d[\d hmin]* more", "N min more", lines[3])
    assert lines == [
        "3 videos found: 1 indexed, 2 unchanged, 3 moved, 4 identical to another, "
        "1 failed, 5 failed before.",
        "Indexed 1 min 30 s of video (8 windows) in 2.0 s, 45.0x real time.",
        "3 videos have subtitles (8 new lines).",
        "Text in the picture is read with --words all, about N min more.",
        "  failed: /v/a.mp4 — is broken",
        "  damaged, indexed as far as possible: /v/b.mp4 — breaks off",
        "  words: /v/c.mp4 — c.srt is left out: it is not text",
        "Files that failed before are listed by `sureshot status`; --force retries them.",
        "Deleted on disk, removed from the index: 6 videos.",
        "Not there now, still indexed: 1 video; is the disk connected? If it is gone for good: "
        "`sureshot remove PATH`.",
        "Deleted on disk, still indexed: 7 videos; --prune removes them.",
        "Index: /index",
    ]


def test_a_run_names_twenty_failures_and_counts_the_rest(capsys):
    lines = told(capsys, failed=[(Path(f"/v/{n}.mp4"), "is broken") for n in range(50)])
    assert sum("is broken" in line for line in lines) == 20
    assert "  … and 30 more; `sureshot status` lists them all." in lines


def test_reasons_cannot_steer_the_terminal(capsys):
    lines = told(capsys, failed=[(Path("/v/\x1b[2J.mp4"), "frame \x1b[2J\udce9 is broken")])
    assert not any("\x1b" in line for line in lines)


# --- progress -------------------------------------------------------------------------------------


def test_a_narrow_terminal_shows_progress_in_words(videos, tmp_path):
    code, sent = in_terminal("index", videos, "--db", tmp_path / "db", *TINY, columns=40)
    assert code == 0
    assert "2 of 2 videos" in sent
    assert "━" not in sent


def result(**values):
    return Indexed(found=10, bytes_found=1000, **values)


def test_a_pipe_gets_a_line_now_and_then(capsys, monkeypatch):
    now, broken = [0.0], [(Path("a"), "b")]
    monkeypatch.setattr(terminal.time, "monotonic", lambda: now[0])
    with terminal.Bar(console(err=True)) as shown:
        progress = module._shown_in(shown)
        for seconds, values in (
            (10, {}),
            (20, {"unchanged": 5, "bytes_done": 500}),
            (25, {"unchanged": 5, "bytes_done": 500}),
            (30, {"unchanged": 5, "indexed": 1, "bytes_done": 600, "seconds": 60.0}),
            (40, {"unchanged": 5, "bytes_done": 500, "bytes_begun": 100, "failed": broken}),
            (50, {"unchanged": 9, "bytes_done": 500, "bytes_begun": 250, "seconds_begun": 90.0}),
        ):
            now[0] = seconds
            progress(result(**values, elapsed=float(seconds)))
    first, second, third, fourth, fifth = capsys.readouterr().err.splitlines()
    assert first == "0 of 10 videos"
    # Neither what cost no time nor loading the model tells how long the rest will take.
    assert second == "5 of 10 videos"
    assert third == "6 of 10 videos, 1 min of video, 2.0 times real time"
    assert fourth == "6 of 10 videos, 1 failed"
    # The one video that is left may be a film: its time goes on.
    said = "9 of 10 videos, 1 min 30 s of video, 1.8 times real time, about 33 s left"
    assert fifth == said


def test_the_first_estimate_is_near_the_truth():
    # A run of 33 seconds, 10 of which load the model, was said to take twenty minutes.
    progress, said = IndexProgress(), []
    for tenth in range(100, 330):
        share, seconds = (tenth - 100) / 230, tenth / 10
        progress.update(
            result(elapsed=seconds, bytes_begun=round(1000 * share), seconds_begun=60 * share)
        )
        if words := re.fullmatch(r", about (\d+) s left", progress.left):
            said.append((int(words[1]), 33 - seconds))
    assert len(said) > 100
    assert all(abs(estimate - truth) < 2 for estimate, truth in said)


def test_ctrl_c_keeps_what_is_indexed_and_ends_with_130(tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(200):
        coloured(folder / f"{number:03}.mp4", ["red"], seconds=0.4, size=(32, 24))
    command = [*COMMAND, "index", folder, "--db", tmp_path / "db", *TINY]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    while not list((tmp_path / "db").glob("videos.lance/data/*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (130, "")
    assert out.startswith("Interrupted. What is indexed is kept; run the same command to continue.")
    indexed = int(re.search(r"found: (\d+) indexed", out).group(1))
    assert 0 < indexed < 200


@pytest.mark.parametrize("name", ["photo.jpg", "my photo.HEIC"])
def test_of_a_photo_it_is_said_what_photos_are_for(index, tmp_path, name):
    (tmp_path / name).write_bytes(b"\xff\xd8\xff")
    ran = index(tmp_path / name)
    assert ran.code == 1
    assert "is a photo, and only videos are indexed" in ran.out
    assert f"sureshot search --like {shlex.quote(name)}" in ran.out
