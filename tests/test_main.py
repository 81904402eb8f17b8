"""`python -m sureshot` as a process."""

import json
import os
import subprocess
import sys

import sureshot


def python(*arguments, code=None, **environment):
    command = ["-c", code] if code else ["-m", "sureshot", *arguments]
    return subprocess.run(
        [sys.executable, *command], capture_output=True, env=os.environ | environment
    )


def test_the_module_is_the_command():
    ran = python("--version")
    assert (ran.returncode, ran.stdout) == (0, f"sureshot {sureshot.__version__}\n".encode())


def test_the_installed_command_calls_main():
    from importlib.metadata import entry_points

    (command,) = entry_points(group="console_scripts", name="sureshot")
    assert command.value == "sureshot.__main__:main"


def test_exit_codes_reach_the_shell(tmp_path):
    assert python("status", "--db", str(tmp_path / "none")).returncode == 1
    assert python("search", "--nonsense").returncode == 2


def test_importing_the_module_runs_nothing():
    assert python(code="import sureshot.__main__").stdout == b""


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
    ran = python("search", "red", "--db", library.db, "--in", b"/caf\xe9")
    assert ran.returncode == 0
    assert "at or below /caf\ufffd." in ran.stdout.decode()
