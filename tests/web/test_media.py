"""Films by parts, the cache of films, and playing and cutting over HTTP."""

import asyncio
import contextlib
import io
import os
import stat
import subprocess
import threading
import time
from pathlib import Path

import av
import pytest
from fastapi import FastAPI
from hypothesis import given
from hypothesis import strategies as st
from starlette.requests import Request
from starlette.routing import Route
from starlette.testclient import TestClient

from sureshot.errors import SureshotError, VideoError
from sureshot.library import catalog
from sureshot.paths import absolute, video_id
from sureshot.web.media import ClipCache, file_reply
from sureshot.web.schema import HANDLERS, DiskFullError
from tests.small_library import index
from tests.web.kinds import KINDS, written
from tests.web.visitor import ALLOWED, UNKNOWN, visiting

DATA = bytes(range(256)) * 4
FILE = Path(__file__)
ID = "0" * 32  # of a video


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "a.mp4"
    path.write_bytes(DATA)
    return path


def client_of(path):
    async def answer(request):
        return file_reply(request, path, "video/mp4")

    routes = [Route("/", answer, methods=["GET", "HEAD"])]
    return TestClient(FastAPI(routes=routes, exception_handlers=HANDLERS))


@pytest.fixture(params=["file", "object"])
def client(request, file):
    if request.param == "file":
        return client_of(file)
    bucket = request.getfixturevalue("bucket")
    bucket.put("a.mp4", DATA)
    return client_of(absolute("s3://films/a.mp4"))


@pytest.mark.parametrize(
    "asked, code, body",
    [
        ("", 200, DATA),
        ("bytes=0-9", 206, DATA[:10]),
        ("bytes=1000-", 206, DATA[1000:]),
        ("bytes=1000-99999", 206, DATA[1000:]),
        ("bytes=-24", 206, DATA[-24:]),
        ("bytes=0-", 206, DATA),
        ("bytes=5-2", 200, DATA),
        ("bytes=0-1,5-6", 200, DATA),
        ("pages=1", 200, DATA),
    ],
)
def test_parts_are_those_asked_for(client, asked, code, body) -> None:
    reply = client.get("/", headers={"Range": asked} if asked else {})
    assert (reply.status_code, reply.content) == (code, body)
    assert ("Content-Range" in reply.headers) == (code == 206)
    head = client.head("/", headers={"Range": asked} if asked else {})
    assert (head.content, int(head.headers["Content-Length"])) == (b"", len(body))


def test_a_range_beyond_the_end_is_refused(client) -> None:
    for asked in ("bytes=1024-", "bytes=99999999999-", "bytes=-0"):
        reply = client.get("/", headers={"Range": asked})
        assert (reply.status_code, reply.headers["Content-Range"]) == (416, "bytes */1024")
        assert reply.json()["error"]["message"] == "The range is beyond the end of the file."


@given(st.text("bytes=0123456789-, ", max_size=30))
def test_no_range_breaks_it(header) -> None:
    reply = client_of(FILE).get("/", headers={"Range": header})
    assert reply.status_code in (200, 206, 416)


def test_a_file_that_was_replaced_is_sent_whole(file) -> None:
    client = client_of(file)
    tag = client.get("/").headers["ETag"]
    again = {"Range": "bytes=0-9", "If-Range": tag}
    assert client.get("/", headers=again).status_code == 206
    file.unlink()
    file.write_bytes(DATA + b"longer")
    assert client.get("/", headers=again).status_code == 200


def sent(path, change):
    """The length that is promised, the bytes that come, and whether the reply stays unfinished."""
    messages: list[dict] = []

    async def receive():
        await asyncio.Event().wait()

    async def send(message):
        if message["type"] == "http.response.body" and len(messages) == 1:
            change()
        messages.append(message)

    async def play():
        scope = {"type": "http", "method": "GET", "headers": []}
        with contextlib.suppress(EOFError):  # of which the middleware says nothing
            await file_reply(Request(scope, receive), path, "video/mp4")(scope, receive, send)

    asyncio.run(play())
    length = int(dict(messages[0]["headers"])[b"content-length"])
    return length, b"".join(part["body"] for part in messages[1:]), messages[-1]["more_body"]


def test_a_file_that_is_replaced_while_it_plays_stays_the_same(file) -> None:
    data = DATA * 1000
    file.write_bytes(data)
    other = file.with_name("b.mp4")
    other.write_bytes(b"another film")
    assert sent(file, lambda: other.replace(file)) == (len(data), data, False)
    assert file.read_bytes() == b"another film"


def test_a_file_that_is_cut_short_while_it_plays_ends_unfinished(file) -> None:
    file.write_bytes(DATA * 1000 * 4)
    length, body, is_unfinished = sent(file, lambda: file.write_bytes(DATA))
    assert len(body) < length and is_unfinished


def test_an_object_that_is_replaced_while_it_plays_ends_unfinished(bucket) -> None:
    data = DATA * 4000
    bucket.put("a.mp4", data)
    change = lambda: bucket.put("a.mp4", data[::-1])  # noqa: E731
    length, body, is_unfinished = sent(absolute("s3://films/a.mp4"), change)
    assert len(body) < length and data.startswith(body) and is_unfinished


def test_what_is_gone_or_no_file_is_reported(file) -> None:
    client = client_of(file)
    file.unlink()
    assert client.get("/").status_code == 410
    file.mkdir()
    reply = client.get("/")
    assert (
        reply.status_code == 410 and "no longer a regular file" in reply.json()["error"]["message"]
    )


def test_an_object_that_was_replaced_or_is_gone(bucket) -> None:
    bucket.put("a.mp4", DATA)
    client = client_of(absolute("s3://films/a.mp4"))
    tag = client.get("/").headers["ETag"]
    bucket.put("a.mp4", DATA[::-1])
    again = client.get("/", headers={"Range": "bytes=0-9", "If-Range": tag})
    assert (again.status_code, again.content) == (200, DATA[::-1])
    bucket.clear()
    assert client.get("/").status_code == 410


def filling(size: int, made: list[int] | None = None):
    def make(path):
        if made is not None:
            made.append(size)
        path.write_bytes(b"x" * size)

    return make


def test_a_film_is_made_once_and_kept(tmp_path) -> None:
    cache, made = ClipCache(tmp_path / "films"), []
    one = cache.film(ID, "a", filling(5, made))
    assert cache.film(ID, "a", filling(5, made)) == one and made == [5]
    assert cache.find(ID, "a") == one and cache.find(ID, "b") is None
    assert cache.film(ID, "b", filling(5, made)) != one


def test_fifty_who_ask_at_once_have_it_made_once(tmp_path) -> None:
    cache, made = ClipCache(tmp_path), []

    def slowly(path):
        time.sleep(0.05)
        filling(5, made)(path)

    threads = [threading.Thread(target=cache.film, args=(ID, "a", slowly)) for _ in range(50)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert made == [5]


def test_the_oldest_go_when_there_is_too_much(tmp_path) -> None:
    cache = ClipCache(tmp_path, size=25)
    paths = [cache.film(ID, name, filling(10)) for name in "ab"]
    for age, path in zip((20, 10), paths, strict=True):
        os.utime(path, (time.time() - age,) * 2)
    cache.film(ID, "a", filling(10))  # asked for again: no longer the oldest
    cache.film(ID, "c", filling(10))
    assert [path.exists() for path in paths] == [True, False]


def test_a_film_that_cannot_be_made_leaves_nothing(tmp_path) -> None:
    def fail(path):
        path.write_bytes(b"half")
        raise VideoError("is damaged")

    with pytest.raises(VideoError, match="is damaged"):
        ClipCache(tmp_path).film(ID, "a", fail)
    assert not list(tmp_path.iterdir())


def test_films_are_for_this_account_alone_and_not_kept_for_ever(tmp_path) -> None:
    (tmp_path / "films").mkdir(mode=0o755)
    cache = ClipCache(tmp_path / "films")
    film = cache.film(ID, "a", filling(10))
    modes = [stat.S_IMODE(path.stat().st_mode) for path in (film.parent, film)]
    assert modes == [0o700, 0o600]
    film.write_bytes(b"")  # cut short: made again
    assert cache.film(ID, "a", filling(10)).read_bytes() == b"x" * 10
    os.utime(film, (time.time() - 100,) * 2)
    ClipCache(tmp_path / "films", age=1000)
    assert film.exists()
    ClipCache(tmp_path / "films", age=10)
    assert not film.exists()


@pytest.mark.parametrize("way", ["removed", "gone", "reset"])
def test_films_go_with_their_video(tmp_path, monkeypatch, way) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    path = written("mpeg4", tmp_path)
    index(str(tmp_path / "db"), path)
    films = catalog.films_dir()
    ClipCache(films).film(ID, "of another", filling(10))
    with visiting(tmp_path / "db", films) as client:
        assert client.get(f"/api/media/{video_id(path)}?at=1").status_code == 200
        assert len(list(films.iterdir())) == 2
        if way == "removed":
            assert client.delete(f"/api/videos/{video_id(path)}", headers=ALLOWED).is_success
        elif way == "reset":
            catalog.reset(str(tmp_path / "db"))
        else:
            path.unlink()
            assert client.get(f"/api/media/{video_id(path)}?at=1").status_code == 410
    assert [film.name[:32] for film in films.iterdir()] == [ID]


def test_a_disk_that_is_really_full(tmp_path) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(disk)]
    try:
        mounted = subprocess.run(command, capture_output=True).returncode == 0
    except FileNotFoundError:
        mounted = False
    if not mounted:
        pytest.skip("needs the right to mount a small file system")
    try:
        cache = ClipCache(disk / "films")
        old = cache.film(ID, "old", filling(600_000))
        assert cache.film(ID, "new", filling(600_000)).exists() and not old.exists()
        with pytest.raises(DiskFullError, match="no room for a film"):
            cache.film(ID, "larger", filling(2_000_000))
        assert cache.film(ID, "small", filling(1000)).stat().st_size == 1000
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_a_folder_that_cannot_be_made_is_told(tmp_path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(SureshotError, match="cannot be written"):
        ClipCache(tmp_path / "file").film(ID, "a", filling(1))


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """All kinds of videos in one index, its server, and where they are."""
    root = tmp_path_factory.mktemp("kinds")
    paths = {}
    for kind in KINDS:
        (root / kind).mkdir()
        paths[kind] = written(kind, root / kind)
    index(str(root / "db"), *paths.values())
    with visiting(root / "db", root / "films") as served:
        yield served, paths


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_plays_at_its_moment(shop, kind) -> None:
    client, paths = shop
    name = video_id(paths[kind])
    told = client.get(f"/api/playing/{name}", params={"at": 5.2, "start": 4.5, "end": 6}).json()
    reply = client.get(told["url"])
    assert (reply.status_code, reply.headers["content-type"]) == (200, told["type"])
    with av.open(io.BytesIO(reply.content)) as container:
        frames = list(container.decode(video=0))
        codec = container.streams.video[0].codec_context.codec.canonical_name
    assert codec in ("h264", "vp9", "av1")
    shown = [f for f in frames if f.time + told["start"] <= 5.25][-1]
    assert shown.to_ndarray(format="rgb24")[60].mean(0).argmax() == 2  # blue
    if kind == "h264":  # as it is
        assert reply.content == paths[kind].read_bytes()


def test_a_moment_is_cut_out_to_keep(shop) -> None:
    client, paths = shop
    address = f"/api/cut/{video_id(paths['hevc'])}"
    reply = client.get(address, params={"start": 2, "end": 4, "rank": 3})
    assert reply.headers["content-disposition"] == (
        "attachment; filename*=utf-8''03%20hevc%2000.00.02-00.00.04.mp4"
    )
    with av.open(io.BytesIO(reply.content)) as container:
        assert container.duration == pytest.approx(2e6, rel=0.1)
    for start, end in ((2, 2), (4, 2), (0, 601), (7, 8)):
        wrong = client.get(address, params={"start": start, "end": end})
        assert wrong.status_code in (400, 422) and wrong.json()["error"]["message"]


def test_the_seconds_seen_first_are_made_before_the_whole(shop) -> None:
    client, paths = shop
    asked = {"at": 3.5, "start": 2.5, "end": 4.5}
    address = f"/api/playing/{video_id(paths['hevc'])}"
    told = client.get(address, params=asked).json()
    assert (told["first"]["start"], told["first"]["end"]) == (3.5, 6.0)
    early = client.get(told["first"]["url"])
    with av.open(io.BytesIO(early.content)) as container:
        shown = next(container.decode(video=0)).to_ndarray(format="rgb24")
        assert container.duration == pytest.approx(2.5e6, rel=0.1)
    assert shown[60].mean(0).argmax() == 1  # green, as at that second
    assert client.head(told["url"]).status_code == 200
    assert client.get(address, params=asked).json()["first"] is None
    direct = client.get(f"/api/playing/{video_id(paths['h264'])}", params=asked).json()
    assert direct["first"] is None


def test_what_is_not_there_is_not_played(shop) -> None:
    client, paths = shop
    for room in ("playing", "media", "cut"):
        asked = {"start": 0, "end": 1}
        assert client.get(f"/api/{room}/{UNKNOWN}", params=asked).status_code == 404
        assert client.get(f"/api/{room}/..%2f..%2fpasswd", params=asked).status_code in (404, 422)
    late = client.get(f"/api/playing/{video_id(paths['h264'])}", params={"at": 99})
    assert (late.status_code, "nothing at 99 s" in late.json()["error"]["message"]) == (400, True)


def test_videos_that_vanish_or_change_are_told_of(tmp_path) -> None:
    path = written("mpeg4", tmp_path)
    index(str(tmp_path / "db"), path)
    address = f"/api/media/{video_id(path)}?at=1"
    with visiting(tmp_path / "db", tmp_path / "c") as client:
        first = client.get(address)
        path.write_text("something else")
        assert client.get(address).status_code == 422
        path.unlink()
        assert client.get(address).status_code == 410
        written("hevc", tmp_path).rename(path)  # another film has taken its place
        assert client.get(address).content != first.content
        assert client.get(address).status_code == 200
