"""What the index holds, over HTTP."""

import io

import pytest
from PIL import Image
from starlette.testclient import TestClient

from sureshot.library.catalog import status
from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.session import ServeOptions, Session
from tests.clips import coloured
from tests.small_library import index
from tests.web.visitor import ALLOWED, HERE, UNKNOWN, app_of


@pytest.fixture
def own(tmp_path):
    """An index of the test's own, of a video and of one that failed."""
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "a.mp4", ["red", "blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    desk = Session(ServeOptions(db=str(tmp_path / "db")))
    with TestClient(app_of(desk, ClipCache(tmp_path / "films")), base_url=HERE) as client:
        yield client
    desk.close()


def test_the_status_is_that_of_the_terminal(visitor, library) -> None:
    contents = status(library.db)
    told = contents.to_dict() | {"summary": contents.summary}
    assert visitor.get("/api/status").json() == told


def test_without_an_index_the_sentence_of_the_terminal_says_so(tmp_path) -> None:
    desk = Session(ServeOptions(db=str(tmp_path / "none")))
    with TestClient(app_of(desk, ClipCache(tmp_path / "films")), base_url=HERE) as client:
        for address in ("/api/status", "/api/search?q=red", "/api/videos", "/api/calibration"):
            reply = client.get(address)
            assert reply.status_code == 409
            assert reply.json()["error"]["message"] == (
                f"There is no index at {tmp_path / 'none'}. Make one with `sureshot index FOLDER`, "
                "or name another place with --db."
            )
    desk.close()


def test_videos_come_page_by_page(visitor, library) -> None:
    seen, cursor = [], {}
    for _ in range(3):
        page = visitor.get("/api/videos", params={"limit": 2} | cursor).json()
        assert page["total"] == 5
        seen += [video["path"] for video in page["videos"]]
        cursor = {"cursor": page["next"]}
    assert (seen, cursor["cursor"]) == (sorted(map(str, library.videos.rglob("*.mp4"))), None)
    below = visitor.get("/api/videos", params={"folder": str(library.videos / "tapes")}).json()
    assert below["total"] == 2
    assert visitor.get("/api/videos", params={"cursor": "%%%"}).status_code == 400


def test_a_video_by_its_id(visitor, library, red) -> None:
    told = visitor.get(f"/api/videos/{red}").json()
    assert (told["path"], told["seconds"]) == (str(library.videos / "red.mp4"), 2.0)
    assert visitor.get(f"/api/videos/{UNKNOWN}").status_code == 404
    for odd in ("..%2F..%2Fetc%2Fpasswd", "a", red.upper() + "0"):
        assert visitor.get(f"/api/videos/{odd}").status_code in (404, 422)


def test_a_failed_video_says_why(own, tmp_path) -> None:
    told = own.get(f"/api/videos/{video_id(tmp_path / 'videos' / 'broken.mp4')}").json()
    assert told["reason"] == "is not a video, or is damaged or cut short"


def test_a_video_is_forgotten_with_the_token_and_its_file_stays(own, tmp_path) -> None:
    path = tmp_path / "videos" / "a.mp4"
    address = f"/api/videos/{video_id(path)}"
    assert own.delete(address).status_code == 403
    assert own.delete(address, headers=ALLOWED).json() == {"schema": 2, "removed": 1}
    assert own.get(address).status_code == 404
    assert path.exists()


def test_a_video_can_be_left_out_for_good(own, tmp_path) -> None:
    path = tmp_path / "videos" / "a.mp4"
    own.delete(f"/api/videos/{video_id(path)}", params={"exclude": True}, headers=ALLOWED)
    assert own.get("/api/status").json()["excluded"] == [str(path)]


# --- pictures -------------------------------------------------------------------------------------


def test_a_thumbnail_shows_its_second(own, tmp_path) -> None:
    name = video_id(tmp_path / "videos" / "a.mp4")
    for at, strongest in ((0.4, 0), (1.6, 2)):
        reply = own.get(f"/api/thumbnail/{name}", params={"at": at, "side": 32})
        picture = Image.open(io.BytesIO(reply.content))
        assert (reply.headers["content-type"], min(picture.size)) == ("image/jpeg", 32)
        colour = picture.getpixel((1, 20))
        assert max(range(3), key=colour.__getitem__) == strongest


def test_a_file_that_is_gone_has_no_thumbnail(own, tmp_path) -> None:
    path = tmp_path / "videos" / "a.mp4"
    path.unlink()
    reply = own.get(f"/api/thumbnail/{video_id(path)}")
    assert (reply.status_code, reply.json()["error"]["message"]) == (
        410,
        f"{path} is gone from where it was indexed.",
    )


def test_a_file_that_turned_into_something_else_has_no_thumbnail(own, tmp_path) -> None:
    path = tmp_path / "videos" / "a.mp4"
    path.write_text("something else")
    reply = own.get(f"/api/thumbnail/{video_id(path)}")
    assert reply.status_code == 422
    assert reply.json()["error"]["message"] == f"{path} is not a video, or is damaged or cut short."


# --- percentages ----------------------------------------------------------------------------------


def test_where_percentages_come_from_and_that_there_are_none_to_forget(own) -> None:
    assert own.get("/api/calibration").json()["learned_from"] == "not calibrated"
    assert own.delete("/api/calibration").status_code == 403
    assert own.delete("/api/calibration", headers=ALLOWED).json()["forgotten"] is False
