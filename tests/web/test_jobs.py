"""Indexing from the page."""

import json
import subprocess
import sys
import time

import pytest
from starlette.testclient import TestClient

from sureshot.errors import ArgumentError
from sureshot.library.catalog import status
from sureshot.library.index_result import Indexed
from sureshot.web.index_worker import Worker
from sureshot.web.jobs import Jobs, JobValues, Roots
from sureshot.web.media import ClipCache
from sureshot.web.schema import BusyError, NotFoundError
from sureshot.web.session import Session
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
    with pytest.raises(ArgumentError, match=rf"There is no folder {home}/a\.mp4"):
        Roots([home / "a.mp4"])


@pytest.fixture
def jobs(tmp_path):
    (tmp_path / "v").mkdir()
    for number in range(2):
        coloured(tmp_path / "v" / f"{number}.mp4", ["red"], seconds=1, rate=5)
    (tmp_path / "v" / "broken.mp4").write_text("no video")
    jobs = Jobs(Session(db=str(tmp_path / "db"), model="tiny"))
    yield jobs
    jobs.close()


def until(jobs, is_so):
    while not is_so(jobs.state().job):  # the limit of the test is enough
        time.sleep(0.03)
    return jobs.state().job


def has_ended(job):
    return job.state not in ("running", "paused")


def test_a_run_is_paused_and_resumed_and_says_what_came_of_it(jobs, tmp_path) -> None:
    assert jobs.state().job is None
    jobs.start([tmp_path / "v"])
    with pytest.raises(BusyError, match="already"):
        jobs.start([tmp_path / "v"])
    jobs.order("pause")
    until(jobs, lambda job: jobs.version > 2)  # it has heard of it
    time.sleep(0.3)
    assert jobs.state().job.state == "paused"
    jobs.order("resume")
    ended = until(jobs, has_ended)
    assert (ended.state, ended.share) == ("done", 1.0)
    assert ended.text == "3 videos found: 2 indexed, 1 failed."
    assert [one.path for one in ended.failed] == [str(tmp_path / "v" / "broken.mp4")]
    with pytest.raises(NotFoundError, match="Nothing is being indexed"):
        jobs.order("pause")
    assert status(tmp_path / "db").videos == 2


def test_a_run_that_fails_is_cancelled_or_killed_says_so(jobs, tmp_path, monkeypatch) -> None:
    # A file of that name in the folder that we are in, perhaps a download, is not run.
    (tmp_path / "sureshot.py").touch()
    monkeypatch.chdir(tmp_path)
    jobs.start([tmp_path / "none"])
    failed = until(jobs, has_ended)
    assert (failed.state, failed.error.code) == ("failed", "query")
    assert failed.text == failed.error.message and "There is nothing at " in failed.text
    jobs.start([tmp_path / "v"])
    jobs.order("cancel")
    assert until(jobs, has_ended).state in ("cancelled", "done")
    jobs.start([tmp_path / "v"])
    jobs._process.kill()
    assert until(jobs, has_ended).text.startswith("Indexing broke off: the system ended it")


def test_time_spent_paused_counts_once_and_failures_all(capsys, tmp_path) -> None:
    worker = Worker()
    worker._paused = 10.0
    failed = [(tmp_path, "is no video")] * 300
    result = Indexed(found=2, indexed=1, seconds=100.0, elapsed=20.0, failed=failed)
    for state in ("paused", "running"):  # the same moment of the run, before and after a pause
        worker._report(result, state)
        told = json.loads(capsys.readouterr().out)
        assert "10.0 times real time" in told["text"]
        assert (told["failures"], len(told["failed"])) == (300, 200)


def test_half_a_last_line_is_an_unexpected_end(jobs) -> None:
    script = """print('{"schema": 1, "state": "runn', end='')"""
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    jobs._process, jobs._job = process, JobValues(state="running", folders=[])
    jobs._read(process)
    assert jobs.state().job.text.startswith("Indexing broke off: `sureshot serve` printed why.")


def test_the_end_of_the_server_ends_the_run(jobs, tmp_path) -> None:
    jobs.start([tmp_path / "v"])
    jobs.close()
    assert jobs._process.poll() is not None


@pytest.fixture
def empty(tmp_path):
    """A server without an index, and a folder of videos below its root."""
    (tmp_path / "root" / "v").mkdir(parents=True)
    coloured(tmp_path / "root" / "v" / "a.mp4", ["red"], seconds=1, rate=5)
    desk = Session(db=str(tmp_path / "db"), model="tiny")
    jobs = Jobs(desk)
    app = app_of(desk, ClipCache(tmp_path / "films"), jobs, tmp_path / "root")
    with TestClient(app, base_url=HERE) as client:
        yield client, tmp_path / "root"
    desk.close()
    jobs.close()


def test_from_an_empty_index_to_a_hit(empty) -> None:
    client, _ = empty
    assert client.get("/api/status").status_code == 409
    (first,) = client.get("/api/folders").json()["folders"]
    (inner,) = client.get("/api/folders", params={"folder": first["path"]}).json()["folders"]
    wish = {"folders": [inner["path"]]}
    assert client.post("/api/index", json=wish).status_code == 403
    assert client.post("/api/index", json=wish, headers=ALLOWED).json()["job"]["state"] == "running"
    while (job := client.get("/api/index").json()["job"])["state"] == "running":
        time.sleep(0.03)
    assert (job["state"], job["text"]) == ("done", "1 video found: 1 indexed.")
    assert len(client.get("/api/search", params={"q": "red"}).json()["hits"]) == 1


def test_nothing_outside_of_the_roots_is_indexed(empty, tmp_path) -> None:
    client, root = empty
    (tmp_path / "secret").mkdir()
    coloured(tmp_path / "secret" / "a.mp4", ["red"], seconds=1, rate=5)
    (root / "album").symlink_to(tmp_path / "secret")
    client.post("/api/index", json={"folders": [str(root)]}, headers=ALLOWED)
    while (job := client.get("/api/index").json()["job"])["state"] == "running":
        time.sleep(0.03)
    assert "1 link leads out of the folders that may be indexed" in job["text"]
    assert "secret" not in client.get("/api/videos").text
    for folder in (str(tmp_path), "/", f"{root}/..", "v"):
        reply = client.post("/api/index", json={"folders": [folder]}, headers=ALLOWED)
        assert reply.status_code == 404
        assert client.get("/api/folders", params={"folder": folder}).status_code == 404
    for body in ({}, {"folders": []}, {"folders": "v"}):
        assert client.post("/api/index", json=body, headers=ALLOWED).status_code == 422
    for order, code in (("pause", 404), ("explode", 422)):
        assert client.post(f"/api/index/{order}", headers=ALLOWED).status_code == code
