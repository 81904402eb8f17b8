"""`python -m sureshot` as a process."""

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

import sureshot
from tests.clips import coloured
from tests.processes import command_without_rights, finish, start

_NOBODY = 65534


def python(*arguments, code=None, **environment):
    command = ["-c", code] if code else ["-m", "sureshot", *arguments]
    return subprocess.run(
        [sys.executable, *command], capture_output=True, env=os.environ | environment
    )


def test_the_module_is_the_command():
    ran = python("--version")
    assert (ran.returncode, ran.stdout) == (0, f"sureshot {sureshot.__version__}\n".encode())


def test_exit_codes_reach_the_shell(tmp_path):
    assert python("status", "--db", str(tmp_path / "none")).returncode == 1
    assert python("search", "--nonsense").returncode == 2


def test_a_terminal_that_knows_few_letters_stops_no_answer(library):
    command = ("search", "жёлтый yellow → 日本", "--db", library.db, "-k", "1")
    ran = python(*command, PYTHONIOENCODING="ascii")
    assert (ran.returncode, ran.stderr) == (0, b"")
    assert b"?????? yellow" in ran.stdout
    ran = python(*command, "--json", PYTHONIOENCODING="ascii")
    assert json.loads(ran.stdout)["query"] == "жёлтый yellow → 日本"


def test_bytes_that_are_not_utf8_are_searched_for_as_far_as_they_go(library):
    ran = python("search", b"caf\xe9 red", "--db", library.db, "-k", "1")
    assert ran.stdout.splitlines()[0] == b"caf? red"
    ran = python("search", "red", "--db", library.db, "--folder", b"/caf\xe9")
    assert ran.returncode == 0
    assert "at or below /caf\ufffd." in ran.stdout.decode()


@pytest.fixture
def shared(library):
    """A copy of an index that its group may read, in a folder that everybody may enter."""
    if os.geteuid():
        pytest.skip("only root may run a program as somebody else")
    folder = Path(tempfile.mkdtemp(prefix="sureshot-test-"))
    folder.chmod(0o755)
    db = folder / "index"
    shutil.copytree(library.db, db)
    for path in [db, *db.rglob("*")]:
        os.chown(path, 0, _NOBODY)
        path.chmod(0o750 if path.is_dir() else 0o640)
    yield db
    shutil.rmtree(folder)


def nobody(out, *arguments, home=None):
    """Run the command as a user without rights; its exit code and all that it printed."""
    process = start(command_without_rights, out, home, [str(one) for one in arguments])
    assert finish(process) == [0]
    code, _, printed = out.read_text().partition("\n")
    assert "Traceback" not in printed, printed
    return int(code), printed


@pytest.mark.slow
def test_an_index_that_a_group_may_read_is_searched_by_others_of_it(shared, library, tmp_path):
    out = tmp_path / "out"
    before = sorted((str(p), p.stat().st_mtime_ns) for p in shared.rglob("*"))
    mine = json.loads(python("search", "red", "--db", library.db, "--json").stdout)
    # A home that may not be entered, and none at all.
    for home in (str(tmp_path), None):
        code, printed = nobody(out, "search", "red", "--db", shared, "--json", home=home)
        assert code == 0, printed
        scores = [[hit["score"] for hit in one["hits"]] for one in (json.loads(printed), mine)]
        assert scores[0] == scores[1] != []
    assert nobody(out, "status", "--check", "--db", shared)[0] == 0
    assert sorted((str(p), p.stat().st_mtime_ns) for p in shared.rglob("*")) == before
    shared.chmod(0o700)
    code, printed = nobody(out, "search", "red", "--db", shared)
    assert code == 1 and len(printed.splitlines()) == 1, printed


def test_names_of_any_letters_are_indexed_where_the_language_is_c(tmp_path):
    film = coloured(tmp_path / "für 日本.mp4", ["red"], seconds=1)
    plain = {"LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    ran = python("index", str(film), "--db", str(tmp_path / "i"), "--model", "tiny", **plain)
    assert ran.returncode == 0, ran.stderr.decode()
    for form in ([], ["--json"]):
        ran = python("search", "red", "--db", str(tmp_path / "i"), *form, **plain)
        assert (ran.returncode, ran.stderr) == (0, b"")
    (hit,) = json.loads(ran.stdout)["hits"]
    assert hit["path"] == str(film)
    ran = python("list", "--db", str(tmp_path / "i"), "--json")  # and known where it is another
    (known,) = json.loads(ran.stdout)["videos"]
    assert (known["path"], known["missing"], known["id"]) == (str(film), False, hit["id"])
