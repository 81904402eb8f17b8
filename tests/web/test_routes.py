"""Searching, listing and judging over HTTP."""

import io
import os
import shutil
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from starlette.testclient import TestClient

import sureshot
from sureshot.files import CARD
from sureshot.library import ranking
from sureshot.library.catalog import status
from sureshot.library.labels import JudgedMoment, Label, append, labels_of_index
from sureshot.library.search import open_index
from sureshot.paths import reference_card, video_id
from sureshot.trust.card import save_card
from sureshot.web import routes
from sureshot.web.media import ClipCache
from sureshot.web.session import Session
from tests.clips import coloured
from tests.small_library import index
from tests.trust.worlds import world
from tests.web.visitor import ALLOWED, HERE, UNKNOWN, app_of, visiting


def without_time(values):
    return values | {"seconds": 0}


def test_a_search_is_that_of_the_terminal(visitor, library) -> None:
    reply = visitor.get("/api/search", params={"q": "red", "limit": 3})
    assert reply.headers["content-type"].startswith("application/json")
    told = open_index(library.db).search("red", limit=3).to_dict() | {"next": "3-3"}
    assert without_time(reply.json()) == without_time(told)


def test_what_a_search_is_asked_for_goes_through(visitor, library) -> None:
    folder = library.videos / "tapes"
    wanted = {"folder": str(folder), "merge_copies": False, "per_video": 1, "limit": 5}
    wanted |= {"longer": 1.5, "shorter": 60.0, "since": "2020-01-01", "until": "2100-01-01"}
    reply = visitor.get("/api/search", params=wanted | {"q": "white"}).json()
    told = open_index(library.db).search("white", **wanted | {"folder": folder})
    assert without_time(reply) == without_time(told.to_dict() | {"next": None})
    assert len(reply["hits"]) == 2
    either = {"q": "red", "folder": [str(folder), "/nowhere"]}
    reply = visitor.get("/api/search", params=either).json()
    assert {Path(hit["path"]).parent for hit in reply["hits"]} == {folder}
    assert reply["warnings"][0] == "Nothing is indexed at or below /nowhere."
    reply = visitor.get("/api/search", params={"q": "red", "folder": "/nowhere"}).json()
    assert (reply["hits"], reply["warnings"]) == ([], ["Nothing is indexed at or below /nowhere."])


def test_a_field_that_there_is_none_of_is_refused(visitor, red) -> None:
    for address, said in [
        ("/api/search?q=red&longr=5", "longr: no such field; there are q, "),
        ("/api/videos?q=red", "q: no such field; there are "),
        (f"/api/videos/{red}?x=1", "x: no such field; there is none."),
    ]:
        reply = visitor.get(address)
        assert reply.status_code == 422
        assert reply.json()["error"]["message"].startswith(said)
    assert visitor.head(f"/api/media/{red}?first=true").status_code == 200


def test_a_folder_of_frames_is_removed_without_the_videos_in_it(tmp_path) -> None:
    """As the folder of a camera is one, with two photos next to its videos."""
    folder = tmp_path / "100CANON"
    folder.mkdir()
    for number in range(2):
        Image.new("RGB", (64, 48), "red").save(folder / f"IMG_{number}.JPG")
    coloured(folder / "MVI_3.mp4", ["blue"], rate=5)
    index(str(tmp_path / "db"), folder)
    with visiting(tmp_path / "db", tmp_path / "films") as visitor:
        address = f"/api/videos/{video_id(folder)}"
        refused = visitor.delete(address, params={"exclude": True}, headers=ALLOWED)
        assert (refused.status_code, "left out, too" in refused.text) == (400, True)
        assert visitor.delete(address, headers=ALLOWED).json()["removed"] == 1
        (left,) = visitor.get("/api/videos").json()["videos"]
        assert left["path"].endswith("MVI_3.mp4")


def test_no_page_repeats_a_moment_or_leaves_one_out(tmp_path, monkeypatch) -> None:
    """A long list has more moments of one film, and better ones than those of a short list."""
    (tmp_path / "videos").mkdir()
    coloured(tmp_path / "videos/long.mp4", ["red", "blue"] * 8, seconds=2, rate=5)
    for name in ("green", "blue", "white"):
        coloured(tmp_path / f"videos/{name}.mp4", [name], seconds=2, rate=5)
    index(str(tmp_path / "db"), tmp_path / "videos")
    monkeypatch.setattr(ranking, "_SCENE", 2.0)  # so that each red part is a moment of its own
    seen, cursor = [], {}
    with visiting(tmp_path / "db", tmp_path / "films") as visitor:
        while cursor is not None:
            page = visitor.get("/api/search", params={"q": "red", "limit": 4} | cursor).json()
            assert sorted(hit["rank"] for hit in page["hits"]) == [
                len(seen) + 1 + place for place in range(len(page["hits"]))
            ]
            seen += [(hit["path"], hit["start"]) for hit in page["hits"]]
            cursor = page["next"] and {"cursor": page["next"]}
    whole = open_index(tmp_path / "db").search("red", limit=100)
    assert len(seen) == len(set(seen)) == len(whole) > 12


@pytest.mark.parametrize("sort", ["best", "date"])
def test_pages_follow_each_other(visitor, sort) -> None:
    whole = visitor.get("/api/search", params={"q": "red", "limit": 5}).json()
    pages, cursor = [], None
    for _ in range(3):
        asked = {"q": "red", "limit": 2, "sort": sort} | (
            {} if cursor is None else {"cursor": cursor}
        )
        page = visitor.get("/api/search", params=asked).json()
        pages += page["hits"]
        cursor = page["next"]
    assert [{hit["rank"] for hit in pages[at : at + 2]} for at in (0, 2, 4)] == [
        {1, 2},
        {3, 4},
        {5},
    ]
    assert sorted(pages, key=lambda hit: hit["rank"]) == whole["hits"]


@pytest.mark.parametrize(
    "asked, code, said",
    [
        ({"q": " "}, 400, "The query is empty"),
        ({"q": "red", "limit": 0}, 422, "limit: "),
        ({"q": "red", "cursor": "x"}, 422, "cursor: "),
        ({"q": "red", "coverage": "nan"}, 422, "coverage: "),
        ({"q": "red", "prior": 0}, 422, "prior: "),
        ({"q": "red", "prior": 1.1}, 422, "prior: "),
        ({"q": "red", "present": "perhaps"}, 422, "present: "),
        ({"q": "red", "folder": "a\0b"}, 400, "not a path"),
        (
            {"q": "red", "since": "2025", "until": "2024"},
            400,
            "of `since` is after",
        ),
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


# --- more like this -------------------------------------------------------------------------------


def test_more_like_a_moment_is_that_of_the_terminal(visitor, library, red) -> None:
    reply = visitor.get("/api/like", params={"video": red, "at": 1, "limit": 4}).json()
    told = open_index(library.db).like(library.videos / "red.mp4", at=1.0, limit=4).to_dict()
    assert without_time(reply) == without_time(told | {"next": "4-4"})


def test_a_frame_finds_itself_and_what_looks_like_it(visitor, library, red) -> None:
    reply = visitor.get("/api/like", params={"video": red, "at": 1, "frame": True}).json()
    names = [hit["path"] for hit in reply["hits"][:2]]
    assert set(names) == {str(library.videos / name) for name in ("red.mp4", "scenes.mp4")}
    assert reply["query"] == f"{library.videos / 'red.mp4'}@0:01"


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
    asked = {"name": "holiday.png", "limit": 1, "cursor": reply["next"]}
    (following,) = visitor.post("/api/like", params=asked, **given).json()["hits"]
    assert following["rank"] == 2


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
        ({"video": "red", "frame": True}, 400, "needs its time"),
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
    assert visitor.get("/api/describe", params={"video": red}).status_code == 422
    assert visitor.get("/api/describe", params={"video": red, "text": " "}).status_code == 400


@pytest.fixture
def own(tmp_path):
    """An index of the test's own, of a video and of one that failed."""
    folder = tmp_path / "videos"
    folder.mkdir()
    coloured(folder / "a.mp4", ["red", "blue"], seconds=1, rate=5)
    (folder / "broken.mp4").write_text("no video")
    index(str(tmp_path / "db"), folder)
    with visiting(tmp_path / "db", tmp_path / "films") as client:
        yield client


def test_the_status_is_that_of_the_terminal(visitor, library) -> None:
    contents = status(library.db)
    told = contents.to_dict() | {"summary": contents.summary}
    assert visitor.get("/api/status").json() == told


def test_without_an_index_the_sentence_of_the_terminal_says_so(tmp_path) -> None:
    with visiting(tmp_path / "none", tmp_path / "films") as client:
        for address in ("/api/status", "/api/search?q=red", "/api/videos", "/api/calibration"):
            reply = client.get(address)
            assert reply.status_code == 409
            assert reply.json()["error"]["message"] == (
                f"There is no index at {tmp_path / 'none'}. Make one with `sureshot index FOLDER`, "
                "or name another place with --db."
            )


def test_videos_come_page_by_page(visitor, library) -> None:
    for sort in ("path", "date"):
        seen, cursor = [], {"sort": sort}
        for _ in range(3):
            page = visitor.get("/api/videos", params={"limit": 2} | cursor).json()
            assert page["total"] == 5
            seen += page["videos"]
            cursor |= {"cursor": page["next"]}
        paths = [video["path"] for video in seen]
        assert (sorted(paths), cursor["cursor"]) == (
            sorted(map(str, library.videos.rglob("*.mp4"))),
            None,
        )
        order = paths if sort == "path" else [video["date"] for video in seen]
        assert order == sorted(order, reverse=sort == "date")
    below = visitor.get("/api/videos", params={"folder": str(library.videos / "tapes")}).json()
    assert below["total"] == 2
    assert visitor.get("/api/videos", params={"longer": 12}).json()["total"] == 2
    assert visitor.get("/api/videos", params={"until": "2000-01-01"}).json()["total"] == 0
    assert visitor.get("/api/videos", params={"cursor": "%%%"}).status_code == 400


def test_a_video_by_its_id(visitor, library, red) -> None:
    told = visitor.get(f"/api/videos/{red}").json()
    assert (told["path"], told["seconds"]) == (str(library.videos / "red.mp4"), 2.0)
    assert visitor.get(f"/api/videos/{UNKNOWN}").status_code == 404
    for odd in ("..%2F..%2Fetc%2Fpasswd", "a", red.upper() + "0"):
        assert visitor.get(f"/api/videos/{odd}").status_code in (404, 422)


def test_a_failed_video_says_why_and_is_left_out_for_good(own, tmp_path) -> None:
    path = tmp_path / "videos" / "broken.mp4"
    address = f"/api/videos/{video_id(path)}"
    assert own.get(address).json()["reason"] == "is not a video, or is damaged or cut short"
    removed = own.delete(address, params={"exclude": True}, headers=ALLOWED)
    assert removed.json() == {"schema": 4, "removed": 1}
    assert own.get(address).status_code == 404 and path.exists()
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


def test_a_thumbnail_is_drawn_again_only_for_another_file(own, tmp_path, monkeypatch) -> None:
    path = tmp_path / "videos" / "a.mp4"
    address = f"/api/thumbnail/{video_id(path)}?at=0.4"
    first = own.get(address)
    known = {"If-None-Match": f'"other", W/{first.headers["etag"]}'}  # as proxies that compress
    with monkeypatch.context() as patched:
        patched.delattr(routes, "still")  # nothing is decoded
        same = own.get(address, headers=known)
    assert (same.status_code, same.content) == (304, b"")
    path.unlink()
    coloured(path, ["green"], seconds=2, rate=5)
    other = own.get(address, headers=known)
    assert other.status_code == 200 and other.content != first.content


def test_what_is_gone_or_turned_into_something_else_has_no_thumbnail(own, tmp_path) -> None:
    path = tmp_path / "videos" / "a.mp4"
    path.write_text("something else")
    for code, reason in (
        (422, "is not a video, or is damaged or cut short."),
        (410, "is gone from where it was indexed."),
    ):
        reply = own.get(f"/api/thumbnail/{video_id(path)}")
        assert (reply.status_code, reply.json()["error"]["message"]) == (code, f"{path} {reason}")
        path.unlink(missing_ok=True)


ADDRESSES = (
    *("/api/thumbnail/{}", "/api/playing/{}", "/api/media/{}", "/api/cut/{}?start=0&end=1"),
    *("/api/like?video={}&at=1&frame=true", "/api/describe?video={}&text=red&at=1"),
)


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_pipe_in_the_place_of_a_video_is_not_waited_for(own, tmp_path, address) -> None:
    path = tmp_path / "videos" / "a.mp4"
    path.unlink()
    os.mkfifo(path)
    reply = own.get(address.format(video_id(path)))
    assert reply.status_code == 422
    assert "no longer a regular file" in reply.json()["error"]["message"]


def test_links_lead_out_of_no_root(tmp_path) -> None:
    site, private = tmp_path / "site", tmp_path / "private"
    (private / "frames").mkdir(parents=True)
    (site / "frames").mkdir(parents=True)
    for folder in (site, private):
        coloured(folder / "swapped.mp4", ["red"], seconds=1, rate=5)
        coloured(folder / "own.mp4", ["blue"], seconds=2, rate=5)
        for number in range(2):
            (folder / "frames" / f"{number}.png").write_bytes(picture((0, 255, number)))
    (site / "album").symlink_to(private)
    index(str(tmp_path / "db"), site)
    shown = [path for path in (site / "album").rglob("*") if path.suffix == ".mp4"]
    (site / "swapped.mp4").unlink()
    (site / "swapped.mp4").symlink_to(private / "own.mp4")
    (site / "frames" / "1.png").unlink()
    (site / "frames" / "1.png").symlink_to(private / "frames" / "1.png")
    outside = [site / "swapped.mp4", site / "frames", *shown]
    session = Session(db=str(tmp_path / "db"), within=[site])
    with TestClient(app_of(session, ClipCache(tmp_path / "films")), base_url=HERE) as client:
        assert client.get(f"/api/thumbnail/{video_id(site / 'own.mp4')}").status_code == 200
        for path in outside:
            for address in (*ADDRESSES, "/api/videos/{}", "/api/lines/{}"):
                reply = client.get(address.format(video_id(path)))
                assert reply.status_code == 404, (path, address)
            gone = client.delete(f"/api/videos/{video_id(path)}", headers=ALLOWED)
            assert gone.status_code == 404
        for asked in ({"q": "red"}, {"q": "own", "folder": str(site)}):
            answer = client.get("/api/search", params=asked).json()
            found = {one["path"] for one in (*answer["hits"], *answer["names"])}
            assert found == {str(site / "own.mp4")}
        assert client.get("/api/videos").json()["total"] == 1
        assert client.get("/api/status").json()["videos"] == 1
        told = client.get("/api/search", params={"q": "red", "folder": "privat"}).json()
        assert told["warnings"] == [
            f"Nothing is indexed at or below {Path.cwd() / 'privat'}, "
            "and no folder is named privat."
        ]
        append(
            labels_of_index(str(tmp_path / "db")),
            Label(
                "red",
                tuple(JudgedMoment(path, True, 0.0, 1.0) for path in (site / "own.mp4", *shown)),
            ),
        )
        judged = client.get("/api/judge", params={"query": "red"}).json()["moments"]
        assert [one["id"] for one in judged] == [video_id(site / "own.mp4")]
    session.close()
    with visiting(tmp_path / "db", tmp_path / "films") as client:  # without --root all is played
        assert client.get(f"/api/thumbnail/{video_id(site / 'swapped.mp4')}").status_code == 200


def test_where_nothing_is_hidden_answers_are_those_without_a_root(tmp_path) -> None:
    for name in ("in", "out"):
        (tmp_path / name).mkdir()
    coloured(tmp_path / "in" / "a.mp4", ["red"], seconds=1, rate=5)
    index(str(tmp_path / "db"), tmp_path / "in")
    session = Session(db=str(tmp_path / "db"), within=[tmp_path / "in"])
    assert session.among(None) is None  # a set of many ids would take longer than the search
    coloured(tmp_path / "in" / "b.mp4", ["red"], seconds=1, rate=5)
    index(str(tmp_path / "db"), tmp_path / "in")
    assert (session.among(None), session.among("in")) == (None, "in")
    coloured(tmp_path / "out" / "c.mp4", ["red"], seconds=1, rate=5)
    index(str(tmp_path / "db"), tmp_path / "out")
    session.forget_videos()  # as indexing by the page does
    inside = {video_id(tmp_path / "in" / name) for name in ("a.mp4", "b.mp4")}
    assert session.among(None).ids == session.among("in").ids == inside
    session.close()


def test_a_folder_whose_name_is_not_utf_8_is_chosen_as_it_is_printed(tmp_path) -> None:
    folder = tmp_path / os.fsdecode(b"caf\xe9")
    try:
        folder.mkdir()
    except OSError:
        pytest.skip("this file system takes no such name")
    coloured(folder / "a.mp4", ["red"], seconds=1, rate=5)
    coloured(tmp_path / "b.mp4", ["red"], seconds=1, rate=5)
    index(str(tmp_path / "db"), tmp_path)
    with visiting(tmp_path / "db", tmp_path / "films") as client:
        for shown in (f"{tmp_path}/caf\ufffd", "caf\ufffd", "CAF\ufffd"):
            reply = client.get("/api/videos", params={"folder": shown}).json()
            assert [one["path"] for one in reply["videos"]] == [f"{tmp_path}/caf\ufffd/a.mp4"]
            found = client.get("/api/search", params={"q": "red", "folder": shown}).json()
            assert len(found["hits"]) == 1
        other = client.get("/api/videos", params={"folder": f"{tmp_path}/ca\ufffd"}).json()
        assert other["total"] == 0


def test_an_accent_is_one_sign_or_two(tmp_path) -> None:
    folder, typed = tmp_path / "E\u0301te\u0301", "Ét\u00e9"  # as a Mac writes it, and a keyboard
    folder.mkdir()
    coloured(folder / "Noe\u0308l.mp4", ["red"], seconds=1, rate=5)
    coloured(folder / "a\u0300.mp4", ["red"], seconds=1, rate=5)
    (folder / "No\u00ebl.fr.srt").write_text("1\n00:00:00,000 --> 00:00:01,000\nbonjour\n")
    how = {"model": "tiny", "workers": 1, "exclude": ["\u00e0*"]}
    indexed = sureshot.index(tmp_path, db=tmp_path / "db", **how)
    assert (indexed.indexed, indexed.lines) == (1, {"subtitles": 1})
    with visiting(tmp_path / "db", tmp_path / "films") as client:
        for shown in (typed, str(tmp_path / typed)):
            reply = client.get("/api/videos", params={"folder": shown}).json()
            assert [Path(one["path"]).parent for one in reply["videos"]] == [folder]


# --- percentages ----------------------------------------------------------------------------------


@pytest.fixture
def judged(library, tmp_path):
    """A copy of the small library's index, and its server."""
    shutil.copytree(library.db, tmp_path / "db")
    with visiting(tmp_path / "db", tmp_path / "films") as client:
        yield client


def moments(client, query):
    hits = client.get("/api/search", params={"q": query}).json()["hits"]
    return [{"video": hit["id"], "start": hit["start"], "end": hit["end"]} for hit in hits]


def say(client, query, verdict, of):
    body = {"query": query, "verdict": verdict, "moments": of}
    return client.post("/api/judge", json=body, headers=ALLOWED)


def test_a_click_is_kept_and_may_be_taken_back(judged, tmp_path) -> None:
    first, second, *_ = moments(judged, "red")
    told = say(judged, "red ", "right", [first]).json()
    assert (told["judged"], told["state"]) == (1, "present")
    assert told["text"] == "1 search judged. 49 more, and percentages can be learned from them."
    say(judged, "red", "wrong", [second])
    told = judged.get("/api/judge", params={"query": "red"}).json()
    assert [(one["id"], one["right"]) for one in told["moments"]] == [
        (first["video"], True),
        (second["video"], False),
    ]
    told = say(judged, "red", "wrong", [first]).json()
    assert (told["state"], [one["right"] for one in told["moments"]]) == ("not found", [False] * 2)
    assert say(judged, "red", "absent", [first, second]).json()["state"] == "absent"
    assert say(judged, "red", "right", [first]).json()["state"] == "present"
    assert status(str(tmp_path / "db")).judged == 1


def test_a_verdict_can_be_taken_back_by_moment_and_as_a_whole(judged, tmp_path) -> None:
    first, second, *_ = moments(judged, "red")
    say(judged, "red", "right", [first])
    say(judged, "red", "wrong", [second])
    told = say(judged, "red", "unjudged", [first]).json()
    assert (told["judged"], told["state"]) == (1, "not found")
    assert [one["id"] for one in told["moments"]] == [second["video"]]
    told = say(judged, "red", "unjudged", [second]).json()
    assert (told["judged"], told["state"], told["moments"]) == (0, "", [])
    assert status(str(tmp_path / "db")).judged == 0
    say(judged, "red", "absent", [first, second])
    assert say(judged, "red", "unjudged", [first, second]).json()["judged"] == 0
    assert say(judged, "red", "right", [first]).json()["state"] == "present"


def test_a_click_needs_a_meaning(judged) -> None:
    (first, *_) = moments(judged, "red")
    body = {"query": "red", "verdict": "right", "moments": [first]}
    for wrong, code in (
        ({"moments": []}, 422),
        ({"verdict": "maybe"}, 422),
        ({"query": " "}, 400),
        ({"moments": [first | {"video": UNKNOWN}]}, 404),
        ({"moments": [first | {"video": "/etc/passwd"}]}, 422),
        ({"moments": [first | {"end": first["start"]}]}, 400),
        ({"moments": [first | {"end": "inf"}]}, 422),
    ):
        reply = judged.post("/api/judge", json=body | wrong, headers=ALLOWED)
        assert (reply.status_code, bool(reply.json()["error"]["message"])) == (code, True)
    assert judged.get("/api/judge").json()["judged"] == 0


def test_percentages_are_those_of_the_terminal_and_of_what_is_known(
    judged, tmp_path, monkeypatch
) -> None:
    searcher = open_index(tmp_path / "db")
    save_card(world(videos=150).card(model=searcher.encoder.fingerprint), tmp_path / "db" / CARD)
    said = {}
    for wanted in ({}, {"prior": 0.1}, {"present": True}, {"prior": 0.1, "present": True}):
        reply = judged.get("/api/search", params=wanted | {"q": "red", "limit": 3}).json()
        told = open_index(tmp_path / "db").search("red", limit=3, **wanted).to_dict()
        assert without_time(reply) == without_time(told | {"next": "3-3"})
        said[tuple(wanted)] = reply["present"], reply["hits"][0]["probability"]
    rare, half, sure = said["prior",], said[()], said["present",]
    assert 0 < rare[0] < half[0] < sure[0] == 1 and rare[1] < half[1] < sure[1]
    assert said["prior", "present"] == sure
    monkeypatch.setenv("SURESHOT_PRIOR", "10%")
    for wanted, present in (({}, rare[0]), ({"prior": 0.5}, half[0]), ({"present": True}, 1)):
        assert judged.get("/api/search", params=wanted | {"q": "red"}).json()["present"] == present
    monkeypatch.setenv("SURESHOT_PRIOR", "90")
    assert "SURESHOT_PRIOR in the environment is" in judged.get("/api/search?q=red").text


def test_what_cannot_be_learned_from_says_why(judged) -> None:
    (first, *_) = moments(judged, "red")
    for number in range(5):
        told = say(judged, f"red {number}", "right", [first]).json()
    # This model has no card to start from.
    assert told["text"] == "5 searches judged. 45 more, and percentages can be learned from them."
    judged.post("/api/calibration", headers=ALLOWED)
    while (told := judged.get("/api/judge").json())["learning"]:
        time.sleep(0.03)
    assert "50 are needed" in told["text"]
    assert judged.get("/api/calibration").json()["learned_from"] == "not calibrated"
    assert judged.delete("/api/calibration", headers=ALLOWED).json()["forgotten"] is False


def test_what_was_learned_is_not_said_of_judgements_that_are_taken_back(judged) -> None:
    (first, *_) = moments(judged, "red")
    learner = judged.app.app.state.learner
    say(judged, "red", "right", [first])
    say(judged, "green", "right", [first])
    learner.text = "First hits were right 46% of the time."
    assert learner.text in judged.get("/api/judge").json()["text"]
    told = say(judged, "red", "unjudged", [first]).json()
    assert told["text"] == "1 search judged. 49 more, and percentages can be learned from them."
    learner.text = "First hits were right 46% of the time."
    judged.delete("/api/calibration", headers=ALLOWED)
    assert judged.get("/api/judge").json()["text"] == told["text"]


def test_what_is_forgotten_while_it_is_learned_stays_forgotten(
    judged, tmp_path, monkeypatch
) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    encoder, calibrate = open_index(tmp_path / "db").encoder, routes.calibration.calibrate
    card = reference_card(encoder.fingerprint)
    card.parent.mkdir(parents=True)
    save_card(world(videos=150).card(model=encoder.fingerprint), card)
    started, forgotten = threading.Event(), threading.Event()

    def slowly(**options):
        started.set()
        assert forgotten.wait(60)
        return calibrate(**options)

    monkeypatch.setattr(routes.calibration, "calibrate", slowly)
    (first, *_) = moments(judged, "red")
    for number in range(5):
        say(judged, f"red {number}", "right", [first])
    for again in (False, True):
        judged.post("/api/calibration", headers=ALLOWED)
        assert started.wait(60)
        if not again:
            judged.delete("/api/calibration", headers=ALLOWED)
        forgotten.set()
        while (told := judged.get("/api/judge").json())["learning"]:
            time.sleep(0.03)
        assert (tmp_path / "db" / CARD).exists() == again
        assert ("percentages said" in told["text"]) == again
