"""`sureshot status`, `remove`, `reset` and `doctor`."""

import csv
import io
import json
import re
import shutil
import subprocess
import sys

import numpy as np
import pytest

from sureshot.models.hub_bank import Bank
from sureshot.models.load import load_searchable
from sureshot.store.index import Store
from tests.cli.terminal import in_terminal, spawn
from tests.clips import coloured
from tests.encoded import spoil
from tests.small_library import index
from tests.trained import saved


@pytest.fixture
def db(tmp_path):
    """An index of two videos and one that failed, of the test's own."""
    folder = tmp_path / "videos"
    (folder / "sub").mkdir(parents=True)
    coloured(folder / "a.mp4", ["red"], seconds=2, rate=5)
    coloured(folder / "sub" / "b.mp4", ["blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    return tmp_path / "db"


def videos(sureshot, db):
    return json.loads(sureshot("status", "--db", db, "--json").out)["videos"]


# --- list -----------------------------------------------------------------------------------------


def test_the_videos_are_listed_with_what_failed_and_why(sureshot, db, tmp_path):
    (tmp_path / "videos" / "a.mp4").rename(tmp_path / "videos" / "elsewhere.mp4")
    ran = sureshot("list", "--db", db)
    assert (ran.code, ran.err) == (0, "")
    head, first, broken, reason, last, count = ran.out.splitlines()
    assert head.split() == ["length", "date", "date", "from", "windows", "video"]
    assert first.split()[:2] == ["2", "s"] and first.endswith("/a.mp4 (gone)")
    assert broken.split()[1:3] == ["file", "0"] and broken.endswith("/broken.mp4")
    assert reason.strip().startswith("failed: is not a video")
    assert last.endswith("sub/b.mp4")
    assert count == "2 videos, 3 s; 1 could not be indexed"
    _, narrow = in_terminal("list", "--db", db, columns=40)
    assert "…" not in narrow and "b.mp4" in narrow and "elsewhere.mp4" not in narrow
    assert narrow.split()[:3] == ["2", "s", first.split()[2]]
    nothing = "0 videos, 0 s\nnote: Nothing is indexed at or below /none.\n"
    assert sureshot("list", "--db", db, "--folder", "/none").out == nothing


def test_a_list_is_json_and_csv_with_the_same_values(sureshot, db):
    known = json.loads(sureshot("list", "--db", db, "--sort", "date", "--json").out)
    assert (known["total"], known["failed"]) == (videos(sureshot, db), 1)
    rows = list(csv.DictReader(io.StringIO(sureshot("list", "--db", db, "--csv").out)))
    texts = {
        row["path"]: {name: str(value) for name, value in row.items()} for row in known["videos"]
    }
    assert [row["path"] for row in rows] == sorted(texts)
    assert all(row.items() <= texts[row["path"]].items() for row in rows)
    assert sureshot("list", "--db", db, "--csv", "--json").code == 2


def test_a_name_cannot_break_a_list(sureshot, tmp_path):
    (tmp_path / "videos").mkdir()
    name = 'a,"b"\n\x1b[2J.mp4'
    coloured(tmp_path / "made.mp4", ["red"], seconds=1, rate=5).rename(tmp_path / "videos" / name)
    index(str(tmp_path / "db"), tmp_path / "videos")
    out = sureshot("list", "--db", tmp_path / "db", "--csv").out
    (row,) = csv.DictReader(io.StringIO(out))
    assert row["seconds"] == "1.0" and 'a,"b"' in row["path"] and "\x1b" not in out
    shown = sureshot("list", "--db", tmp_path / "db").out
    assert len(shown.splitlines()) == 3 and "\x1b" not in shown


# --- status ---------------------------------------------------------------------------------------


def test_a_folder_that_is_away_is_named_by_status_and_doctor(sureshot, db, tmp_path, hub):
    assert "Not there" not in sureshot("status", "--db", db).out
    (tmp_path / "videos").rename(tmp_path / "elsewhere")
    away = f"2 videos of {tmp_path / 'videos'}; is the disk connected?"
    assert f"Not there   {away}" in sureshot("status", "--db", db).out.splitlines()
    known = json.loads(sureshot("status", "--db", db, "--json").out)
    assert (known["away"], known["away_folders"]) == (2, [str(tmp_path / "videos")])
    found = json.loads(sureshot("doctor", "--db", db, "--json").out)["checks"]
    (check,) = [check for check in found if check["name"] == "index"]
    assert check["state"] == "note" and away in check["detail"]
    assert "connect the disk" in check["fix"]


def test_videos_that_are_gone_are_counted_by_status(sureshot, db, tmp_path):
    gone = tmp_path / "videos" / "a.mp4"
    assert "Gone" not in sureshot("status", "--db", db).out
    gone.unlink()
    lines = sureshot("status", "--db", db).out.splitlines()
    assert "Gone        1 video; `sureshot index FOLDER` with --prune forgets what is gone" in lines
    assert json.loads(sureshot("status", "--db", db, "--json").out)["missing"] == 1
    sureshot("index", tmp_path / "videos", "--prune", "--db", db)
    assert "Gone" not in sureshot("status", "--db", db).out


def test_status_says_what_is_indexed(sureshot, db, tmp_path):
    ran = sureshot("status", "--db", db)
    assert (ran.code, ran.err) == (0, "")
    shown = re.sub(r"\d+ kB", "N kB", re.sub(r"[0-9a-f]{12}", "FINGERPRINT", ran.out))
    *lines, failed = shown.splitlines()
    assert lines == [
        f"Index       {db}",
        "Videos      2, 3 s in 2 windows",
        "Model       tiny, version FINGERPRINT",
        "Windows     of at most 2 s, cut at scene changes; 4 frames of each seen",
        "On disk     N kB (N kB a minute of video)",
        "Percentages not calibrated",
        "Failed      1 video",
    ]
    assert failed.startswith(f"  failed: {tmp_path / 'videos' / 'broken.mp4'} — ")


@pytest.mark.parametrize(
    ("decode", "said"), [("all", "all frames decoded"), ("keyframes", "only keyframes decoded")]
)
def test_status_says_what_was_decoded(sureshot, tmp_path, decode, said):
    (tmp_path / "v").mkdir()
    coloured(tmp_path / "v" / "red.mp4", ["red"])
    made = ("--db", tmp_path / "db", "--model", "tiny", "--decode", decode)
    assert sureshot("index", tmp_path / "v", *made).code == 0
    assert f"cut at scene changes, {said}; " in sureshot("status", "--db", tmp_path / "db").out


def test_status_in_json(sureshot, db, tmp_path):
    told = json.loads(sureshot("status", "--db", db, "--json").out)
    assert (told["videos"], told["windows"], told["seconds"]) == (2, 2, 3.0)
    assert told["bytes"] == sum(p.stat().st_size for p in db.rglob("*") if p.is_file())
    assert (told["status"], told["settings"]["model"]) == ("not calibrated", "tiny")
    assert [f["path"] for f in told["failed"]] == [str(tmp_path / "videos" / "broken.mp4")]


def test_status_of_an_index_whose_model_was_trained_again(sureshot, tmp_path, db):
    model = saved(tmp_path / "model", "clip4clip", "none")
    args = ["index", str(tmp_path / "videos"), "--model", str(model), "--db", str(tmp_path / "own")]
    sureshot(*args)
    known = ("--db", tmp_path / "own", "--json")
    assert json.loads(sureshot("status", *known).out)["status"] == "not calibrated"
    saved(model, "clip4clip", "none", seed=1)
    encoder = load_searchable(str(model))
    texts = encoder.encode_texts(["red"])
    none = (
        np.zeros((0, 1, encoder.dim), np.float32),
        np.zeros((0, 1), bool),
        np.zeros(0, np.float32),
    )
    Bank(texts, 1, 0.5, *none, encoder.fingerprint, "a test").save(model)
    told = json.loads(sureshot("status", *known).out)["status"]
    assert told == "not calibrated; the model has changed since, or its bank is damaged"
    ran = sureshot("search", "red", "--db", tmp_path / "own")
    assert ran.code == 1 and "another" in ran.err and "delete" not in ran.err


def test_status_names_every_failure(sureshot, tmp_path):
    folder = tmp_path / "videos"
    folder.mkdir()
    for number in range(30):
        (folder / f"{number}.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    assert sureshot("status", "--db", tmp_path / "db").out.count("  failed: ") == 30


def test_a_check_names_what_is_damaged_and_ends_with_1(sureshot, db, tmp_path):
    ran = sureshot("status", "--check", "--db", db)
    assert ran.code == 0
    assert ran.out.splitlines()[-1] == (
        "Checked: every row is as it was written, and nothing is missing."
    )
    store = Store.open(db)
    spoil(store, store.videos()[0].id, "written_at")
    ran = sureshot("status", "--check", "--db", db)
    assert ran.code == 1
    assert "BAD  1 window of" in ran.out and "a.mp4 is not what was written" in ran.out
    assert "sureshot index --force PATH" in ran.out
    ran = sureshot("status", "--check", "--db", db, "--json")
    assert (ran.code, len(json.loads(ran.out)["faults"])) == (1, 1)
    assert sureshot("index", tmp_path / "videos", "--force", "--db", db).code == 0
    assert sureshot("status", "--check", "--db", db).code == 0


# --- remove ---------------------------------------------------------------------------------------


def test_a_video_is_forgotten_and_its_file_stays(sureshot, db, tmp_path):
    ran = sureshot("remove", tmp_path / "videos" / "a.mp4", "--db", db)
    assert (ran.code, ran.out) == (
        0,
        "1 video removed from the index; no file was touched.\n"
        "The next `sureshot index` brings back what is still there, unless --exclude.\n",
    )
    assert (tmp_path / "videos" / "a.mp4").exists()
    assert videos(sureshot, db) == 1
    assert "a.mp4" not in sureshot("search", "red", "--db", db).out


def test_of_a_video_that_is_gone_it_is_not_said_that_it_comes_back(sureshot, db, tmp_path):
    (tmp_path / "videos" / "a.mp4").unlink()
    ran = sureshot("remove", tmp_path / "videos" / "a.mp4", "--db", db)
    assert ran.out == "1 video removed from the index; no file was touched.\n"


def test_a_folder_is_forgotten(sureshot, db, tmp_path):
    ran = sureshot("remove", tmp_path / "videos", "--db", db, "--json")
    assert json.loads(ran.out) == {"schema": 4, "removed": 3}
    assert videos(sureshot, db) == 0


def test_a_video_that_was_removed_for_good_comes_back_when_that_is_said(sureshot, db, tmp_path):
    video = tmp_path / "videos" / "a.mp4"
    ran = sureshot("remove", video, "--exclude", "--db", db)
    assert (ran.code, "--include PATH" in ran.out) == (0, True)
    ran = sureshot("index", tmp_path / "videos", "--db", db)
    assert "Excluded: 1 file or folder; `sureshot status` lists the patterns" in ran.out
    assert f"Excluded    {video}\n" in sureshot("status", "--db", db).out
    assert videos(sureshot, db) == 1
    sureshot("index", tmp_path / "videos", "--include", video, "--db", db)
    assert videos(sureshot, db) == 2


def test_paths_are_named_from_here(sureshot, db, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path / "videos" / "sub")
    assert sureshot("remove", "../a.mp4", "--db", db).code == 0
    assert sureshot("remove", ".", "--db", db).code == 0
    assert videos(sureshot, db) == 0


def test_what_is_not_indexed_cannot_be_forgotten_and_nothing_is(sureshot, db, tmp_path):
    ran = sureshot("remove", tmp_path / "videos" / "a.mp4", tmp_path / "typo", "--db", db)
    assert (ran.code, ran.out) == (1, "")
    assert "typo is indexed; nothing was removed." in ran.err
    assert videos(sureshot, db) == 2


# --- reset ----------------------------------------------------------------------------------------


def test_an_index_is_deleted_when_that_is_said(sureshot, db, tmp_path):
    ran = sureshot("reset", "--db", db, "--yes")
    assert (ran.code, "your ratings and videos are untouched" in ran.out) == (0, True)
    assert not db.exists()
    assert (tmp_path / "videos" / "a.mp4").exists()


def test_without_a_terminal_nobody_is_asked_and_nothing_deleted(db):
    ran = spawn("reset", "--db", db)
    assert (ran.code, ran.out, len(ran.err.splitlines())) == (1, "", 1)
    assert "--yes" in ran.err
    assert db.exists()


@pytest.mark.parametrize("typed, code", [(b"y\n", 0), (b"\n", 1), (b"\x04", 1)])
def test_a_terminal_is_asked(db, typed, code):
    ended, sent = in_terminal("reset", "--db", db, typed=typed, NO_COLOR="1")
    assert (ended, db.exists()) == (code, bool(code))
    assert f"Delete the index at {db}?" in sent.replace("\n", "")
    assert "Traceback" not in sent


@pytest.mark.parametrize("table", ["videos", "windows"])
def test_a_damaged_index_can_be_deleted(sureshot, db, table):
    shutil.rmtree(db / f"{table}.lance" / "_versions")
    assert sureshot("status", "--db", db).code == 1
    assert sureshot("reset", "--db", db, "-y").code == 0
    assert not db.exists()


# --- doctor ---------------------------------------------------------------------------------------


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "hub" / "models--acme--sharp-eye" / "snapshots" / "0123abcd"
    folder.mkdir(parents=True)
    (folder / "config.json").write_text('{"model_type": "clip"}')
    (folder / "model.safetensors").touch()
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))


def test_the_doctor_finds_a_model_in_the_hubs_cache(sureshot, library, hub):
    pytest.importorskip("all_minilm_l6_v2")
    ran = sureshot("doctor", "--db", library.db)
    assert (ran.code, ran.err) == (0, "")
    assert re.search(r"^ok +other models +can be used offline: acme/sharp-eye", ran.out, re.M)
    assert "BAD" not in ran.out


def test_a_damaged_index_makes_the_doctor_end_with_one(sureshot, db, hub):
    shutil.rmtree(db / "videos.lance" / "_versions")
    ran = sureshot("doctor", "--db", db)
    assert ran.code == 1
    assert re.search(r"^BAD +index +.*index", ran.out, re.M)
    told = json.loads(sureshot("doctor", "--db", db, "--json").out)
    states = {check["name"]: check["state"] for check in told["checks"]}
    assert states["index"] == "broken"
    assert states["other models"] == "ok"


def test_a_fix_stands_below_what_it_mends(sureshot, tmp_path, hub):
    lines = sureshot("doctor", "--db", tmp_path / "none").out.splitlines()
    (at,) = [i for i, line in enumerate(lines) if re.match("note +index ", line)]
    assert lines[at + 1].strip() == "→ sureshot index FOLDER"
    assert lines[at + 1].index("→") == lines[at].index("none at")


def test_the_status_loads_no_decoder(library):
    code = "import sys; from sureshot.cli.app import run; run(sys.argv[1:]); "
    code += "assert not {'av', 'PIL', 'scipy', 'torch'} & set(sys.modules)"
    command = [sys.executable, "-c", code, "status", "--db", library.db]
    ran = subprocess.run(command, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")


def test_how_to_name_a_file_that_begins_with_a_dash_is_said(sureshot, db, tmp_path, monkeypatch):
    coloured(tmp_path / "-misc.mp4", ["red"], seconds=1)
    monkeypatch.chdir(tmp_path)
    ran = sureshot("remove", "-misc.mp4", "--db", db)
    assert ran.code == 2
    said = ran.err.splitlines()[-1]
    assert said == f"For the file -misc.mp4: sureshot remove -- -misc.mp4 --db {db}"
    assert "For the file" not in sureshot("remove", "-other.mp4", "--db", db).err
