"""`sureshot serve`; tests/web asks the server itself."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("host", ["http://localhost", "", "::1%lo"])
def test_a_host_that_is_none_is_told(sureshot, host) -> None:
    pytest.importorskip("fastapi")
    ran = sureshot("serve", "--host", host)
    assert (ran.code, len(ran.err.splitlines())) == (2, 1)


def test_a_host_that_others_reach_asks_for_a_password(sureshot) -> None:
    pytest.importorskip("fastapi")
    ran = sureshot("serve", "--host", "0.0.0.0")
    assert (ran.code, ran.out) == (2, "")
    assert "--password-file" in ran.err


BUSY = """
import threading, time
from sureshot.cli.manage import _leave
threading.Thread(target=time.sleep, args=(600,), name="sureshot_0").start()
_leave()
"""


def test_work_under_way_does_not_keep_it_from_ending() -> None:
    ran = subprocess.run([sys.executable, "-c", BUSY], timeout=220, capture_output=True)
    assert (ran.returncode, ran.stderr) == (0, b"")


@pytest.mark.parametrize("options, warned", [((), False), (("--no-token",), True)])
def test_without_a_token_it_is_said_who_gets_in(sureshot, monkeypatch, options, warned) -> None:
    pytest.importorskip("fastapi")
    from sureshot.web import server

    monkeypatch.setattr(server, "run_server", lambda *_, ready, **__: ready("http://x/", ""))
    said = sureshot("serve", *options).err
    assert ("Every account of this machine can watch" in said) == warned
