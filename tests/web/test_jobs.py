"""The run that a server has."""

import time

import pytest

from sureshot.library.catalog import status
from sureshot.web.jobs import Jobs
from sureshot.web.schema import BusyError, NotFoundError
from sureshot.web.session import ServeOptions
from tests.clips import coloured


def until(jobs, *states):
    while True:  # the limit of the test is enough
        state = jobs.state()["job"]
        if state["state"] in states:
            return state
        assert state["state"] in ("running", "paused"), state
        time.sleep(0.03)


@pytest.fixture
def jobs(tmp_path):
    (tmp_path / "v").mkdir()
    for number in range(3):
        coloured(tmp_path / "v" / f"{number}.mp4", ["red"], seconds=1, rate=5)
    jobs = Jobs(ServeOptions(db=str(tmp_path / "db"), model="tiny"), nice=0)
    yield jobs
    jobs.close()


def test_a_run_in_a_process_of_its_own(jobs, tmp_path) -> None:
    assert jobs.state() == {"job": None}
    jobs.start([tmp_path / "v"])
    with pytest.raises(BusyError, match="already"):
        jobs.start([tmp_path / "v"])
    jobs.order("pause")
    assert jobs.state()["job"]["state"] == "paused"
    jobs.order("resume")
    ended = until(jobs, "done")
    assert ended["said"] == "3 videos found: 3 indexed."
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
    assert state["said"].startswith("Indexing ended without a word")


def test_the_end_of_the_server_ends_the_run(jobs, tmp_path) -> None:
    jobs.start([tmp_path / "v"])
    jobs.close()
    assert jobs._process.poll() is not None
