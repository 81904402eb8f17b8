"""Videos over HTTP."""

import io

import av
import pytest
from starlette.testclient import TestClient

from sureshot.paths import video_id
from sureshot.web.media import ClipCache
from sureshot.web.session import ServeOptions, Session
from tests.small_library import index
from tests.web.kinds import KINDS, written
from tests.web.visitor import HERE, UNKNOWN, app_of


@pytest.fixture(scope="module")
def shop(tmp_path_factory):
    """All kinds of videos in one index, its server, and where they are."""
    root = tmp_path_factory.mktemp("kinds")
    paths = {}
    for kind in KINDS:
        (root / kind).mkdir()
        paths[kind] = written(kind, root / kind)
    index(str(root / "db"), *paths.values())
    desk = Session(ServeOptions(db=str(root / "db")))
    with TestClient(app_of(desk, ClipCache(root / "films")), base_url=HERE) as c:
        yield c, paths
    desk.close()


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_plays_at_its_moment(shop, kind) -> None:
    client, paths = shop
    name = video_id(paths[kind])
    told = client.get(f"/api/playing/{name}", params={"at": 5.2, "start": 4.5, "end": 6}).json()
    reply = client.get(told["url"])
    assert (reply.status_code, reply.headers["content-type"]) == (200, told["type"])
    with av.open(io.BytesIO(reply.content)) as container:
        frames = list(container.decode(video=0))
        codec = container.streams.video[0].codec_context.codec.canonical_name
    assert codec in ("h264", "vp9", "av1")
    shown = [f for f in frames if f.time + told["start"] <= 5.25][-1]
    assert shown.to_ndarray(format="rgb24")[60].mean(0).argmax() == 2  # blue


def test_a_video_that_browsers_play_is_sent_as_it_is_by_parts(shop) -> None:
    client, paths = shop
    address = f"/api/media/{video_id(paths['h264'])}"
    data = paths["h264"].read_bytes()
    assert client.get(address).content == data
    part = client.get(address, headers={"Range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, data[100:200])
    beyond = client.get(address, headers={"Range": f"bytes={len(data)}-"})
    assert beyond.status_code == 416


def test_a_moment_is_cut_out_to_keep(shop) -> None:
    client, paths = shop
    address = f"/api/cut/{video_id(paths['hevc'])}"
    reply = client.get(address, params={"start": 2, "end": 4, "rank": 3})
    assert reply.headers["content-disposition"] == (
        "attachment; filename*=UTF-8''03%20hevc%2000.00.02-00.00.04.mp4"
    )
    with av.open(io.BytesIO(reply.content)) as container:
        assert container.duration == pytest.approx(2e6, rel=0.1)
    for start, end in ((2, 2), (4, 2), (0, 601), (7, 8)):
        wrong = client.get(address, params={"start": start, "end": end})
        assert wrong.status_code in (400, 422) and wrong.json()["error"]["message"]


def test_the_seconds_seen_first_are_made_before_the_whole(shop) -> None:
    client, paths = shop
    asked = {"at": 3.5, "start": 2.5, "end": 4.5}
    address = f"/api/playing/{video_id(paths['hevc'])}"
    told = client.get(address, params=asked).json()
    assert (told["first"]["start"], told["first"]["end"]) == (3.5, 6.0)
    early = client.get(told["first"]["url"])
    with av.open(io.BytesIO(early.content)) as container:
        shown = next(container.decode(video=0)).to_ndarray(format="rgb24")
        assert container.duration == pytest.approx(2.5e6, rel=0.1)
    assert shown[60].mean(0).argmax() == 1  # green, as at that second
    assert client.head(told["url"]).status_code == 200
    assert client.get(address, params=asked).json()["first"] is None
    direct = client.get(f"/api/playing/{video_id(paths['h264'])}", params=asked).json()
    assert direct["first"] is None


def test_what_is_not_there_is_not_played(shop) -> None:
    client, paths = shop
    for room in ("playing", "media", "cut"):
        asked = {"start": 0, "end": 1}
        assert client.get(f"/api/{room}/{UNKNOWN}", params=asked).status_code == 404
        assert client.get(f"/api/{room}/..%2f..%2fpasswd", params=asked).status_code in (404, 422)
    late = client.get(f"/api/playing/{video_id(paths['h264'])}", params={"at": 99})
    assert (late.status_code, "nothing at 99 s" in late.json()["error"]["message"]) == (400, True)


def test_videos_that_vanish_or_change_are_told_of(tmp_path) -> None:
    path = written("mpeg4", tmp_path)
    index(str(tmp_path / "db"), path)
    desk = Session(ServeOptions(db=str(tmp_path / "db")))
    address = f"/api/media/{video_id(path)}?at=1"
    with TestClient(app_of(desk, ClipCache(tmp_path / "c")), base_url=HERE) as client:
        first = client.get(address)
        path.write_text("something else")
        assert client.get(address).status_code == 422
        path.unlink()
        assert client.get(address).status_code == 410
        written("hevc", tmp_path).rename(path)  # another film has taken its place
        assert client.get(address).content != first.content
        assert client.get(address).status_code == 200
    desk.close()
