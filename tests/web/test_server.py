"""The server's process."""

import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from sureshot.errors import ArgumentError, SureshotError
from sureshot.web.server import run_server
from sureshot.web.session import ServeOptions


def begun(*arguments: str) -> tuple[subprocess.Popen, str]:
    """A server in a process of its own, and its address."""
    command = [sys.executable, "-m", "sureshot", "serve", "--port", "0", *arguments]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stderr is not None
    line = process.stderr.readline()
    assert line.startswith("Sureshot is at http://"), line + process.stderr.read()
    return process, line.split()[3]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_cleanly(library, ending) -> None:
    process, address = begun("--db", library.db)
    with urllib.request.urlopen(f"{address}api/search?q=red") as reply:
        assert b'"hits": [{' in reply.read()
    with pytest.raises(urllib.error.HTTPError) as told:
        urllib.request.urlopen(urllib.request.Request(address, headers={"Host": "evil.example"}))
    told.value.close()
    assert told.value.code == 421
    process.send_signal(ending)
    out, err = process.communicate(timeout=300)
    assert (process.returncode, out, err) == (0, "", "")


def test_what_others_can_reach_needs_a_password(tmp_path) -> None:
    with pytest.raises(ArgumentError, match="others in your network"):
        run_server(ServeOptions(), host="0.0.0.0")
    for text in ("", "short\n", "\nlong enough"):
        (tmp_path / "password").write_text(text)
        with pytest.raises(ArgumentError, match="fewer than 8 letters"):
            run_server(ServeOptions(), host="0.0.0.0", password_file=tmp_path / "password")
    with pytest.raises(ArgumentError, match="cannot be read: no such file"):
        run_server(ServeOptions(), host="0.0.0.0", password_file=tmp_path / "none")


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SureshotError, match=f"port {port}: address already in use"):
            run_server(ServeOptions(), port=port)
