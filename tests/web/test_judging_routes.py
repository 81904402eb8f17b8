"""Judging over HTTP."""

import shutil
import time

import pytest
from starlette.testclient import TestClient

from sureshot.library.catalog import status
from sureshot.web.media import ClipCache
from sureshot.web.session import ServeOptions, Session
from tests.web.visitor import ALLOWED, HERE, UNKNOWN, app_of


@pytest.fixture
def own(library, tmp_path):
    """A copy of the small library's index, and its server."""
    shutil.copytree(library.db, tmp_path / "db")
    desk = Session(ServeOptions(db=str(tmp_path / "db")))
    with TestClient(app_of(desk, ClipCache(tmp_path / "films")), base_url=HERE) as client:
        yield client
    desk.close()


def moments(client, query):
    hits = client.get("/api/search", params={"q": query}).json()["hits"]
    return [{"video": hit["id"], "start": hit["start"], "end": hit["end"]} for hit in hits]


def say(client, query, verdict, of):
    body = {"query": query, "verdict": verdict, "moments": of}
    return client.post("/api/judge", json=body, headers=ALLOWED)


def test_a_click_is_kept_and_may_be_taken_back(own, tmp_path) -> None:
    first, second, *_ = moments(own, "red")
    told = say(own, "red ", "right", [first]).json()
    assert (told["judged"], told["state"]) == (1, "present")
    assert told["said"] == "1 search judged. 9 more, and percentages can be learned from them."
    say(own, "red", "wrong", [second])
    told = own.get("/api/judge", params={"query": "red"}).json()
    assert [(one["id"], one["right"]) for one in told["moments"]] == [
        (first["video"], True),
        (second["video"], False),
    ]
    told = say(own, "red", "wrong", [first]).json()
    assert (told["state"], [one["right"] for one in told["moments"]]) == ("not found", [False] * 2)
    assert status(str(tmp_path / "db")).judged == 1


def test_what_no_video_shows_is_kept_until_one_does(own) -> None:
    shown = moments(own, "red")
    say(own, "red", "right", shown[:1])
    assert say(own, "red", "absent", shown).json()["state"] == "absent"
    assert say(own, "red", "right", shown[:1]).json()["state"] == "present"


def test_a_click_needs_the_token_and_a_meaning(own) -> None:
    (first, *_) = moments(own, "red")
    body = {"query": "red", "verdict": "right", "moments": [first]}
    assert own.post("/api/judge", json=body).status_code == 403
    for wrong, code in (
        ({"moments": []}, 422),
        ({"verdict": "maybe"}, 422),
        ({"query": " "}, 400),
        ({"moments": [first | {"video": UNKNOWN}]}, 404),
        ({"moments": [first | {"video": "/etc/passwd"}]}, 422),
        ({"moments": [first | {"end": first["start"]}]}, 400),
        ({"moments": [first | {"end": "inf"}]}, 422),
    ):
        reply = own.post("/api/judge", json=body | wrong, headers=ALLOWED)
        assert (reply.status_code, bool(reply.json()["error"]["message"])) == (code, True)
    assert own.get("/api/judge").json()["judged"] == 0


def test_what_cannot_be_learned_from_says_why(own) -> None:
    (first, *_) = moments(own, "red")
    for number in range(10):
        told = say(own, f"red {number}", "right", [first]).json()
    while (told := own.get("/api/judge").json())["learning"]:
        time.sleep(0.03)
    assert told["judged"] == 10
    assert told["said"].startswith("10 searches judged. Enough to learn from; ")
    assert len(told["said"]) > 90  # this model has no card to start from: more are needed
