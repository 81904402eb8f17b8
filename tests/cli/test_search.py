"""`sureshot search`, `describe` and `export`."""

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import av
import pytest
from PIL import Image

from sureshot.cli.search import player_of
from sureshot.errors import SureshotError
from tests.cli.terminal import check_snapshot, in_terminal, spawn
from tests.clips import coloured
from tests.small_library import index


@pytest.fixture
def search(sureshot, library):
    """Runs `search` on the library; checks what every answer has in common."""

    def call(*arguments):
        ran = sureshot("search", *arguments, "--db", library.db)
        assert "%" not in ran.out
        assert "\x1b" not in ran.out + ran.err
        return ran

    return call


def rows(ran):
    """Rank, score, range and file name of each hit of a table."""
    lines = [line.split() for line in ran.out.splitlines()]
    return [(int(w[0]), w[1], w[2], Path(w[4]).name) for w in lines if w and w[0].isdigit()]


def answers(ran):
    assert ran.code == 0, ran.err
    return [json.loads(line) for line in ran.out.splitlines()]


def stems(answer):
    return [Path(hit["path"]).stem for hit in answer["hits"]]


def clips(path):
    with av.open(path) as container:
        return sum(1 for _ in container.decode(video=0)) / 5


# --- search ---------------------------------------------------------------------------------------


def test_the_table_of_hits_is_as_it_was(search, library, monkeypatch):
    monkeypatch.chdir(library.videos)
    check_snapshot("search", search("a white", "wall", "-k", "3").out)


def test_the_options_of_a_search_reach_it(search, library, tmp_path, monkeypatch):
    assert search("a", "red", "car").out == search("a red car").out
    assert len(rows(search("red", "--limit", "1"))) == 1
    few = [row[3] for row in rows(search("red", "--per-video", "1"))]
    assert len(few) == len(set(few))
    inside = rows(search("red", "--folder", library.videos / "long"))
    assert {row[3] for row in inside} == {"yellow.mp4"}
    monkeypatch.chdir(tmp_path)
    assert rows(search("red", "--folder", "long")) and not rows(search("red", "--folder", "./long"))
    dated = search("red", "--longer", "0:12", "--since", "2020-01-01", "--sort", "date").out
    assert "date  date from  video" in dated and dated.count("  file  ") == dated.count(".mp4") > 1
    long = rows(search("red", "--longer", "0:12"))
    assert {row[3] for row in long} == {"scenes.mp4", "yellow.mp4"}
    assert search("red", "--shorter", "1").out.endswith("that lasts 1 s or less.\n")
    assert "  copy: " in search("white", "-k", "1").out
    assert "  copy: " not in search("white", "--no-merge-copies").out
    ran = search("красный", "--json", "-k", "2")
    (answer,) = answers(ran)
    assert ran.out.count("\n") == 1 and len(answer["hits"]) == 2
    assert (answer["schema"], answer["status"]) == (4, "not calibrated")
    assert "note: " in search("красный").out.splitlines()[1]


def test_words_that_look_like_options_come_after_two_dashes(sureshot, library):
    ran = sureshot("search", "--json", "--db", library.db, "--", "--red", "-k")
    (answer,) = answers(ran)
    assert answer["query"] == "--red -k"


@pytest.mark.parametrize("wanted", [["--present"], ["--min", "20%"], ["--coverage", "80%"]])
def test_a_search_by_a_video_refuses_what_is_about_percentages(sureshot, library, wanted):
    video = library.videos / "scenes.mp4"
    ran = sureshot("search", "--like", video, *wanted, "--db", library.db)
    assert ran.code and f"{wanted[0]} is about percentages" in ran.err


def test_an_empty_index_is_no_error_and_an_empty_list(sureshot, tmp_path):
    (tmp_path / "v").mkdir()
    index(str(tmp_path / "db"), tmp_path / "v")
    ran = sureshot("search", "red", "--db", tmp_path / "db", "--json")
    assert answers(ran)[0]["hits"] == []
    ran = sureshot("search", "red", "--db", tmp_path / "db")
    assert (ran.code, ran.err) == (0, "")
    assert "sureshot index FOLDER" in ran.out and "calibrated" not in ran.out


@pytest.mark.parametrize(
    "arguments",
    [
        [],
        ["red", "--like", "a.mp4"],
        ["red", "--from-file", "a.txt"],
        ["--like", "a.mp4", "--from-file", "a.txt"],
        ["--from-file", "a.txt", "--explain", "a.png"],
    ],
    ids=" ".join,
)
def test_arguments_that_do_not_go_together_end_with_two(search, arguments):
    ran = search(*arguments)
    assert (ran.code, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 1


def test_a_query_cannot_steer_the_terminal(search, library):
    query = "red\x1b[2J\x1b]0;title\x07\x9b2J\u202e"
    sent = in_terminal("search", query, "--db", library.db, NO_COLOR="1")[1]
    assert not set(sent) & set("\x1b\x07\x9b\u202e")
    assert not set(search(query, "--json").out) & set("\x1b\x9b\u202e")


@pytest.mark.parametrize("name", ["[red]x[", "a\x1b[2Jb", "two\nlines", "c\x9b\u202e", "%"])
def test_odd_file_names_are_shown_safely(sureshot, tmp_path, name):
    path = coloured(tmp_path / "a.mp4", ["red"], seconds=1).rename(tmp_path / f"{name}.mp4")
    index(str(tmp_path / "db"), path)
    ran = sureshot("search", "red", "--db", tmp_path / "db")
    shown = "".join(c if c.isprintable() else "\ufffd" for c in name)
    assert f"{shown}.mp4" in ran.out
    assert not set(ran.out) & set("\x1b\x9b\u202e")
    ran = sureshot("search", "red", "--db", tmp_path / "db", "--json")
    assert answers(ran)[0]["hits"][0]["path"] == str(path)
    assert not set(ran.out) & set("\x1b\x9b\u202e")


# --- many queries ---------------------------------------------------------------------------------


def test_each_line_of_a_file_is_a_query(search, tmp_path):
    lines = tmp_path / "queries.txt"
    lines.write_bytes(b"\xef\xbb\xbfred\r\n\r\n   \r\na  green wall\n\x00\x07\ncaf\xe9 blue\n")
    found = answers(search("--from-file", lines, "--json", "-k", "1"))
    assert [answer["query"] for answer in found] == ["red", "a green wall", "caf\ufffd blue"]
    ran = search("--from-file", lines, "-k", "1")
    assert ran.out.count("Not calibrated") == 1
    assert len(rows(ran)) == 3
    assert "\n\na green wall\n" in ran.out
    lines.write_text("red\r\nça vert\r\n", "utf-16", newline="")
    found = answers(search("--from-file", lines, "--json", "-k", "1"))
    assert [answer["query"] for answer in found] == ["red", "ça vert"]


def test_a_file_that_cannot_be_read_is_an_error(search, tmp_path):
    (tmp_path / "empty.txt").touch()
    for name, said in (
        ("none.txt", "no such file"),
        (".", "is a folder"),
        ("empty.txt", "no line"),
    ):
        ran = search("--from-file", tmp_path / name)
        assert (ran.code, ran.out) == (1, "") and said in ran.err


def test_queries_come_from_standard_input(library):
    arguments = ("search", "--from-file", "-", "--json", "-k", "1", "--db", library.db)
    found = answers(spawn(*arguments, stdin=b"green\n\nblue"))
    assert [answer["query"] for answer in found] == ["green", "blue"]
    ran = spawn(*arguments, stdin=b"\n  \n")
    assert (ran.code, ran.out) == (1, "")
    assert "standard input" in ran.err


# --- more like a video ----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["me@home.mp4", "a@0:01", "b@5.mp4"])
def test_a_name_may_have_an_at_sign(search, tmp_path, name):
    path = coloured(tmp_path / "a.mp4", ["white", "green"], seconds=4, rate=5)
    shutil.move(path, tmp_path / name)
    (answer,) = answers(search("--like", tmp_path / name, "--json"))
    assert answer["query"] == str(tmp_path / name)
    (answer,) = answers(search("--like", f"{tmp_path / name}@0:05", "--json"))
    assert answer["query"] == f"{tmp_path / name}@0:05"
    assert answer["hits"][0]["start"] == pytest.approx(4, abs=0.3)


def test_a_time_outside_the_video_and_a_missing_file_are_errors(search, library, tmp_path):
    ran = search("--like", f"{library.videos / 'scenes.mp4'}@0:13")
    assert (ran.code, ran.out) == (1, "")
    assert "scenes.mp4 is 12 s long; there is nothing at 13 s." in ran.err
    for name in ("gone.mp4", "gone.mp4@0:03", "gone@home"):
        ran = search("--like", tmp_path / name)
        assert (ran.code, len(ran.err.splitlines())) == (1, 1)
        assert "no such file" in ran.err
    assert "is not a time" in search("--like", f"{library.videos / 'red.mp4'}@1:2:3:4").err
    ran = search("--like", f"{library.videos / 'red.mp4'}@noon")
    assert ran.code == 2 and "'noon' is no time in" in ran.err and "write @12.5 or @0:12" in ran.err


# --- explain --------------------------------------------------------------------------------------


def test_the_frames_of_the_hits_are_drawn(search, tmp_path):
    ran = search("red", "-k", "2", "--explain", tmp_path / "hits.png")
    assert ran.code == 0
    assert ran.err == f"Contact sheet: {tmp_path / 'hits.png'}\n"
    with Image.open(tmp_path / "hits.png") as picture:
        assert 800 <= picture.width <= 2000
        assert 400 <= picture.height <= 1500
    assert 5_000 < (tmp_path / "hits.png").stat().st_size < 2_000_000


# --- describe -------------------------------------------------------------------------------------


@pytest.fixture
def sentences(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("a green wall\na red wall\na blue wall\n")
    return path


def test_sentences_are_ranked_for_a_video(sureshot, library, sentences):
    clip = library.videos / "scenes.mp4"
    ran = sureshot("describe", f"{clip}@0:05", sentences, "--db", library.db)
    assert ran.code == 0
    lines = ran.out.splitlines()
    assert lines[0] == f"{clip} at 0:05"
    assert lines[2].split()[2:] == ["a", "green", "wall"]
    assert ran.out.count("Not calibrated") == 1
    assert "%" not in ran.out


def test_sentences_can_be_typed_or_be_in_a_file_with_a_space_in_its_name(
    sureshot, library, tmp_path
):
    file = tmp_path / "my sentences.txt"
    file.write_text("a blue wall\na red wall\n")
    clip = library.videos / "red.mp4"
    for typed in (["a red wall"], ["a blue wall", "a red wall"], [file]):
        ran = sureshot("describe", clip, *typed, "--db", library.db, "--json")
        assert (answers(ran)[0]["texts"][0]["text"], answers(ran)[0]["at"]) == ("a red wall", None)
    ran = sureshot("describe", clip, "nothing.txt", "--db", library.db)
    assert ran.code == 1 and "Cannot read lines from nothing.txt" in ran.err


# --- export ---------------------------------------------------------------------------------------


def test_hits_become_files(sureshot, library, tmp_path):
    ran = sureshot(
        *("export", "green", "-k", "1", "--pad", "1"),
        *("--to", tmp_path / "new" / "out", "--db", library.db),
    )
    assert (ran.code, ran.err) == (0, "")
    (clip,) = (tmp_path / "new" / "out").iterdir()
    assert clip.name == "01 scenes 00.00.03-00.00.09.mp4"
    assert f"wrote {clip}\n" in ran.out
    assert ran.out.count("Not calibrated") == 1
    assert clips(clip) == pytest.approx(6, abs=0.3)


def test_hits_become_a_timeline_or_copies(sureshot, library, tmp_path):
    command = ["export", "green", "-k", "2", "--to", tmp_path, "--db", library.db]
    ran = sureshot(*command, "--as", "edl", "--per-video", "1")
    assert (ran.code, ran.err) == (0, "")
    assert f"wrote {tmp_path / 'green.edl'}\n" in ran.out
    names = (tmp_path / "green.edl").read_text().count("FROM CLIP NAME: ")
    assert names == 2 == len({row[3] for row in rows(ran)})
    assert sureshot(*command, "--copy").code == 0
    assert (tmp_path / "01 scenes 00.00.04-00.00.08 copy.mp4").exists()
    dated = sureshot(*command, "--as", "csv", "--since", "2001-01-01", "--sort", "date")
    assert (dated.code, "date  date from  video" in dated.out) == (0, True)
    assert (tmp_path / "green.csv").read_text().splitlines()[1].endswith(",file")
    none = ("--longer", "1:00"), ("--shorter", "1"), ("--until", "2001-01-01"), ("--folder", "/no")
    for wanted in none:
        ran = sureshot(*command, "--as", "otio", *wanted)
        assert "Nothing is indexed" in ran.out and not (tmp_path / "green.otio").exists()
    ran = sureshot(*command, "--as", "doc")
    assert (ran.code, ran.out) == (2, "")
    assert "There is no format 'doc'; choose clips, otio, fcpxml, edl, m3u, mpv" in ran.err


def test_an_export_knows_the_prior_and_finds_what_the_search_found(sureshot, library, tmp_path):
    ran = sureshot("export", "red", "--to", tmp_path, "--db", library.db, "--prior", "nonsense")
    assert ran.code == 2 and "--prior is 'nonsense'" in ran.err
    more = ("--present", "--prior", "90%", "--no-correct", "--no-merge-copies")
    ran = sureshot("export", "red", "--to", tmp_path, "--db", library.db, *more)
    assert ran.code == 0 and "--judge" not in ran.out


def test_a_clip_with_more_around_it_is_named_after_what_it_holds(sureshot, library, tmp_path):
    at_the_end = (
        "export",
        "blue",
        "-k",
        "1",
        "--pad",
        "9",
        "--folder",
        library.videos / "scenes.mp4",
    )
    sureshot(*at_the_end, "--to", tmp_path, "--db", library.db)
    (clip,) = tmp_path.iterdir()
    assert clip.name == "01 scenes 00.00.00-00.00.12.mp4"  # all of it
    assert clips(clip) == pytest.approx(12, abs=0.3)


def test_an_existing_clip_is_kept_unless_it_may_be_replaced(sureshot, library, tmp_path):
    command = ["export", "green", "-k", "1", "--to", tmp_path, "--db", library.db]
    sureshot(*command)
    (clip,) = tmp_path.iterdir()
    clip.write_bytes(b"mine")
    ran = sureshot(*command)
    assert (ran.code, clip.read_bytes()) == (1, b"mine")
    assert f"not written: {clip} — exists already; --overwrite replaces it" in ran.out
    assert sureshot(*command, "--overwrite").code == 0
    assert clips(clip) == pytest.approx(4, abs=0.3)


def test_what_is_written_and_what_is_not_is_told_in_json(sureshot, tmp_path):
    for name in ("a", "b"):
        coloured(tmp_path / f"{name}.mp4", ["red"], seconds=1)
    index(str(tmp_path / "db"), tmp_path)
    (tmp_path / "b.mp4").unlink()
    command = ["export", "red", "--to", tmp_path / "out", "--db", tmp_path / "db", "--json"]
    ran = sureshot(*command)
    assert ran.code == 1
    told = json.loads(ran.out)
    assert told["written"] == [str(path) for path in (tmp_path / "out").iterdir()]
    (failed,) = told["failed"]
    assert Path(failed["path"]).parent == tmp_path / "out"
    assert "b.mp4 does not exist" in failed["reason"]


def test_a_folder_that_cannot_be_made_is_an_error(sureshot, library, tmp_path):
    (tmp_path / "file").touch()
    for to in (tmp_path / "file", tmp_path / "file" / "out"):
        ran = sureshot("export", "red", "--to", to, "--db", library.db)
        assert (ran.code, ran.out) == (1, "")
        assert ran.err.startswith(f"sureshot: Cannot write to {to}: ")
        assert len(ran.err.splitlines()) == 1


def test_query_after_query_is_answered(library):
    typed = b"green\n\xe2\x80\x8b\nmagenta\n\n"  # one of them is a space of no width
    code, sent = in_terminal("search", "-k", "1", "--db", library.db, typed=typed, NO_COLOR="1")
    assert code == 0
    assert sent.index("search> ") < sent.index("scenes.mp4") < sent.index("yellow.mp4")
    assert sent.count("Not calibrated") == 1 and "The query is empty" in sent
    assert sent.splitlines().count("green") == 1  # as it was typed, and not again above the hits
    assert "Traceback" not in sent


def test_ctrl_d_ends_it(library):
    code, sent = in_terminal("search", "--db", library.db, reply=(b"search> ", b"\x04"))
    assert code == 0
    assert "Traceback" not in sent


@pytest.mark.parametrize("option", ["--open", "--explain"])
def test_options_about_one_answer_need_its_query(library, option):
    code, sent = in_terminal("search", option, "1", "--db", library.db, typed=b"\n", NO_COLOR="1")
    assert code == 2
    assert "give one query with them" in sent


SCRIPT = '#!/bin/sh\nprintf "%s\\n" "$0" "$@" > "{log}.part" && mv "{log}.part" "{log}"\n'


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """Installs players on a machine that has none, and gives what one of them was told."""
    (tmp_path / "bin").mkdir()
    move = shutil.which("mv")
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    log = tmp_path / "log"

    def install(*names):
        for name in names:
            script = tmp_path / "bin" / name
            script.write_text(SCRIPT.format(log=log).replace("mv", move))
            script.chmod(0o755)

    def told():
        until = time.monotonic() + 60
        while not log.exists():
            assert time.monotonic() < until
            time.sleep(0.01)
        program, *arguments = log.read_text().splitlines()
        return Path(program).name, *arguments

    install.told = told
    return install


def test_a_hit_is_played_from_its_best_second_on(sureshot, library, installed):
    installed("mpv", "vlc", "xdg-open")
    ran = sureshot("search", "green", "-k", "2", "--open", "1", "--db", library.db)
    video = library.videos / "scenes.mp4"
    assert ran.code == 0
    program, start, path = installed.told()
    assert (program, path) == ("mpv", str(video))
    assert 4 <= float(start.removeprefix("--start=")) <= 8
    assert ran.err == f"playing: mpv {start} {video}\n"
    assert "scenes.mp4" in ran.out


def test_a_desktop_that_cannot_be_told_a_second_is_told_the_file(sureshot, library, installed):
    installed("xdg-open")
    ran = sureshot("search", "green", "--open", "1", "--db", library.db, "--json")
    assert installed.told() == ("xdg-open", str(library.videos / "scenes.mp4"))
    assert "(the moment is at 0:0" in ran.err
    assert ran.out.count("\n") == 1


def test_each_system_has_its_own_way(library, installed, tmp_path):
    video = library.videos / "red.mp4"
    installed("open", "explorer")
    assert player_of(video, 1.0, platform="darwin")[0] == ["open", str(video)]
    assert player_of(video, 1.0, platform="win32")[0] == ["explorer", str(video)]
    with pytest.raises(SureshotError, match="There is no player here; install mpv or vlc, or play"):
        player_of(video, 1.0, platform="linux")
    installed("vlc")
    assert player_of(video, 1.0)[0] == ["vlc", "--start-time=1.00", str(video)]
    installed("xdg-open")
    assert player_of(tmp_path, 1.0, platform="linux")[0] == ["xdg-open", str(tmp_path)]


def test_a_hit_that_is_not_there_or_gone_cannot_be_opened(sureshot, library, installed, tmp_path):
    installed("mpv")
    ran = sureshot("search", "green", "-k", "1", "--open", "2", "--db", library.db)
    assert ran.code == 1 and "scenes.mp4" in ran.out
    assert ran.err == "sureshot: There is no hit 2 to open; the answer has 1 hit.\n"
    path = coloured(tmp_path / "a.mp4", ["red"], seconds=1)
    index(str(tmp_path / "db"), path)
    path.unlink()
    ran = sureshot("search", "red", "--open", "1", "--db", tmp_path / "db")
    assert (ran.code, ran.err) == (1, f"sureshot: {path} is gone, so hit 1 cannot be opened.\n")
    assert f"{path} (gone)" in ran.out.replace("\n", "")


@pytest.mark.parametrize(
    "option, value, said",
    [
        ("--min", "150", "--min is '150' (15000%); it must be 0% or more and below 100%"),
        ("--min", "100%", "--min is '100%'; it must be 0% or more and below 100%"),
        ("--min", "most", "--min is 'most', which is no percentage; write it as 20%."),
        ("--coverage", "0", "--coverage is '0' (0%); it must be above 0% and below 100%"),
        ("--coverage", "90%%", "--coverage is '90%%', which is no percentage"),
    ],
)
def test_a_percentage_that_is_none_is_refused_with_the_reason(search, option, value, said):
    ran = search("red", option, value)
    assert (ran.code, ran.out) == (2, "")
    assert said in ran.err


@pytest.mark.parametrize(
    "named, nearest", [("tape", "; the nearest name is tapes"), ("Täpes!", "tapes"), ("zzzz", "")]
)
def test_a_folder_that_none_is_named_so_is_said_with_the_nearest(search, named, nearest):
    ran = search("red", "--folder", named)
    assert ran.code == 0
    assert f"and no folder is named {named}" in ran.out
    assert ("the nearest name is" in ran.out) == bool(nearest) and nearest in ran.out


def test_of_two_folders_a_hit_is_in_either(search):
    ran = search("red", "--folder", "tapes", "--folder", "nowhere")
    assert "tapes/" in ran.out and "no folder is named nowhere" in ran.out


def test_misspelt_words_are_corrected_unless_one_insists(sureshot, tmp_path):
    (tmp_path / "videos").mkdir()
    coloured(tmp_path / "videos" / "VID_2085.mp4", ["red"], seconds=1, rate=4)
    sureshot("index", tmp_path / "videos", "--db", tmp_path / "db")
    shown = sureshot("search", "elefant", "--db", tmp_path / "db").out.splitlines()
    assert shown[0] == "elephant"
    assert (
        "note: Showing results for “elephant”. --no-correct searches for “elefant” instead."
        in shown
    )
    typed = sureshot("search", "elefant", "--no-correct", "--db", tmp_path / "db").out
    assert typed.startswith("elefant\n") and "Showing" not in typed
    named = sureshot("search", "VID_2085", "--db", tmp_path / "db").out.splitlines()
    assert named[-1] == f"by name: {tmp_path / 'videos' / 'VID_2085.mp4'}"
    assert len(named) == 3


@pytest.mark.parametrize("arguments", [("search", "red"), ("status",), ("list",)])
def test_commands_import_nothing_that_they_do_not_need(library, arguments):
    code = (
        "import sys\n"
        "class Barred:  # pyarrow imports a pandas that is installed, and that much else\n"
        "    def find_spec(name, *_):\n"
        "        if name == 'pandas': raise ModuleNotFoundError(name)\n"
        "sys.meta_path.insert(0, Barred)\n"
        "from sureshot.cli.app import run; run(sys.argv[1:])\n"
        "heavy = {'torch', 'av', 'PIL', 'scipy', 'asyncio', 'unittest.mock', 'onnxruntime'}\n"
        "heavy |= {'sureshot.cli.research', 'sureshot.cli.index', 'transformers'}\n"
        "heavy |= {'sureshot.models.encoders.minilm'}\n"
        "print(sorted(heavy & sys.modules.keys()))"
    )
    command = [sys.executable, "-c", code, *arguments, "--db", library.db]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert ran.stdout.splitlines()[-1:] == ["[]"], ran.stderr
