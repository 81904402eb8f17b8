"""Searches over HTTP."""

import io

import numpy as np
import pytest
from PIL import Image

from sureshot.library.search import open_index
from tests.web.visitor import ALLOWED, UNKNOWN


def without_time(values):
    return values | {"seconds": 0}


def test_a_search_is_that_of_the_terminal(visitor, library) -> None:
    reply = visitor.get("/api/search", params={"q": "red", "limit": 3})
    assert reply.headers["content-type"].startswith("application/json")
    told = open_index(library.db).search("red", k=3).to_dict() | {"next": "3"}
    assert without_time(reply.json()) == without_time(told)


def test_what_a_search_is_asked_for_goes_through(visitor, library) -> None:
    folder = library.videos / "tapes"
    wanted = {"q": "white", "folder": str(folder), "fold": False, "per_video": 1, "limit": 5}
    reply = visitor.get("/api/search", params=wanted).json()
    told = open_index(library.db).search("white", k=5, under=folder, fold=False, per_video=1)
    assert without_time(reply) == without_time(told.to_dict() | {"next": None})
    assert len(reply["hits"]) == 2


def test_pages_follow_each_other(visitor) -> None:
    whole = visitor.get("/api/search", params={"q": "red", "limit": 5}).json()
    pages, cursor = [], None
    for _ in range(3):
        page = visitor.get(
            "/api/search",
            params={"q": "red", "limit": 2} | ({} if cursor is None else {"cursor": cursor}),
        ).json()
        pages += page["hits"]
        cursor = page["next"]
    assert [hit["rank"] for hit in pages] == [1, 2, 3, 4, 5]
    assert pages == whole["hits"]


@pytest.mark.parametrize(
    "asked, code, said",
    [
        ({"q": " "}, 400, "The query is empty"),
        ({"q": "red", "limit": 0}, 422, "limit: "),
        ({"q": "red", "cursor": "x"}, 422, "cursor: "),
        ({"q": "red", "coverage": "nan"}, 422, "coverage: "),
        ({"q": "red", "folder": "a\0b"}, 400, "no path"),
        ({}, 422, "q: field required"),
    ],
)
def test_what_cannot_be_searched_for_is_told(visitor, asked, code, said) -> None:
    reply = visitor.get("/api/search", params=asked)
    assert (reply.status_code, said in reply.json()["error"]["message"]) == (code, True)


def test_ten_thousand_words_are_answered_as_in_the_terminal(visitor, library) -> None:
    query = "red " * 10_000
    reply = visitor.get("/api/search", params={"q": query}).json()
    assert reply["warnings"] == list(open_index(library.db).search(query).warnings)
    assert reply["hits"]


def test_a_folder_without_videos_says_so(visitor) -> None:
    reply = visitor.get("/api/search", params={"q": "red", "folder": "/nowhere"}).json()
    assert (reply["hits"], reply["warnings"]) == (
        [],
        ["Nothing is indexed at or below /nowhere."],
    )


# --- more like this -------------------------------------------------------------------------------


def test_more_like_a_moment_is_that_of_the_terminal(visitor, library, red) -> None:
    reply = visitor.get("/api/like", params={"video": red, "at": 1, "limit": 4}).json()
    told = open_index(library.db).like(library.videos / "red.mp4", at=1.0, k=4).to_dict()
    assert without_time(reply) == without_time(told | {"next": "4"})


def test_a_frame_finds_itself_and_what_looks_like_it(visitor, library, red) -> None:
    reply = visitor.get("/api/like", params={"video": red, "at": 1, "frame": True}).json()
    names = [hit["path"] for hit in reply["hits"][:2]]
    assert set(names) == {str(library.videos / name) for name in ("red.mp4", "scenes.mp4")}
    assert reply["query"] == f"{library.videos / 'red.mp4'}@1"


def picture(colour, kind="PNG"):
    buffer = io.BytesIO()
    Image.fromarray(np.full((48, 64, 3), colour, np.uint8)).save(buffer, kind)
    return buffer.getvalue()


@pytest.mark.parametrize("kind", ["PNG", "JPEG"])
def test_a_photo_finds_what_looks_like_it(visitor, kind) -> None:
    given = {"content": picture((255, 0, 0), kind), "headers": ALLOWED}
    reply = visitor.post("/api/like", params={"name": "holiday.png", "limit": 1}, **given).json()
    found = reply["hits"][0]["path"].rpartition("/")[2]
    assert reply["query"] == "holiday.png" and found in ("red.mp4", "scenes.mp4")


def test_a_photo_needs_the_token(visitor) -> None:
    assert visitor.post("/api/like", content=picture((0, 0, 0))).status_code == 403


# A list of other files, which ffmpeg would read.
PLAYLIST = b"#EXTM3U\n#EXT-X-TARGETDURATION:10\n#EXTINF:10,\nfile:///etc/passwd\n#EXT-X-ENDLIST\n"
CONCAT = b"ffconcat version 1.0\nfile '/etc/passwd'\n"


@pytest.mark.parametrize("data", [b"", b"no picture", PLAYLIST, CONCAT, picture((0, 0, 0))[:60]])
def test_what_is_no_picture_is_told(visitor, data) -> None:
    reply = visitor.post("/api/like", params={"name": "x"}, content=data, headers=ALLOWED)
    assert (reply.status_code, "is not a picture" in reply.json()["error"]["message"]) == (
        400,
        True,
    )


@pytest.mark.parametrize(
    "asked, code, said",
    [
        ({"video": UNKNOWN}, 404, "no such video"),
        ({"video": "/etc/passwd"}, 422, "video: "),
        ({"video": "red", "at": 99}, 400, "nothing at 99 s"),
        ({"video": "red", "frame": True}, 400, "without its time"),
        ({"video": "red", "at": "inf"}, 422, "at: "),
    ],
)
def test_what_is_not_there_has_nothing_like_it(visitor, red, asked, code, said) -> None:
    asked = asked | ({"video": red} if asked["video"] == "red" else {})
    reply = visitor.get("/api/like", params=asked)
    assert (reply.status_code, said in reply.json()["error"]["message"]) == (code, True)


# --- describe -------------------------------------------------------------------------------------


def test_sentences_are_ranked_as_in_the_terminal(visitor, library, red) -> None:
    texts = ["blue", "red", "green"]
    reply = visitor.get("/api/describe", params={"video": red, "text": texts, "at": 1}).json()
    told = open_index(library.db).describe(library.videos / "red.mp4", texts, at=1.0)
    assert reply == told.to_dict()
    assert reply["texts"][0]["text"] == "red"


def test_no_sentence_is_told(visitor, red) -> None:
    assert visitor.get("/api/describe", params={"video": red}).status_code == 422
    assert visitor.get("/api/describe", params={"video": red, "text": " "}).status_code == 400
