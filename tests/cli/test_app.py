"""The command as a whole: help, exit codes, pipes, terminals."""

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from sureshot.cli import app as module
from tests.cli.terminal import COMMAND, COMMANDS, check_snapshot, colours, in_terminal, spawn
from tests.clips import coloured
from tests.small_library import index

VERBS = list(COMMANDS)


def words(text):
    """The words of a text without boxes around them, in one line."""
    return " ".join(re.sub(r"[\u2500-\u257f|]", " ", text).split())


def described(command):
    """What the help of a command says, whatever draws it."""
    lines = [command.help]
    for parameter in command.params:
        names = ", ".join([*parameter.opts, *parameter.secondary_opts])
        if parameter.param_type_name == "argument":
            names = parameter.metavar
        elif parameter.metavar:
            names += f" {parameter.metavar}"
        shown = parameter.show_default
        default = shown if isinstance(shown, str) else parameter.default
        if default is True:
            default = parameter.opts[0].removeprefix("--")
        known = isinstance(shown, str) or (shown and default not in (None, False))
        lines += [f"  {names}", f"      {parameter.help}" + (f" [{default}]" if known else "")]
    return "\n".join([*lines, command.epilog or ""])


@pytest.mark.parametrize("verb", VERBS)
def test_the_help_of_a_command_is_as_it_was(verb):
    check_snapshot(f"help-{verb.replace(' ', '-')}", described(COMMANDS[verb]))


@pytest.mark.parametrize("verb", VERBS)
def test_nothing_gets_lost_between_a_help_text_and_the_screen(sureshot, verb):
    shown = words(sureshot(*verb.split(), "--help").out)
    command = COMMANDS[verb]
    assert words(command.help) in shown
    for parameter in command.params:
        assert parameter.help and words(parameter.help) in shown
        for option in (*parameter.opts, *parameter.secondary_opts):
            assert option in shown or parameter.param_type_name == "argument"
        if isinstance(parameter.show_default, str):
            assert words(parameter.show_default) in shown
    for line in (command.epilog or "").splitlines():
        assert words(line) in shown


@pytest.mark.parametrize("verb", VERBS)
def test_the_examples_of_a_help_text_can_be_typed(verb):
    known = {option for parameter in COMMANDS[verb].params for option in parameter.opts}
    for line in (COMMANDS[verb].epilog or "").splitlines():
        if line.startswith(f"sureshot {verb} "):
            assert set(re.findall(r"(?<= )(?:-[a-z]|--[a-z-]+)(?= |$)", line)) <= known


def test_the_version_is_printed(sureshot):
    from sureshot import __version__

    ran = sureshot("--version")
    assert (ran.code, ran.out) == (0, f"sureshot {__version__}\n")


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "red", "--nonsense"],
        ["search", "red", "-k", "0"],
        ["search", "red", "-k", "1.5"],
        ["search", "red", "--db"],
        ["index"],
        ["index", "x", "--decode", "some"],
        ["export", "red", "--pad", "-1"],
        ["describe", "clip.mp4"],
        ["train"],
        ["evaluate", "tiny", "--data", "pairs"],
        ["evaluate", "tiny", "--data", "pairs", "--root", "x", "--frames", "65"],
        ["answer"],
        ["answer", "ask", "model", "a.mp4", "who?", "-k", "0"],
        ["plot", "matrices", "tiny", "--data", "pairs"],
        ["reproduce", "duq-3", "--plan", "x", "--seeds", "0"],
        ["remove"],
    ],
    ids=" ".join,
)
def test_a_command_typed_wrong_ends_with_two_and_explains_itself(sureshot, arguments):
    ran = sureshot(*arguments)
    assert ran.code == 2
    assert "Usage: sureshot" in ran.out or "Error: " in ran.err
    assert "Traceback" not in ran.err


def test_without_a_command_there_is_help(sureshot):
    assert sureshot() == sureshot("--help")


@pytest.mark.parametrize(
    "arguments",
    [
        ["search", "red"],
        ["describe", "a.mp4", "a dog"],
        ["export", "red"],
        ["status"],
        ["remove", "a"],
    ],
    ids=" ".join,
)
def test_without_an_index_the_error_is_one_sentence_that_says_what_to_type(
    sureshot, arguments, tmp_path
):
    ran = sureshot(*arguments, "--db", tmp_path / "none")
    assert (ran.code, ran.out) == (1, "")
    assert len(ran.err.splitlines()) == 1
    assert ran.err.startswith(f"sureshot: There is no index at {tmp_path / 'none'}.")
    assert "`sureshot index FOLDER`" in ran.err


def test_an_error_cannot_steer_the_terminal(sureshot, tmp_path):
    ran = sureshot("status", "--db", tmp_path / "a\x1b[2Jb\r\nc\x9b")
    assert ran.code == 1
    assert not set(ran.err[:-1]) & set("\x1b\x9b\r\n")


def test_a_bug_keeps_its_traceback(monkeypatch):
    def broken(*arguments, **options):
        raise ZeroDivisionError

    monkeypatch.setattr(module, "app_of", lambda names: broken)
    with pytest.raises(ZeroDivisionError):
        module.run(["status"])


def test_ctrl_c_ends_a_search_quietly_with_130(library, tmp_path):
    queries = tmp_path / "queries.txt"
    queries.write_text("red\n" * 100_000)
    command = [*COMMAND, "search", "--from-file", queries, "--db", library.db, "--json"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None and process.stdout.readline()
    process.send_signal(signal.SIGINT)
    try:
        _, err = process.communicate(timeout=60)
    finally:
        process.kill()
    assert (process.returncode, err) == (130, b"")


@pytest.mark.parametrize("form", ["", "--json"])
def test_a_reader_that_leaves_early_is_no_error(library, form, tmp_path):
    queries = tmp_path / "queries.txt"
    refused = " " * 100_000 + "red"  # a search that comes so far ends with an error
    queries.write_text("red\n" * 400 + refused)
    search = f"search --from-file {queries} --db {library.db} {form}"
    line = f"{sys.executable} -m sureshot {search} | head -1; exit ${{PIPESTATUS[0]}}"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")
    assert len(ran.stdout.splitlines()) == 1


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full on this system")
@pytest.mark.parametrize("form", ["", "--json"])
def test_an_output_that_is_full_is_an_error_in_one_line(library, form):
    line = f"{sys.executable} -m sureshot search red --db {library.db} {form} > /dev/full"
    ran = subprocess.run(["bash", "-c", line], capture_output=True, text=True)
    said = "No space left on device"
    plain = f"sureshot: {said}\n"
    told = {"schema": 4, "error": {"code": "system", "message": said}}
    assert (ran.returncode, ran.stderr) == (1, json.dumps(told) + "\n" if form else plain)


# --- terminals ------------------------------------------------------------------------------------


@pytest.mark.parametrize("wish", [{"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_escape_codes_are_for_terminals_that_want_colours(library, tmp_path, wish):
    command = ("search", "красный red", "--db", library.db)
    assert wish != {"NO_COLOR": "1"} or colours(in_terminal(*command)[1])
    code, sent = in_terminal(*command, **wish)
    assert (code, "\x1b" in sent) == (0, False)
    assert "note: " in sent and "Not calibrated" in sent
    assert "\x1b" not in in_terminal("search", "red", "--db", str(tmp_path), **wish)[1]


def test_escape_codes_are_not_for_pipes(library, tmp_path):
    for arguments in (
        ("search", "красный red", "--db", library.db),
        ("search", "red", "--db", str(tmp_path)),
    ):
        ran = spawn(*arguments, TERM="xterm-256color")
        assert "\x1b" not in ran.out + ran.err


@pytest.mark.parametrize("columns", [20, 60])
def test_a_narrow_terminal_shows_everything(library, columns):
    code, sent = in_terminal("search", "red", "--db", library.db, columns=columns, NO_COLOR="1")
    assert code == 0
    assert max(map(len, sent.splitlines())) <= columns
    together = sent.replace("\n", "").replace(" ", "")
    for needed in ("scenes.mp4", "1.000", "0:00-0:04", "Notcalibrated"):
        assert needed in together


# --- without a command ----------------------------------------------------------------------------


def test_a_sentence_without_a_command_is_searched_for_and_find_means_search(sureshot, library):
    ran = sureshot("a red wall", "--db", library.db, "-k", "1")
    assert ran.code == 0
    assert ran.out == sureshot("search", "a red wall", "--db", library.db, "-k", "1").out
    assert ran.out == sureshot("find", "a", "red", "wall", "--db", library.db, "-k", "1").out


@pytest.mark.parametrize(
    "typed, said",
    [
        (["dog"], "There is no command dog. To look for it: sureshot search dog"),
        (["serach", "dog"], "There is no command serach; did you mean search?"),
        (["stauts"], "There is no command stauts; did you mean status?"),
    ],
)
def test_a_word_that_is_no_command_is_told_what_to_type(sureshot, typed, said):
    ran = sureshot(*typed)
    assert (ran.code, ran.out, ran.err) == (2, "", f"sureshot: {said}\n")


def test_with_json_errors_are_json_with_a_code(sureshot, library, tmp_path):
    (tmp_path / "labels").write_text("{")
    for code, kind, arguments in (
        (1, "index", ["status", "--db", tmp_path / "none"]),
        (1, "query", ["search", "", "--db", library.db]),
        (1, "model", ["search", "a", "--db", library.db, "--model", tmp_path / "none"]),
        (1, "input", ["calibrate", "--labels", tmp_path / "labels", "--db", library.db]),
        (2, "arguments", ["search", "--db", library.db]),
        (2, "arguments", ["search", "a", "-k", "0"]),
        (2, "arguments", ["serach", "a"]),
    ):
        ran = sureshot(*arguments, "--json")
        assert (ran.code, ran.out) == (code, "")
        told = json.loads(ran.err)
        assert told["error"]["code"] == kind and told["error"]["message"]
        assert told.keys() == {"schema", "error"}
        assert "{" not in sureshot(*arguments).err


def test_a_folder_that_is_gone_is_said(library, tmp_path):
    (tmp_path / "gone").mkdir()
    script = 'cd "$1"; rmdir "$1"; shift; exec "$@"'
    for arguments, code in ((["status", "--db", library.db], 0), (["index", "a.mp4"], 1)):
        (tmp_path / "gone").mkdir(exist_ok=True)
        ran = subprocess.run(
            ["sh", "-c", script, "sh", tmp_path / "gone", *COMMAND, *arguments],
            capture_output=True,
            text=True,
        )
        assert ran.returncode == code and "Traceback" not in ran.stderr
        assert code == 0 or "The folder you are in is gone" in ran.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["remove", ""],
        ["index", "", "more"],
        ["reset", "--yes", "--db", ""],
        ["reset", "--yes", "--db="],
        ["search", "a dog", "--folder", ""],
        ["describe", "a.mp4", ""],
    ],
)
def test_an_argument_of_a_variable_that_is_not_set_does_nothing(arguments, capsys, monkeypatch):
    monkeypatch.setattr(module, "app_of", lambda names: None)
    assert module.run(arguments) == 2
    told = capsys.readouterr().err
    assert "argument is empty" in told or "--db has no value" in told


ENDING = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]
WAITS = """
import sys, time
from sureshot.cli.app import catch_signals, exit_code
catch_signals()
code = 0
try:
    print("ready", flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    print("ending", flush=True)
    code = {after}
sys.exit(exit_code(code))
"""


def started(after="130", first=()):
    """A program that waits, and then ends with this code; words to start it by come first."""
    command = [*first, sys.executable, "-c", WAITS.format(after=after)]
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # the tests may run under nohup
    process = subprocess.Popen(command, stdout=subprocess.PIPE)
    signal.signal(signal.SIGHUP, before)
    assert process.stdout is not None and process.stdout.readline() == b"ready\n"
    return process


def ended(process):
    """Its exit code and what it still said."""
    try:
        said, _ = process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()  # one left running would fail the next test as well
    return process.returncode, said


@pytest.mark.parametrize("number", ENDING)
def test_a_signal_ends_in_order_with_its_own_exit_code(number):
    process = started()
    process.send_signal(number)
    assert ended(process) == (128 + number, b"ending\n")


@pytest.mark.parametrize("number", ENDING)
def test_a_second_signal_ends_at_once(number):
    process = started(after="time.sleep(60)")
    process.send_signal(number)
    assert process.stdout.readline() == b"ending\n"
    while process.poll() is None:  # those that come with the first are taken for it
        process.send_signal(number)
        try:
            process.wait(0.1)
        except subprocess.TimeoutExpired:
            continue
    assert ended(process) == (-number, b"")


def test_what_the_command_says_of_ctrl_c_counts():
    process = started(after="1")
    process.send_signal(signal.SIGINT)
    assert ended(process) == (1, b"ending\n")


def test_what_nohup_ignores_stays_ignored():
    process = started(first=["sh", "-c", "trap '' HUP; exec \"$@\"", "sh"])
    process.send_signal(signal.SIGHUP)
    process.send_signal(signal.SIGTERM)
    assert ended(process) == (143, b"ending\n")


def through_shell(redirections, *arguments, **environment):
    """Run a command as the shell does with these redirections."""
    return subprocess.run(
        ["sh", "-c", f'exec "$@" {redirections}', "sh", *COMMAND, *map(str, arguments)],
        capture_output=True,
        env=os.environ | environment,
        timeout=60,
    )


@pytest.mark.parametrize("redirections", ["<&-", "2>&-", "<&- >&- 2>&-", ">&-"])
def test_a_closed_stream_changes_nothing_but_what_is_seen(library, redirections):
    """What is printed into it is in no file of the index either."""
    before = {path: path.stat().st_size for path in Path(library.db).rglob("*") if path.is_file()}
    ran = through_shell(redirections, "status", "--db", library.db, "--json")
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    if ">&-" not in redirections.split():
        assert json.loads(ran.stdout)["index"] == str(library.db)
    else:
        assert ran.stdout == b""
    after = {path: path.stat().st_size for path in Path(library.db).rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize(
    "arguments",
    [
        ("index", "{0}/broken.mp4", "--db", "{0}/db", "--json"),
        ("index", "{0}/broken.mp4", "--db", "{0}/db"),
        ("doctor", "--model", "{0}/broken.mp4", "--db", "{0}/db"),
        ("export", "red", "--as", "edl", "--to", "{0}", "--db", "{0}/half"),
    ],
    ids=" ".join,
)
def test_where_the_reader_has_left_the_exit_code_still_says_how_it_went(arguments, tmp_path):
    (tmp_path / "broken.mp4").write_text("no video")
    gone = coloured(tmp_path / "red.mp4", ["red"], rate=5)
    index(str(tmp_path / "half"), gone)
    gone.unlink()
    arguments = [argument.format(tmp_path) for argument in arguments]
    read, written = os.pipe()
    os.close(read)
    ran = subprocess.run([*COMMAND, *arguments], stdout=written, stderr=subprocess.PIPE, timeout=60)
    os.close(written)
    assert ran.returncode == 1 and b"Traceback" not in ran.stderr


def test_a_closed_input_is_an_empty_one(library):
    ran = through_shell("<&-", "search", "--from-file", "-", "--db", library.db)
    assert ran.returncode == 1
    assert b"no line in standard input" in ran.stderr and b"Traceback" not in ran.stderr
    asked = through_shell("<&-", "reset", "--db", library.db)
    assert asked.returncode == 1 and b"--yes" in asked.stderr


def test_a_process_does_not_look_for_garbage_before_it_ends():
    code = (
        "import atexit, gc\nfrom sureshot.__main__ import main\n"
        "atexit.register(lambda: print(len(gc.get_objects())))\nmain()"
    )
    command = [sys.executable, "-c", code, "--version"]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    assert int(ran.stdout.split()[-1]) < 1000  # without what is frozen, which is tens of thousands
