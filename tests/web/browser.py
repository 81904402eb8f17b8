"""A real browser, where this machine has one, and a server for it to look at."""

import contextlib
import http.client
import http.server
import os
import shutil
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import IO

import pytest

from tests.processes import command, finish

WAIT = 120_000  # milliseconds that the page may take for anything on a busy machine
NAMES = ("chromium", "chromium-browser", "google-chrome")
_FLAGS = (
    "--no-sandbox",
    "--disable-dev-shm-usage",
    "--mute-audio",
    "--autoplay-policy=no-user-gesture-required",
)


def found() -> str:
    """The program of the browser; the test is skipped where there is none."""
    pytest.importorskip("playwright", reason="playwright is not installed")
    paths = [path for path in map(shutil.which, NAMES) if path]
    if not paths:
        pytest.skip("there is no Chromium here; on Debian: apt-get install chromium")
    return paths[0]


@contextlib.contextmanager
def launched() -> Iterator[object]:
    """The browser."""
    program = found()
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=list(_FLAGS))
        yield browser
        browser.close()


@contextlib.contextmanager
def started(
    *arguments: object, environment: dict[str, str], code: str = ""
) -> Iterator[tuple[BaseProcess, str, IO[str]]]:
    """A server in a process of its own, the first line that it prints, and all that follows."""
    ours, theirs = os.pipe()
    with Path(os.devnull).open("r+b") as null, os.fdopen(theirs, "wb") as err:
        options = ["serve", "--port", "0", *map(str, arguments)]
        files = [null.fileno(), err.fileno(), err.fileno()]
        process = command(options, files, environment, code)
    with os.fdopen(ours, encoding="utf-8") as printed:
        try:
            yield process, printed.readline(), printed
        finally:
            if process.is_alive():
                process.terminate()
            (code,) = finish(process)
    assert code == 0


@contextlib.contextmanager
def served(
    *arguments: object, home: object, code: str = ""
) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server in a process of its own, and the header that programs send it.

    Args:
        arguments: options of `sureshot serve`.
        home: folder that is the home of its user.
        code: what to run in place of the command.
    """
    known = {name: v for name, v in os.environ.items() if not name.startswith("XDG_")}
    known["HOME"] = str(home)
    with started(*arguments, environment=known, code=code) as (process, line, printed):
        address, _, token = line.split()[3].partition("?token=")
        yield address, {"Authorization": f"Bearer {token}"}
        process.terminate()
        left = printed.read()
        if "--no-token" not in arguments:  # which warns, perhaps in what was read before
            assert not left, left


def asked(address: str, known: dict[str, str], **more: str) -> urllib.request.Request:
    """A request of a program."""
    return urllib.request.Request(address, headers=known | more)


@contextlib.contextmanager
def behind_a_proxy(address: str, path: str) -> Iterator[str]:
    """The address of a proxy that hands on what is asked below a path."""
    place = urllib.parse.urlsplit(address)

    class Proxy(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asking = http.client.HTTPConnection(place.hostname or "", place.port)
            sent = {**self.headers, "Host": place.netloc, "Connection": "close"}
            asking.request(self.command, "/" + self.path.removeprefix(path), headers=sent)
            reply = asking.getresponse()
            self.send_response(reply.status)
            for name, value in reply.getheaders():
                self.send_header(name, value)
            self.end_headers()
            with contextlib.suppress(OSError):  # the browser has seen enough
                shutil.copyfileobj(reply, self.wfile)
            asking.close()

        do_HEAD = do_GET  # noqa: N815 - the name that the library looks for

        def log_message(self, *_told: object) -> None:
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("localhost", 0), Proxy) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://localhost:{server.server_port}{path}"
        server.shutdown()
