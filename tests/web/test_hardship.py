"""Many at once, two servers on one index, and an index of another model, over HTTP."""

import json
import shutil
import urllib.parse
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import pytest
from starlette.testclient import TestClient

from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.small_library import index
from tests.web.browser import served
from tests.web.kinds import written
from tests.web.visitor import ALLOWED, HERE, app_of


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
    desks = [Session(ServeOptions(db=str(tmp_path / "db"))) for _ in range(2)]
    apps = [app_of(desk, ClipCache(tmp_path / "films")) for desk in desks]
    with TestClient(apps[0], base_url=HERE) as one, TestClient(apps[1], base_url=HERE) as other:
        yield one, other, folder
    for desk in desks:
        desk.close()


def test_two_servers_on_one_index_know_the_same(two, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sureshot.web.session._FRESH", 0.0)
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
    desk = Session(ServeOptions(db=str(tmp_path / "db"), model="bundled"))
    with TestClient(app_of(desk, ClipCache(tmp_path / "films")), base_url=HERE) as client:
        for address in ("search?q=red", f"like?video={video_id(library.videos / 'red.mp4')}"):
            reply = client.get(f"/api/{address}")
            told = reply.json()["error"]
            assert (reply.status_code, told["code"]) == (409, "index")
            assert "written by the model 'tiny'" in told["message"]
        assert client.get("/api/videos").json()["total"] == 5  # what needs no model goes on
    desk.close()
