"""Requests of every kind that the OpenAPI document allows, and of some that it does not.

Whatever is asked, the reply is one that the document names, no error is raised, and no file is
opened that is neither the index nor an indexed video nor a part of the program.
"""

import os
import shutil
import sys
import tempfile
from pathlib import Path

import httpx2
import lazy_loader
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from sureshot.errors import is_installed
from sureshot.paths import video_id
from tests.paths import ROOT
from tests.web.visitor import ALLOWED, visiting

pytestmark = pytest.mark.skipif(
    not is_installed("schemathesis"), reason="schemathesis is not installed"
)
schemathesis = lazy_loader.load("schemathesis")  # for the worker that runs this

OPENED: list[str] = []
WATCHING: list[bool] = []
PASSED_OVER = {"/api/index/events"}  # it never ends by itself
DISKS = "/etc/fstab"  # says which disks are away
PROGRAM = (ROOT, DISKS, sys.base_prefix, tempfile.gettempdir(), *filter(None, sys.path))
ODD = (
    "..",
    "/etc/passwd",
    "../../../etc/passwd",
    "%2e%2e%2fetc%2fpasswd",
    "\0",
    "é" * 40,
    "-1",
    "nan",
)


def _hear(event: str, details: tuple) -> None:
    if WATCHING and event in ("open", "os.listdir", "os.scandir") and isinstance(details[0], str):
        OPENED.append(details[0])


sys.addaudithook(_hear)  # for good: Python has no way to take one off


@pytest.fixture(scope="module")
def shop(library, tmp_path_factory):
    """A copy of the small library's index, its server, and the document of its addresses."""
    root = tmp_path_factory.mktemp("fuzz")
    shutil.copytree(library.db, root / "db")
    with pytest.MonkeyPatch.context() as patched, visiting(root / "db", root / "films") as client:
        patched.setenv("XDG_CACHE_HOME", str(root / "cache"))  # who runs this may have films
        document = client.get("/api/openapi.json").json()
        found = schemathesis.openapi.from_dict(document).get_all_operations()
        ids = [video_id(path) for path in library.videos.rglob("*.mp4")]
        yield client, [one.ok() for one in found], ids, (root, library.videos)


def asked(case, ids, data) -> dict:
    """A request as the document allows it, often with an id that there is or with an odd text."""
    query = dict(case.query or {})
    path = dict(case.path_parameters or {})
    for fields in (query, path):
        for name in fields.keys() & {"video", "name"}:
            if data.draw(st.booleans()):
                fields[name] = data.draw(st.sampled_from(ids))
    if query and data.draw(st.integers(0, 5)) == 0:
        query[data.draw(st.sampled_from(sorted(query)))] = data.draw(st.sampled_from(ODD))
    address = case.path
    for name, value in path.items():
        address = address.replace(f"{{{name}}}", str(value).replace("/", "%2F") or "x")
    request = {"method": case.method, "url": address, "params": query, "headers": dict(ALLOWED)}
    if case.media_type == "application/json":
        return request | {"json": case.body}
    if case.media_type:
        body = case.body if isinstance(case.body, bytes) else b"no picture"
        return request | {"content": body}
    return request


def ask_one(client, operation, ids, examples: int) -> None:
    """Many requests of one kind."""
    known = {int(code) for code in operation.definition.raw["responses"]} | {404}

    @settings(
        max_examples=examples,
        derandomize=True,
        database=None,
        phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=operation.as_strategy(), data=st.data())
    def ask(case, data) -> None:
        request = asked(case, ids, data)
        try:
            reply = client.request(**request)
        except (httpx2.InvalidURL, UnicodeError):
            return  # what the client refuses to send
        assert reply.status_code in known, (request, reply.status_code, reply.text)
        if reply.status_code >= 400:
            assert reply.json()["error"]["message"], request

    ask()


def ask_all(shop, examples: int) -> None:
    client, operations, ids, allowed = shop
    for operation in operations:
        if operation.path not in PASSED_OVER:
            ask_one(client, operation, ids, examples)
    beyond = [
        path
        for path in OPENED
        if path.startswith(os.sep) and not path.startswith(("/proc/", "/dev/", "/sys/"))
        if not any(Path(path).is_relative_to(top) for top in (*allowed, *PROGRAM))
    ]
    assert not beyond


def test_nothing_that_is_asked_breaks_it_or_reads_beyond_the_index(shop) -> None:
    WATCHING.append(True)
    try:
        ask_all(shop, 8)
    finally:
        WATCHING.clear()
    assert OPENED  # it does hear of files


@pytest.mark.slow
def test_nothing_of_very_much_that_is_asked_breaks_it(shop) -> None:
    WATCHING.append(True)
    try:
        ask_all(shop, 300)
    finally:
        WATCHING.clear()
