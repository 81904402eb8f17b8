"""Indexing from the page."""

import io
import json
import threading
import time

import pytest
from starlette.testclient import TestClient

from sureshot.errors import ArgumentError
from sureshot.library.catalog import status
from sureshot.web.index_worker import Worker
from sureshot.web.jobs import Jobs, Roots
from sureshot.web.media import ClipCache
from sureshot.web.schema import BusyError, NotFoundError
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.web.visitor import ALLOWED, HERE, app_of


@pytest.fixture
def home(tmp_path):
    for name in ("home/Videos/2024", "home/.hidden", "home/b", "outside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "home" / "a.mp4").touch()
    (tmp_path / "home" / "way-out").symlink_to(tmp_path / "outside")
    (tmp_path / "home" / "round").symlink_to(tmp_path / "home" / "round")
    return tmp_path / "home"


def test_folders_are_shown_level_by_level(home) -> None:
    roots = Roots([home])
    top = roots.below(None)
    assert (top.folder, [one.path for one in top.folders]) == (None, [str(home)])
    root = roots.below(str(home))
    assert (root.above, [one.name for one in root.folders]) == (None, ["b", "Videos"])
    inside = roots.below(str(home / "Videos"))
    assert (inside.above, [one.name for one in inside.folders]) == (str(home), ["2024"])


def test_nothing_outside_is_looked_at(home, tmp_path) -> None:
    roots = Roots([home])
    below = ("../outside", "way-out", "round", "none", "a.mp4", "a" * 300)
    beside = (f"{home}-other", f"{home}\0", "a" * 5000, "", "b", "~")
    for folder in ("/", "/etc", str(tmp_path), *beside, *(f"{home}/{name}" for name in below)):
        with pytest.raises(NotFoundError):
            roots.allowed(folder)
        with pytest.raises(NotFoundError):
            roots.below(folder)
    assert roots.allowed(f"{home}/Videos/../b") == home / "b"


def test_a_root_that_is_no_folder_is_told(home) -> None:
    for root in (home / "a.mp4", "s3://films"):
        with pytest.raises(ArgumentError, match=f"There is no folder {root}"):
            Roots([root])


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "v").mkdir()
    coloured(tmp_path / "v" / "a.mp4", ["red"], seconds=1, rate=5)
    (tmp_path / "v" / "broken.mp4").write_text("no video")
    return tmp_path / "v"


class Orders(io.StringIO):
    """Input that gives its lines when it is told to."""

    def __init__(self, first) -> None:
        super().__init__()
        self.first = json.dumps(first) + "\n"
        self.more: list[str] = []
        self.ready = threading.Event()

    def readline(self):
        return self.first

    def __iter__(self):
        self.ready.wait()
        yield from self.more


def asked(folder, db, model="tiny"):
    return {"folders": [str(folder)], "db": str(db), "model": model, "device": None}


def ran(orders):
    out = io.StringIO()
    Worker(orders, out, every=0).run()
    orders.ready.set()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_it_says_how_far_it_is_and_what_came_of_it(folder, tmp_path) -> None:
    told = ran(Orders(asked(folder, tmp_path / "db")))
    assert {line["state"] for line in told[:-1]} == {"running"}
    assert [line["share"] for line in told] == sorted(line["share"] for line in told)
    assert told[-2]["said"].startswith("2 of 2 videos, 1 failed, 1 s of video, ")
    assert (told[-1]["state"], told[-1]["share"]) == ("done", 1.0)
    assert told[-1]["said"] == "2 videos found: 1 indexed, 1 failed."
    assert [one["path"] for one in told[-1]["failed"]] == [str(folder / "broken.mp4")]


def test_it_waits_while_it_is_paused(folder, tmp_path) -> None:
    orders, out = Orders(asked(folder, tmp_path / "db")), io.StringIO()
    worker = Worker(orders, out, every=0)
    worker._resumed.clear()
    run = threading.Thread(target=worker.run)
    run.start()
    while '"paused"' not in out.getvalue():
        run.join(0.01)
    run.join(0.2)
    assert run.is_alive() and '"running"' not in out.getvalue()
    orders.more = ["resume\n", "pause\n", "resume\n"]
    worker._resumed.set()
    run.join()
    orders.ready.set()
    assert json.loads(out.getvalue().splitlines()[-1])["state"] == "done"
    assert status(tmp_path / "db").videos == 1


def test_what_is_wrong_is_a_sentence(folder, tmp_path) -> None:
    (line,) = ran(Orders(asked(folder / "none", tmp_path / "db")))
    assert (line["state"], line["error"]["code"]) == ("failed", "query")
    assert line["error"]["message"].startswith("There is nothing at ")


def until(jobs, *states):
    while True:  # the limit of the test is enough
        job = jobs.state().job
        if job.state in states:
            return job
        assert job.state in ("running", "paused"), job
        time.sleep(0.03)


@pytest.fixture
def jobs(tmp_path):
    (tmp_path / "v").mkdir()
    for number in range(3):
        coloured(tmp_path / "v" / f"{number}.mp4", ["red"], seconds=1, rate=5)
    jobs = Jobs(Session(ServeOptions(db=str(tmp_path / "db"), model="tiny")))
    yield jobs
    jobs.close()


def test_a_run_in_a_process_of_its_own(jobs, tmp_path) -> None:
    assert jobs.state().job is None
    jobs.start([tmp_path / "v"])
    with pytest.raises(BusyError, match="already"):
        jobs.start([tmp_path / "v"])
    jobs.order("pause")
    assert jobs.state().job.state == "paused"
    jobs.order("resume")
    ended = until(jobs, "done")
    assert ended.said == "3 videos found: 3 indexed."
    with pytest.raises(NotFoundError, match="Nothing is being indexed"):
        jobs.order("pause")
    assert status(tmp_path / "db").videos == 3


def test_a_run_that_is_cancelled_or_killed_is_told_of(jobs, tmp_path) -> None:
    jobs.start([tmp_path / "v"])
    jobs.order("cancel")
    assert until(jobs, "cancelled", "done")
    jobs.start([tmp_path / "v"])
    jobs._process.kill()
    state = until(jobs, "failed")
    assert state.said.startswith("Indexing ended unexpectedly")


def test_the_end_of_the_server_ends_the_run(jobs, tmp_path) -> None:
    jobs.start([tmp_path / "v"])
    jobs.close()
    assert jobs._process.poll() is not None


@pytest.fixture
def empty(tmp_path):
    """A server without an index, and a folder of videos below its root."""
    (tmp_path / "root" / "v").mkdir(parents=True)
    coloured(tmp_path / "root" / "v" / "a.mp4", ["red"], seconds=1, rate=5)
    desk = Session(ServeOptions(db=str(tmp_path / "db"), model="tiny"))
    jobs = Jobs(desk)
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
    for order, code in (("pause", 404), ("explode", 422)):
        assert client.post(f"/api/index/{order}", headers=ALLOWED).status_code == code
    assert client.get("/api/index").json()["job"] is None


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
