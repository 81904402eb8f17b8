"""A real browser, where this machine has one, and a server for it to look at."""

import contextlib
import os
import shutil
import subprocess
import sys
import urllib.request
from collections.abc import Iterator

import pytest

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
def served(*arguments: object, home: object) -> Iterator[tuple[str, dict[str, str]]]:
    """The address of a server in a process of its own, and the header that programs send it.

    Args:
        arguments: options of `sureshot serve`.
        home: folder that is the home of its user.
    """
    command = [sys.executable, "-m", "sureshot", "serve", "--port", "0", *map(str, arguments)]
    known = {name: v for name, v in os.environ.items() if not name.startswith("XDG_")}
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env=known | {"HOME": str(home)}
    )
    assert process.stderr is not None
    try:
        address, _, token = process.stderr.readline().split()[3].partition("?token=")
        yield address, {"Authorization": f"Bearer {token}"}
    finally:
        process.terminate()
        left = process.communicate(timeout=300)[1]
    assert process.returncode == 0
    assert not left or "--no-token" in arguments  # which warns, perhaps in what was read before


def asked(address: str, known: dict[str, str], **more: str) -> urllib.request.Request:
    """A request of a program."""
    return urllib.request.Request(address, headers=known | more)
