"""Standard streams that are closed, full or read by nobody."""

import json
import os
import subprocess
from pathlib import Path

import pytest

from tests.cli.terminal import COMMAND


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
    ran = through_shell(redirections, "status", "--db", library.db, "--json")
    assert ran.returncode == 0
    assert b"Traceback" not in ran.stderr
    if ">&-" not in redirections.split():
        assert json.loads(ran.stdout)["index"] == str(library.db)
    else:
        assert ran.stdout == b""


def test_what_is_printed_into_a_closed_stream_lands_in_no_file_of_the_index(library):
    before = {path: path.stat().st_size for path in Path(library.db).rglob("*") if path.is_file()}
    ran = through_shell("<&- >&- 2>&-", "status", "--db", library.db)
    assert ran.returncode == 0
    after = {path: path.stat().st_size for path in Path(library.db).rglob("*") if path.is_file()}
    assert after == before


def test_a_closed_input_is_an_empty_one(library):
    ran = through_shell("<&-", "search", "--from-file", "-", "--db", library.db)
    assert ran.returncode == 1
    assert b"no line in standard input" in ran.stderr and b"Traceback" not in ran.stderr
    asked = through_shell("<&-", "reset", "--db", library.db)
    assert asked.returncode == 1 and b"--yes" in asked.stderr


def test_errors_that_nobody_reads_leave_the_exit_code(tmp_path):
    ran = through_shell("2>&- | true; exit 1", "status", "--db", tmp_path / "none")
    assert ran.returncode == 1 and ran.stderr == b""
