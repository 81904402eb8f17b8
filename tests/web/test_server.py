"""The application and its process."""

import json
import re
import shutil
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from sureshot.errors import ArgumentError, SureshotError
from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.server import run_server
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.paths import ROOT
from tests.small_library import index
from tests.web.browser import served
from tests.web.kinds import written
from tests.web.visitor import ALLOWED, HERE, TOKEN, app_of, visiting


def test_the_page_carries_the_token(visitor) -> None:
    reply = visitor.get("/")
    assert reply.headers["content-type"] == "text/html; charset=utf-8"
    assert f'content="{TOKEN}"' in reply.text and "{{" not in reply.text


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
    with urllib.request.urlopen(f"{address}api/index/events") as events:  # never ends by itself
        assert events.readline() == b'data: {"schema": 3, "job": null}\n'
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


def test_fifty_transcodes_at_once_leave_room_for_searches(tmp_path) -> None:
    path = written("hevc", tmp_path)
    index(str(tmp_path / "db"), path)
    film = f"api/media/{video_id(path)}?start=0&end=0&at="
    words = urllib.parse.quote("blue " * 10_000)
    with served("--db", tmp_path / "db", home=tmp_path) as address:

        def get(what: str) -> tuple[int, bytes]:
            with urllib.request.urlopen(address + what) as reply:
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
    desks = [Session(ServeOptions(db=str(tmp_path / "db")), refresh=0) for _ in range(2)]
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
    with served("--db", tmp_path / "db", "--root", tmp_path, home=tmp_path) as address:
        # A reply to an error ends a script only if curl is told to fail.
        script = "set -eu\n" + "\n".join(BLOCKS).replace("curl -s", "curl -sSf")
        ran = subprocess.run(
            ["sh", "-c", script],
            cwd=tmp_path,
            env={"SURESHOT": address.rstrip("/"), "PATH": "/usr/bin:/bin:/usr/local/bin"},
            capture_output=True,
            text=True,
        )
    assert (ran.returncode, ran.stderr) == (0, "")
    replies = [json.loads(line) for line in ran.stdout.replace("}{", "}\n{").splitlines()]
    assert len(replies) == 9 and all(reply["schema"] == 3 for reply in replies)
    assert replies[-1] == {"schema": 3, "removed": 1}
    assert (tmp_path / "part.mp4").stat().st_size == 100
    assert (tmp_path / "clip.mp4").stat().st_size > 500
