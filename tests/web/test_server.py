"""The application and its process."""

import base64
import contextlib
import http.client
import ipaddress
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from sureshot.errors import ArgumentError, SureshotError
from sureshot.paths import video_id
from sureshot.web.jobs import Jobs, Roots
from sureshot.web.media import ClipCache
from sureshot.web.server import _address, make_app, run_server
from sureshot.web.session import Session
from tests.clips import coloured
from tests.paths import ROOT
from tests.small_library import index
from tests.web.browser import asked, served, started
from tests.web.kinds import written
from tests.web.visitor import ALLOWED, HERE, app_of, visiting


def test_nothing_on_the_page_is_inline_or_from_elsewhere(visitor) -> None:
    for address in ("/", "/api"):
        page = visitor.get(address).text
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", page)
        assert not re.search(r"(?:src|href)=[\"']?(?:https?:)?//", page)


def test_the_page_makes_no_code_or_markup_of_texts_and_is_small(visitor) -> None:
    files = ("/", "/page.css", "/page.js", "/icon.svg")
    assert sum(len(visitor.get(file).content) for file in files) < 100_000
    for file in ("/page.js", "/api.js"):
        code = visitor.get(file).text
        assert not re.search(
            r"innerHTML|outerHTML|insertAdjacentHTML|\beval\b|Function\(|document\.write", code
        )


def test_addresses_that_do_not_exist_are_told(visitor) -> None:
    for address in (
        "/nothing",
        "/../pyproject.toml",
        "/page/../app.py",
        "/%2e%2e/%2e%2e/etc/passwd",
    ):
        reply = visitor.get(address)
        assert (reply.status_code, list(reply.json())) == (404, ["schema", "error"])
    reply = visitor.post("/api/status", headers=ALLOWED)
    assert (reply.status_code, "other methods" in reply.json()["error"]["message"]) == (405, True)


def test_the_openapi_document_names_every_address_and_loads_no_page_from_elsewhere(visitor) -> None:
    paths = visitor.get("/api/openapi.json").json()["paths"]
    assert {"/api/search", "/api/like", "/api/describe", "/api/videos", "/api/status"} <= set(paths)
    assert visitor.get("/docs").status_code == visitor.get("/redoc").status_code == 404


@pytest.mark.parametrize(
    ("checks", "credentials", "scheme"),
    [
        ({"secret": "token"}, {"Authorization": "Bearer token"}, "bearer"),
        ({"password": "12345678"}, {"Authorization": "Basic OjEyMzQ1Njc4"}, "basic"),
    ],
)
def test_the_openapi_document_says_how_to_authenticate(desk, tmp_path, checks, credentials, scheme):
    app = make_app(desk, ClipCache(tmp_path), Jobs(desk), Roots([]), **checks)
    with TestClient(app, base_url=HERE) as client:
        assert client.get("/api/openapi.json").status_code == 401
        document = client.get("/api/openapi.json", headers=credentials).json()
    (name,) = document["security"][0]
    kinds = document["components"]["securitySchemes"]
    assert kinds[name] == {"type": "http", "scheme": scheme}
    assert "401" in document["paths"]["/api/search"]["get"]["responses"]


@pytest.mark.parametrize("ending", [signal.SIGINT, signal.SIGTERM])
def test_it_answers_and_ends_cleanly(library, ending) -> None:
    with started("--db", library.db, environment=dict(os.environ)) as (process, line, printed):
        assert line.startswith("Sureshot is at http://localhost:"), line + printed.read()
        address, _, token = line.split()[3].partition("?token=")
        known = {"Authorization": f"Bearer {token}"}
        with urllib.request.urlopen(asked(f"{address}api/search?q=red", known)) as reply:
            assert b'"hits": [{' in reply.read()
        for headers, code in (({}, 401), (known | {"Host": "evil.example"}, 421)):
            with pytest.raises(urllib.error.HTTPError) as told:
                urllib.request.urlopen(asked(address, headers))
            told.value.close()
            assert told.value.code == code
        # A client of a proxy names the whole address, which then counts and not the Host header.
        for whole, code in ((address, 200), (f"{address}api/none", 404), ("http://evil/api", 421)):
            line = http.client.HTTPConnection(urllib.parse.urlsplit(address).netloc)
            line.request("GET", whole, headers=known | {"Host": "localhost"})
            assert (whole, line.getresponse().status) == (whole, code)
            line.close()
        with urllib.request.urlopen(asked(f"{address}api/index/events", known)) as events:
            assert events.readline() == b'data: {"schema": 4, "job": null}\n'  # it never ends
            os.kill(process.pid, ending)
        assert printed.read() == ""


SLOW = """
import time
from sureshot.__main__ import main
from sureshot.library import catalog
from sureshot.web import server
whole, server._GRACE = catalog.status, {grace}
catalog.status = lambda db, **more: time.sleep({seconds}) or whole(db, **more)
main()
"""


@pytest.mark.parametrize(("seconds", "grace"), [(0.5, 5), (2.0, 0.5)])
def test_it_ends_without_a_word_while_requests_wait(library, tmp_path, seconds, grace) -> None:
    code = SLOW.format(seconds=seconds, grace=grace)
    with served("--db", library.db, home=tmp_path, code=code) as (address, known):
        place = urllib.parse.urlsplit(address)
        head = f"GET /api/status HTTP/1.1\r\nHost: {place.netloc}\r\n"
        asking = [socket.create_connection((place.hostname, place.port)) for _ in range(40)]
        for one in asking:  # more than are answered at once
            one.sendall(f"{head}Authorization: {known['Authorization']}\r\n\r\n".encode())
        time.sleep(0.3)
    for one in asking:
        with one, contextlib.suppress(ConnectionError):  # some were not read before the end
            assert one.recv(12) in (b"HTTP/1.1 200", b"HTTP/1.1 503", b"HTTP/1.1 500", b"")


def test_without_a_token_every_account_of_this_machine_is_let_in(library, tmp_path) -> None:
    with served("--db", library.db, "--no-token", home=tmp_path) as (address, _):
        with urllib.request.urlopen(f"{address}api/status") as reply:
            assert json.loads(reply.read())["videos"] == 5
        with pytest.raises(urllib.error.HTTPError) as told:
            urllib.request.urlopen(f"{address}api/index/pause", data=b"")
        told.value.close()
        assert told.value.code == 403  # a page of another site could send that


def test_what_others_can_reach_needs_a_password(tmp_path) -> None:
    with pytest.raises(ArgumentError, match="others in your network"):
        run_server(host="0.0.0.0")
    with pytest.raises(ArgumentError, match=r"With --name films\.example others"):
        run_server(names=["films.example"])
    for name in ("https://films.example", "films.example:8443", "."):
        with pytest.raises(ArgumentError, match="is no name of a host"):
            run_server(names=[name])
    file = tmp_path / "password"
    file.write_text("long enough\n")
    for mode in (0o644, 0o640, 0o604):
        file.chmod(mode)
        with pytest.raises(ArgumentError, match="chmod 600 "):
            run_server(host="0.0.0.0", password_file=file)
    file.chmod(0o600)
    for text in ("", "short\n", "\nlong enough"):
        file.write_text(text)
        with pytest.raises(ArgumentError, match="fewer than 8 letters"):
            run_server(host="0.0.0.0", password_file=file)
    with pytest.raises(ArgumentError, match="cannot be read: no such file"):
        run_server(host="0.0.0.0", password_file=tmp_path / "none")


def test_a_proxy_has_a_name_and_nobody_chooses_where_he_asks_from(library, tmp_path) -> None:
    file = tmp_path / "password"
    file.write_text("long enough\n")
    file.chmod(0o600)
    options = ("--db", library.db, "--name", "films.example", "--password-file", file)

    def code(address: str, host: str, password: str, client: str) -> int:
        told = base64.b64encode(f"me:{password}".encode()).decode()
        sent = {"Host": host, "Authorization": f"Basic {told}", "X-Forwarded-For": client}
        try:
            with urllib.request.urlopen(asked(f"{address}api/status", sent)) as reply:
                return reply.status
        except urllib.error.HTTPError as error:
            error.close()
            return error.code

    with served(*options, home=tmp_path) as (address, _):
        assert code(address, "films.example", "long enough", "192.0.2.1") == 200
        assert code(address, "Films.example.:8443", "long enough", "192.0.2.1") == 200
        assert code(address, "other.example", "long enough", "192.0.2.1") == 421
        wrong = [code(address, "films.example", "wrong", f"192.0.2.{n}") for n in range(8)]
        assert wrong[:3] == [401, 401, 401] and 429 in wrong  # whose second may be over for one


def test_a_port_that_is_taken_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(SureshotError, match=f"port {port}: address already in use"):
            run_server(port=port)


HURRIED = """
from sureshot.__main__ import main
from sureshot.web import server
server._HEAD_TIME = server._PIECE_TIME = 3.0
main()
"""


def test_connections_that_ask_nothing_keep_nobody_out_and_are_closed(library, tmp_path) -> None:
    with served("--db", library.db, home=tmp_path, code=HURRIED) as (address, known):
        place = urllib.parse.urlsplit(address)
        silent = [socket.create_connection((place.hostname, place.port)) for _ in range(600)]
        for one in silent[::2]:
            with contextlib.suppress(OSError):  # closed already
                one.sendall(b"GET / HTTP/1.1\r\nHost: ")  # and never the rest
        with urllib.request.urlopen(asked(f"{address}api/status", known)) as reply:
            assert reply.status == 200
        for one in silent:
            with contextlib.suppress(ConnectionError):
                assert one.recv(1) == b""
            one.close()
        # Many that ask at once are none of these.
        asking = [socket.create_connection((place.hostname, place.port)) for _ in range(120)]
        for one in asking:
            one.sendall(f"GET /api/status HTTP/1.1\r\nHost: {place.netloc}\r\n\r\n".encode())
        assert {one.recv(12) for one in asking} == {b"HTTP/1.1 401"}
        for one in asking:
            one.close()
        # Half a photo, whose rest never comes.
        head = f"POST /api/like HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Length: 9\r\n"
        with socket.create_connection((place.hostname, place.port)) as half:
            half.sendall(f"{head}Authorization: {known['Authorization']}\r\n\r\nhalf".encode())
            assert half.recv(1) == b""


CRASH = """
from sureshot.__main__ import main
from sureshot.library import catalog
catalog.status = lambda db, **more: 1 / 0
main()
"""


def test_a_fault_of_ours_is_answered_with_a_sentence_and_printed() -> None:
    with started(environment=dict(os.environ), code=CRASH) as (process, line, printed):
        address, _, token = line.split()[3].partition("?token=")
        with pytest.raises(urllib.error.HTTPError) as told:
            known = {"Authorization": f"Bearer {token}"}
            urllib.request.urlopen(asked(f"{address}api/status", known))
        with told.value as reply:
            assert (reply.code, json.loads(reply.read())["error"]["code"]) == (500, "fault")
        process.terminate()
        err = printed.read()
        assert "Traceback" in err and "ZeroDivisionError" in err


def test_the_printed_address_can_be_opened() -> None:
    assert _address("127.0.0.1", 80) == "http://localhost:80/"
    assert _address("::1", 80) == "http://[::1]:80/"
    for everywhere in ("0.0.0.0", "::"):
        host = urllib.parse.urlsplit(_address(everywhere, 80)).hostname
        assert not ipaddress.ip_address("127.0.0.1" if host == "localhost" else host).is_unspecified


def test_fifty_transcodes_at_once_leave_room_for_searches(tmp_path) -> None:
    path = written("hevc", tmp_path)
    index(str(tmp_path / "db"), path)
    film = f"api/media/{video_id(path)}?start=0&end=0&at="
    words = urllib.parse.quote("blue " * 10_000)
    with served("--db", tmp_path / "db", home=tmp_path) as (address, known):

        def get(what: str) -> tuple[int, bytes]:
            with urllib.request.urlopen(asked(address + what, known)) as reply:
                return reply.status, reply.read()

        with ThreadPoolExecutor(50) as many:
            films = [many.submit(get, f"{film}{0.1 * number:.1f}") for number in range(50)]
            found = [get("api/search?q=blue"), get(f"api/search?q={words}")]
            made = [one.result() for one in films]
    assert all(code == 200 and json.loads(data)["hits"] for code, data in found)
    assert all(code == 200 and data[4:8] == b"ftyp" for code, data in made)
    assert len({data for _, data in made}) > 20  # each shows another part


@pytest.fixture
def two(tmp_path):
    """Two servers on one index and one folder of films, and where the videos are."""
    folder = tmp_path / "videos"
    folder.mkdir()
    for name in ("red", "blue"):
        coloured(folder / f"{name}.mp4", [name], seconds=1, rate=5)
    written("mpeg4", folder)
    index(str(tmp_path / "db"), folder)
    desks = [Session(db=str(tmp_path / "db"), refresh=0) for _ in range(2)]
    apps = [app_of(desk, ClipCache(tmp_path / "films")) for desk in desks]
    with TestClient(apps[0], base_url=HERE) as one, TestClient(apps[1], base_url=HERE) as other:
        yield one, other, folder
    for desk in desks:
        desk.close()


def test_two_servers_on_one_index_know_the_same(two, tmp_path) -> None:
    one, other, folder = two
    (hit, *_) = one.get("/api/search", params={"q": "red"}).json()["hits"]
    assert other.get("/api/search", params={"q": "red"}).json()["hits"][0] == hit
    moment = {"video": hit["id"], "start": hit["start"], "end": hit["end"]}
    said = {"query": "red", "verdict": "right", "moments": [moment]}
    assert one.post("/api/judge", json=said, headers=ALLOWED).json()["judged"] == 1
    assert other.get("/api/judge", params={"query": "red"}).json()["state"] == "present"
    coloured(folder / "green.mp4", ["green"], seconds=1, rate=5)
    index(str(tmp_path / "db"), folder)
    for server in two[:2]:
        hits = server.get("/api/search", params={"q": "green"}).json()["hits"]
        assert str(folder / "green.mp4") in {hit["path"] for hit in hits[:2]}
    green = f"/api/videos/{video_id(folder / 'green.mp4')}"
    assert one.delete(green, headers=ALLOWED).json()["removed"] == 1
    assert other.get(green).status_code == 404
    film = f"/api/media/{video_id(folder / 'mpeg4.mp4')}?at=1"
    for server in two[:2]:  # pydantic warns where two threads build the fields of an address
        assert server.get("/api/media/none").status_code == 422
    with ThreadPoolExecutor(2) as both:
        ways = [both.submit(server.get, film) for server in two[:2]]
        films = [way.result() for way in ways]
    assert [film.status_code for film in films] == [200, 200]
    assert len(list((tmp_path / "films").iterdir())) == 1


def test_an_index_of_another_model_is_told_of_at_every_address(library, tmp_path) -> None:
    pytest.importorskip("all_minilm_l6_v2")
    shutil.copytree(library.db, tmp_path / "db")
    with visiting(tmp_path / "db", tmp_path / "films", model="bundled") as client:
        for address in ("search?q=red", f"like?video={video_id(library.videos / 'red.mp4')}"):
            reply = client.get(f"/api/{address}")
            told = reply.json()["error"]
            assert (reply.status_code, told["code"]) == (409, "index")
            assert "written by the model 'tiny'" in told["message"]
        assert client.get("/api/videos").json()["total"] == 5  # what needs no model goes on


BLOCKS = re.findall(r"```sh\n(.*?)```", (ROOT / "docs" / "api.md").read_text("utf-8"), re.S)


def test_every_command_of_the_document_works(tmp_path) -> None:
    if shutil.which("curl") is None:
        pytest.skip("there is no curl here")
    (tmp_path / "v").mkdir()
    coloured(tmp_path / "v" / "a.mp4", ["red"], seconds=2, rate=5)
    index(str(tmp_path / "db"), tmp_path / "v")
    with served("--db", tmp_path / "db", "--root", tmp_path, home=tmp_path) as (address, known):
        # A reply to an error ends a script only if curl is told to fail.
        script = "set -eu\n" + "\n".join(BLOCKS).replace("curl -s", "curl -sSf")
        ran = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env={
                "SURESHOT": address.rstrip("/"),
                "TOKEN": known["Authorization"].removeprefix("Bearer "),
                "PATH": "/usr/bin:/bin:/usr/local/bin",
            },
            capture_output=True,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    replies = [json.loads(line) for line in ran.stdout.replace("}{", "}\n{").splitlines()]
    assert len(replies) == 9 and all(reply["schema"] == 4 for reply in replies)
    assert replies[-1] == {"schema": 4, "removed": 1}
    assert (tmp_path / "part.mp4").stat().st_size == 100
    assert (tmp_path / "clip.mp4").stat().st_size > 500
