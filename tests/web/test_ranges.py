"""Files by parts."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from sureshot.errors import SureshotError
from sureshot.paths import absolute
from sureshot.web.media import FilePart, span_of
from sureshot.web.schema import on_error

DATA = bytes(range(256)) * 4


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(DATA)
    return path


@pytest.fixture
def client(file):
    async def answer(request):
        return FilePart(request, file, "video/mp4")

    routes = [Route("/", answer, methods=["GET", "HEAD"])]
    return TestClient(Starlette(routes=routes, exception_handlers={SureshotError: on_error}))


@pytest.mark.parametrize(
    "asked, code, body",
    [
        ("", 200, DATA),
        ("bytes=0-9", 206, DATA[:10]),
        ("bytes=1000-", 206, DATA[1000:]),
        ("bytes=-24", 206, DATA[-24:]),
        ("bytes=1000-99999", 206, DATA[1000:]),
        ("bytes=0-", 200, DATA),
        ("bytes=5-2", 200, DATA),
        ("bytes=0-1,5-6", 200, DATA),
        ("pages=1", 200, DATA),
    ],
)
def test_parts_are_those_asked_for(client, asked, code, body) -> None:
    reply = client.get("/", headers={"Range": asked} if asked else {})
    assert (reply.status_code, reply.content) == (code, body)
    assert ("Content-Range" in reply.headers) == (code == 206)


def test_a_range_beyond_the_end_is_told(client) -> None:
    for asked in ("bytes=1024-", "bytes=99999999999-", "bytes=-0"):
        reply = client.get("/", headers={"Range": asked})
        assert (reply.status_code, reply.headers["Content-Range"]) == (416, "bytes */1024")
        assert reply.json()["error"]["message"] == "The range lies beyond the end."


@given(st.text("bytes=0123456789-, ", max_size=30), st.integers(0, 2000))
def test_every_header_has_a_meaning(header, size) -> None:
    span = span_of(header, size)
    if span is not None:
        assert span.first >= 0 and span.first + span.length <= size


def test_a_file_that_was_replaced_is_sent_whole(client, file) -> None:
    tag = client.get("/").headers["ETag"]
    again = {"Range": "bytes=0-9", "If-Range": tag}
    assert client.get("/", headers=again).status_code == 206
    file.unlink()
    file.write_bytes(DATA + b"longer")
    assert client.get("/", headers=again).status_code == 200


def sent(file, change):
    """The length that is promised, and the bodies that come of a file that changes meanwhile."""
    told: list[dict] = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.body" and len(told) == 1:
            change()
        told.append(message)

    async def play():
        scope = {"type": "http", "method": "GET", "headers": []}
        await FilePart(Request(scope, receive), file, "video/mp4")(scope, receive, send)

    asyncio.run(play())
    length = int(dict(told[0]["headers"])[b"content-length"])
    return length, b"".join(part["body"] for part in told[1:]), told[-1]["more_body"]


def test_a_file_that_is_replaced_while_it_plays_stays_the_same(file) -> None:
    data = DATA * 1000
    file.write_bytes(data)
    other = file.with_name("b.mp4")
    other.write_bytes(b"another film")
    assert sent(file, lambda: other.replace(file)) == (len(data), data, False)
    assert file.read_bytes() == b"another film"


def test_a_file_that_is_cut_short_while_it_plays_ends_unfinished(file) -> None:
    file.write_bytes(DATA * 1000)
    length, body, more = sent(file, lambda: file.write_bytes(DATA))
    assert len(body) < length and more


def test_its_head_has_no_body(client) -> None:
    reply = client.head("/")
    assert (reply.status_code, reply.content, reply.headers["Content-Length"]) == (200, b"", "1024")


def test_what_is_gone_or_no_file_is_told(client, file) -> None:
    file.unlink()
    assert client.get("/").status_code == 410
    file.mkdir()
    reply = client.get("/")
    assert (reply.status_code, "not a regular file" in reply.json()["error"]["message"]) == (
        410,
        True,
    )


def test_objects_are_sent_by_parts_as_files_are(bucket) -> None:
    bucket.put("a.mp4", DATA)
    path = absolute("s3://films/a.mp4")

    async def answer(request):
        return FilePart(request, path, "video/mp4")

    routes = [Route("/", answer, methods=["GET", "HEAD"])]
    client = TestClient(Starlette(routes=routes, exception_handlers={SureshotError: on_error}))
    whole = client.get("/")
    assert (whole.status_code, whole.content) == (200, DATA)
    part = client.get("/", headers={"Range": "bytes=1000-1009"})
    assert (part.status_code, part.content) == (206, DATA[1000:1010])
    assert part.headers["ETag"] == whole.headers["ETag"]
    bucket.put("a.mp4", DATA[::-1])
    assert client.get("/").headers["ETag"] != whole.headers["ETag"]
    bucket.clear()
    assert client.get("/").status_code == 410
