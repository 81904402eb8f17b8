"""The process that indexes."""

import io
import json
import threading

import pytest

from sureshot.library.catalog import status
from sureshot.web.index_worker import Worker
from tests.clips import coloured


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
    return {"folders": [str(folder)], "db": str(db), "model": model, "device": None, "nice": 0}


def ran(orders):
    out = io.StringIO()
    Worker(orders, out).run()
    orders.ready.set()
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_it_says_how_far_it_is_and_what_came_of_it(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sureshot.web.index_worker._EVERY", 0.0)
    told = ran(Orders(asked(folder, tmp_path / "db")))
    assert {line["state"] for line in told[:-1]} == {"running"}
    assert [line["share"] for line in told] == sorted(line["share"] for line in told)
    assert told[-2]["said"].startswith("2 of 2 videos, 1 failed, 1 s of video, ")
    assert (told[-1]["state"], told[-1]["share"]) == ("done", 1.0)
    assert told[-1]["said"] == "2 videos found: 1 indexed, 1 failed."
    assert [one["path"] for one in told[-1]["failed"]] == [str(folder / "broken.mp4")]


def test_it_is_cancelled_and_by_the_end_of_its_input_too(folder, tmp_path) -> None:
    for lines in (["pause\n", "cancel\n"], []):
        orders = Orders(asked(folder, tmp_path / "db"))
        orders.more = lines
        orders.ready.set()
        assert ran(orders)[-1]["state"] in ("cancelled", "done")


def test_it_waits_while_it_is_paused(folder, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("sureshot.web.index_worker._EVERY", 0.0)
    orders, out = Orders(asked(folder, tmp_path / "db")), io.StringIO()
    worker = Worker(orders, out)
    worker._go_on.clear()
    run = threading.Thread(target=worker.run)
    run.start()
    while '"paused"' not in out.getvalue():
        run.join(0.01)
    run.join(0.2)
    assert run.is_alive() and '"running"' not in out.getvalue()
    orders.more = ["resume\n", "pause\n", "resume\n"]
    worker._go_on.set()
    run.join()
    orders.ready.set()
    assert json.loads(out.getvalue().splitlines()[-1])["state"] == "done"
    assert status(tmp_path / "db").videos == 1


def test_what_is_wrong_is_a_sentence(folder, tmp_path) -> None:
    (line,) = ran(Orders(asked(folder / "none", tmp_path / "db")))
    assert (line["state"], line["error"]["code"]) == ("failed", "query")
    assert line["error"]["message"].startswith("There is nothing at ")
