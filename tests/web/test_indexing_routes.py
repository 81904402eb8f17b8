"""Indexing over HTTP."""

import json
import time

import pytest
from starlette.testclient import TestClient

from sureshot.web.jobs import Jobs
from sureshot.web.media import ClipCache
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.web.visitor import ALLOWED, HERE, app_of


@pytest.fixture
def empty(tmp_path):
    """A server without an index, and a folder of videos below its root."""
    (tmp_path / "root" / "v").mkdir(parents=True)
    coloured(tmp_path / "root" / "v" / "a.mp4", ["red"], seconds=1, rate=5)
    desk = Session(ServeOptions(db=str(tmp_path / "db"), model="tiny"))
    jobs = Jobs(desk.place, desk.forget_videos, nice=0)
    app = app_of(desk, ClipCache(tmp_path / "films"), jobs, tmp_path / "root")
    with TestClient(app, base_url=HERE) as client:
        yield client, tmp_path / "root", desk
    desk.close()
    jobs.close()


def test_from_an_empty_index_to_a_hit(empty) -> None:
    client, _, _ = empty
    assert client.get("/api/status").status_code == 409
    (first,) = client.get("/api/folders").json()["folders"]
    (inner,) = client.get("/api/folders", params={"folder": first["path"]}).json()["folders"]
    wish = {"folders": [inner["path"]]}
    assert client.post("/api/index", json=wish).status_code == 403
    assert client.post("/api/index", json=wish, headers=ALLOWED).json()["job"]["state"] == "running"
    while (job := client.get("/api/index").json()["job"])["state"] == "running":
        time.sleep(0.03)
    assert (job["state"], job["said"]) == ("done", "1 video found: 1 indexed.")
    assert len(client.get("/api/search", params={"q": "red"}).json()["hits"]) == 1


def test_nothing_outside_of_the_roots_is_indexed(empty, tmp_path) -> None:
    client, root, _ = empty
    for folder in (str(tmp_path), "/", f"{root}/..", "v"):
        reply = client.post("/api/index", json={"folders": [folder]}, headers=ALLOWED)
        assert reply.status_code == 404
        assert client.get("/api/folders", params={"folder": folder}).status_code == 404
    for body in ({}, {"folders": []}, {"folders": "v"}):
        assert client.post("/api/index", json=body, headers=ALLOWED).status_code == 422
    assert client.get("/api/index").json()["job"] is None


def test_orders_without_a_run_are_told(empty) -> None:
    client, _, _ = empty
    assert client.post("/api/index/pause").status_code == 403
    assert client.post("/api/index/pause", headers=ALLOWED).status_code == 404
    assert client.post("/api/index/explode", headers=ALLOWED).status_code == 422


def test_progress_comes_as_events_until_the_server_ends(empty) -> None:
    client, _, desk = empty
    desk.closing = True
    assert client.get("/api/index/events").text == ""
    desk.closing = False

    class Watched(type(desk)):
        looks = 0

        @property
        def closing(self):
            Watched.looks += 1
            return Watched.looks > 2

        @closing.setter
        def closing(self, value):
            pass

    desk.__class__ = Watched
    event = client.get("/api/index/events").text
    assert json.loads(event.removeprefix("data: "))["job"] is None
