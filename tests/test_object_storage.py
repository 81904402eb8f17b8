"""Videos and indexes in object storage, the whole way, on good days and bad ones."""

import itertools
import threading
import time
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import sureshot
from sureshot import s3
from sureshot.cli.app import run as command
from sureshot.errors import ArgumentError, StoreError
from sureshot.library import judge, remove, status
from sureshot.library.calibration import card_of_index, forget
from sureshot.library.encoding import content_digest
from sureshot.library.labels import labels_of_index, read_labels
from sureshot.media import discover
from sureshot.paths import absolute
from sureshot.store import remote
from sureshot.web.jobs import Roots
from sureshot.web.media import ClipCache
from sureshot.web.session import Session
from tests.buckets import SECRET, TOKEN, Bucket
from tests.media.test_subtitles import with_tracks
from tests.small_library import Library
from tests.web.visitor import ALLOWED, HERE, app_of

MADE = {"model": "tiny", "window": 2.0, "frames": 4, "workers": 1}


@pytest.fixture
def films(bucket: Bucket, library: Library, monkeypatch) -> Bucket:
    """The small library in a bucket."""
    monkeypatch.setattr(s3, "_PAUSE", 0.001)
    for path in library.videos.rglob("*.mp4"):
        bucket.put(f"my films/{path.relative_to(library.videos)}", path)
    bucket.asked.clear()
    bucket.sent = 0
    return bucket


def windows(db: str | Path) -> list[tuple[str, float, float]]:
    """Names and times of all windows."""
    store = sureshot.open_index(db).store
    found = store.finder.windows("true", order="key")
    named = zip(found.paths, found.start, found.end, strict=True)
    return sorted((path.name, start, end) for path, start, end in named)


def test_videos_in_a_bucket_are_indexed_as_files_are(films: Bucket, library, tmp_path) -> None:
    size = sum(path.stat().st_size for path in library.videos.rglob("*.mp4"))
    done = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    assert (done.indexed, done.failed) == (5, [])
    reads = [asked for asked in films.asked if asked.is_read]
    # Each is read once for its pictures, and its beginning, all of so small ones, for subtitles.
    assert (len(reads), films.sent < 2 * size + 20_000) == (10, True)
    assert windows(tmp_path / "db") == windows(library.db)
    films.asked.clear()
    twice = ["s3://films/my films", "s3://films/my films/red.mp4"]  # each of them once
    again = sureshot.index(twice, db=tmp_path / "db", prune=True)
    assert (again.found, again.unchanged, again.pruned) == (5, 5, 0)
    assert not [asked for asked in films.asked if asked.is_read]
    assert len(films.asked) < 15  # by folders, whatever number of videos there is
    films.client.delete_object(Bucket="films", Key="my films/red.mp4")
    films.put("my films/moved.mp4", library.videos / "scenes.mp4")
    moved = sureshot.index("s3://films/my films", db=tmp_path / "db", prune=True)
    assert (moved.indexed, moved.copied, moved.pruned) == (0, 1, 1)


def test_what_a_listing_says_is_not_asked_again(films: Bucket, library, tmp_path) -> None:
    films.put("my films/red.srt", CUE % b"trout")
    films.put("my films/Subs/scenes.en.srt", CUE % b"salmon")
    first = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    films.put("my films/moved.mp4", library.videos / "red.mp4")
    again = sureshot.index("s3://films/my films", db=tmp_path / "db", words="none")
    assert (first.lines, again.copied) == ({"subtitles": 2}, 1)
    asked = [one.path for one in films.asked if one.method == "HEAD"]
    assert not [path for path in asked if path.endswith((".srt", "moved.mp4"))]


def test_objects_without_an_etag_are_no_copies_of_one_another(films: Bucket, tmp_path) -> None:
    films.clear()
    for color in ("red", "blue"):
        films.put(f"v/{color}.gif", b"GIF89a" + color[:1].encode() * 100)
    films.fault = lambda asked: "untagged"
    red, blue = discover.discover([absolute("s3://films/v")])
    assert red.size == blue.size and content_digest(red) != content_digest(blue)


def test_a_storage_with_checksums_of_the_whole_and_bare_etags_is_read(films, tmp_path) -> None:
    films.fault = lambda asked: "loose"
    done = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    assert (done.indexed, done.failed) == (5, [])


@pytest.mark.slow
def test_subtitles_in_a_bucket_go_into_an_index_in_a_bucket(bucket, library, tmp_path) -> None:
    db, cue = "s3://films/worded", "1\n00:00:01,000 --> 00:00:02,000\n{}\n"
    bucket.put("v/red.mp4", library.videos / "red.mp4")
    bucket.put("v/red.en.srt", cue.format("the password is trout").encode())
    bucket.put("v/inside.mkv", with_tracks(tmp_path / "inside.mkv", [(".srt", "eng")]))

    def found(query: str) -> list[tuple[str, float]]:
        answer = sureshot.open_index(db).search(f'"{query}"')
        hits = [hit for hit in answer if hit.source == "subtitles"]
        return sorted((str(hit.path).removeprefix("s3://films/v/"), hit.start) for hit in hits)

    first = sureshot.index("s3://films/v", db=db, **MADE)
    assert (first.indexed, first.lines, first.warnings) == (2, {"subtitles": 3}, [])
    assert found("password is") == [("inside.mkv", 1.0), ("red.mp4", 1.0)]
    bucket.put("v/red.en.srt", cue.format("the password is salmon").encode())
    again = sureshot.index("s3://films/v", db=db)
    assert (again.indexed, again.lines) == (0, {"subtitles": 1})
    assert found("trout") == [] and found("salmon") == [("red.mp4", 1.0)]
    bucket.put("v/moved/red.mp4", library.videos / "red.mp4")
    bucket.put("v/moved/red.en.srt", cue.format("the password is salmon").encode())
    bucket.client.delete_object(Bucket="films", Key="v/red.mp4")
    moved = sureshot.index("s3://films/v", db=db, prune=True)
    assert (moved.moved, found("salmon")) == (1, [("moved/red.mp4", 1.0)])
    remove(["s3://films/v/moved"], db=db)
    assert found("password is") == [("inside.mkv", 1.0)]
    assert status(db, check=True).faults == ()


CUE = b"1\n00:00:01,000 --> 00:00:02,000\nthe password is %s\n"


def test_watching_a_bucket_follows_it_and_outlasts_an_outage(bucket, library, tmp_path) -> None:
    said, stop = [], threading.Event()

    def hears(words: str) -> None:
        for _ in range(1000):
            if any(words in line for line in said):
                said.clear()
                return
            stop.wait(0.05)
        raise AssertionError((words, said))

    bucket.put("v/red.mp4", library.videos / "red.mp4")
    bucket.put("v/red.srt", CUE % b"trout")
    chosen = {"db": tmp_path / "db", "every": 1.0, "say": said.append, "stop": stop, **MADE}
    chosen["started"] = lambda result: said.append(result.summary)
    watching = threading.Thread(
        target=sureshot.library.watch, args=("s3://films/v",), kwargs=chosen
    )
    watching.start()
    try:
        hears("1 video found: 1 indexed")
        bucket.put("v/red.srt", CUE % b"salmon")
        hears("1 new line of words")
        bucket.fault = lambda asked: "403"
        hears("s3://films/v cannot be read: access is denied")
        bucket.fault = lambda asked: None
        bucket.put("v/scenes.mp4", library.videos / "scenes.mp4")
        hears("s3://films/v: 1 indexed, 1 unchanged.")
        bucket.client.delete_object(Bucket="films", Key="v/red.mp4")
        hears("s3://films/v: 1 video deleted in storage, removed from the index.")
    finally:
        stop.set()
        watching.join(60)
    assert {name for name, *_ in windows(tmp_path / "db")} == {"scenes.mp4"}


def test_a_storage_that_refuses_costs_neither_other_videos_nor_known_words(
    bucket, library, tmp_path
) -> None:
    bucket.put("v/red.mp4", library.videos / "red.mp4")
    bucket.put("v/red.srt", CUE % b"trout")
    both = [library.videos, "s3://nowhere/v", "s3://films/v"]
    first = sureshot.index(both, db=tmp_path / "db", **MADE)
    assert [(str(path), "no such bucket" in why) for path, why in first.failed] == [
        ("s3://nowhere/v", True)
    ]
    assert (first.indexed + first.copied, first.lines) == (6, {"subtitles": 1})
    asked = itertools.count()

    def later(request) -> str | None:  # once the videos are listed
        listed = "list-type" in request.path and "max-keys" not in request.path
        return "403" if listed and next(asked) > 0 else None

    bucket.fault = later
    again = sureshot.index("s3://films/v", db=tmp_path / "db")
    assert "Subtitles in s3://films/v were not looked for: access is denied" in again.warnings[0]
    bucket.fault = lambda request: None
    answer = sureshot.open_index(tmp_path / "db").search('"password is trout"')
    assert [hit.source for hit in answer] == ["subtitles"]
    bucket.put("v/inside.mkv", with_tracks(tmp_path / "inside.mkv", [(".srt", "eng")]))
    bucket.fault = lambda request: "403" if "list-type" in request.path else None
    first = sureshot.index("s3://films/v/inside.mkv", db=tmp_path / "db")
    assert first.lines == {"subtitles": 2}  # those in the file need no listing


def test_what_is_said_of_one_object_is_not_said_of_its_bucket(films, monkeypatch) -> None:
    monkeypatch.setattr(discover, "_GONE", {})
    here, gone = absolute("s3://films/my films/red.mp4"), absolute("s3://films/none.mp4")
    for code in ("400", "403", "500"):
        discover._GONE.clear()
        films.fault = lambda asked, code=code: code if "odd" in asked.path else None
        assert not discover.is_gone(absolute("s3://films/odd.mp4"))
        assert (discover.is_gone(here), discover.is_gone(gone)) == (False, True)


def test_folders_are_all_listed_however_many_objects_are_before_them(films, monkeypatch) -> None:
    call = s3.ObjectPath._call
    monkeypatch.setattr(
        s3.ObjectPath, "_call", lambda self, name, **given: call(self, name, MaxKeys=1, **given)
    )
    films.put("a.txt", b"")
    (there,) = (path for path in absolute("s3://films").entries() if path.listed is None)
    assert there.name == "my films"


def test_a_bucket_that_is_empty_yet_is_waited_for(bucket, library, tmp_path) -> None:
    said, stop = [], threading.Event()
    chosen = {"db": tmp_path / "db", "every": 0.5, "say": said.append, "stop": stop, **MADE}
    chosen["started"] = lambda result: (said.append(result.summary), stop.set())
    watching = threading.Thread(
        target=sureshot.library.watch, args=("s3://films/v",), kwargs=chosen
    )
    watching.start()
    while not said:
        time.sleep(0.05)
    bucket.put("v/red.mp4", library.videos / "red.mp4")
    watching.join(60)
    assert said == [
        "There is nothing at s3://films/v. Watching goes on.", "1 video found: 1 indexed.",
    ]  # fmt: skip


def test_a_storage_that_does_not_answer_is_asked_once(films: Bucket, tmp_path, monkeypatch) -> None:
    sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    searcher = sureshot.open_index(tmp_path / "db")
    monkeypatch.setattr(discover, "_PATIENCE", 0.2)
    monkeypatch.setattr(discover, "_GONE", {})
    films.fault = lambda asked: "slow"
    films.asked.clear()
    answer = searcher.search("red", limit=5)
    assert (len(answer), [hit.missing for hit in answer]) == (5, [False] * 5)
    assert len(films.asked) == 1


def test_what_becomes_of_objects_during_a_run_is_told(films: Bucket, library, tmp_path) -> None:
    def fault(asked):
        if asked.is_read and "red" in asked.path:
            return "404"
        if asked.is_read and "scenes" in asked.path:
            return "403"
        if asked.is_read and "yellow" in asked.path and not changed:
            changed.append(1)
            films.put("my films/long/yellow.mp4", library.videos / "red.mp4")
        return None

    changed: list[int] = []
    films.fault = fault
    done = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    reasons = {path.name: reason for path, reason in done.failed}
    assert sorted(reasons) == ["red.mp4", "scenes.mp4", "yellow.mp4"]
    assert "no such object" in reasons["red.mp4"]
    assert "access is denied" in reasons["scenes.mp4"]
    assert "changed while it was being read" in reasons["yellow.mp4"]
    films.fault = lambda asked: None
    again = sureshot.index("s3://films/my films", db=tmp_path / "db")
    assert (again.indexed + again.copied, again.failed) == (3, [])


def run(capsys, *arguments: object) -> tuple[int, str]:
    """The exit code of a command, and all that it printed; no secret is in it."""
    capsys.readouterr()
    code = command([str(argument) for argument in arguments])
    printed = "".join(capsys.readouterr())
    assert SECRET not in printed
    assert TOKEN not in printed
    assert "Traceback" not in printed
    return code, printed


@pytest.mark.slow
def test_every_command_works_on_an_index_in_a_bucket(films, library, tmp_path, capsys) -> None:
    db = "s3://films/my index"
    sureshot.index("s3://films/my films", db=db, **MADE)
    assert windows(db) == windows(library.db)
    code, said = run(capsys, "status", "--db", db, "--check")
    assert (code, "Checked: every row is as it was written" in said) == (0, True)
    assert run(capsys, "search", "red", "--db", db, "--explain", tmp_path / "sheet.png")[0] == 0
    like = run(capsys, "search", "--like", "s3://films/my films/red.mp4@0:01", "--db", db)
    assert (like[0], "scenes.mp4" in like[1]) == (0, True)
    assert run(capsys, "export", "red", "--db", db, "--to", tmp_path / "clips")[0] == 0
    assert list((tmp_path / "clips").glob("01 *.mp4"))
    code, said = run(capsys, "search", "red", "--db", db, "--open", 1)
    assert (code, "`sureshot serve` plays it" in said) == (1, True)
    code, said = run(capsys, "remove", "s3://films/my films/red.mp4", "--db", db, "--exclude")
    assert (code, "1 video removed from the index" in said) == (0, True)
    assert sureshot.index("s3://films/my films", db=db).excluded == 1
    assert run(capsys, "doctor", "--db", db)[0] == 0
    assert run(capsys, "reset", "--db", db, "--yes")[0] == 0
    assert not films.keys("my index/")
    assert films.keys("my films/")


def test_an_object_is_not_replaced_unasked(films, library, capsys) -> None:
    films.put("lists/red.csv", b"mine")
    export = ("export", "red", "--db", library.db, "--as", "csv", "--to", "s3://films/lists")
    code, said = run(capsys, *export)
    assert (code, "exists already; --overwrite replaces it" in said) == (1, True)
    stored = films.client.get_object(Bucket="films", Key="lists/red.csv")
    assert stored["Body"].read() == b"mine"
    assert run(capsys, *export, "--overwrite")[0] == 0


def test_clips_and_pictures_of_hits_go_into_a_bucket(films, library, capsys) -> None:
    asked = ["red", "--db", str(library.db), "-k", "1"]
    sureshot.index("s3://films/my films/red.mp4", db="s3://films/own", **MADE)
    of_bucket = [
        "export",
        "red",
        "--db",
        "s3://films/own",
        "--as",
        "m3u",
        "--to",
        "s3://films/list",
    ]
    assert command(of_bucket) == 1 and not films.keys("list/")
    assert "in object storage, which players do not reach" in capsys.readouterr().out
    assert command(["export", *asked, "--to", "s3://films/out"]) == 0
    (clip,) = films.keys("out/")
    assert clip.endswith(".mp4")
    capsys.readouterr()
    assert command(["search", *asked, "--explain", "s3://films/hits.png"]) == 0
    assert "Contact sheet: s3://films/hits.png" in capsys.readouterr().err
    body = films.client.get_object(Bucket="films", Key="hits.png")["Body"].read()
    assert body.startswith(b"\x89PNG")


def test_judgements_and_percentages_lie_beside_an_index_in_a_bucket(films, capsys) -> None:
    db = "s3://films/judged"
    sureshot.index("s3://films/my films/red.mp4", db=db, **MADE)
    sitting = judge(["red", "blue"], lambda hit: "yes", db=db)
    assert sitting.judged == 2
    assert run(capsys, "judge", "--list", "--db", db)[1].count("s3://films/my films/red.mp4") == 2
    assert status(db).judged == 2
    known = read_labels(labels_of_index(db))
    assert [label.query for label in known] == ["red", "blue"]
    searcher = sureshot.open_index(db)
    assert card_of_index(searcher) == absolute(f"{db}/trust.json")
    assert not forget(searcher)
    films.put("judged/trust.json", b"{not a card")
    damaged = sureshot.open_index(db).search("red")
    assert "trust.json cannot be used" in " ".join(damaged.warnings)
    assert forget(sureshot.open_index(db))
    assert "judged/trust.json" not in films.keys("judged")


def test_refusals_are_one_sentence_without_secrets(films, tmp_path, capsys, monkeypatch) -> None:
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    db = "s3://films/index"
    films.fault = lambda asked: "403"
    for told in (
        run(capsys, "search", "red", "--db", db),
        run(capsys, "search", "red", "--db", db, "--json"),
        run(capsys, "index", "s3://films/my films", "--db", tmp_path / "db"),
        run(capsys, "status", "--db", db),
    ):
        assert told[0] == 1
        assert "access is denied" in told[1] and "Errno" not in told[1]
    films.fault = lambda asked: None
    code, said = run(capsys, "index", "s3://nowhere/v", "--db", tmp_path / "db")
    assert (code, "no such bucket" in said) == (1, True)
    code, said = run(capsys, "index", "s3://films/../etc", "--db", tmp_path / "db")
    assert code == 2 and "s3://films/../etc: an address of object storage has no '..'" in said
    monkeypatch.setattr(s3, "_TRIES", 1)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://ann:{SECRET[:8]}@127.0.0.1:9")
    code, said = run(capsys, "search", "red", "--db", db)
    assert (code, "cannot be reached" in said) == (1, True)
    assert SECRET[:8] not in said


@pytest.mark.parametrize("table", ["windows", "videos"])
def test_a_file_of_an_index_that_somebody_deleted_is_made_again(
    films, library, capsys, table
) -> None:
    asked = ["index", str(library.videos / "red.mp4"), "--db", "s3://films/own"]
    assert command([*asked, "--model", "tiny"]) == 0
    (lost,) = films.keys(f"own/{table}.lance/data/")
    films.client.delete_object(Bucket="films", Key=lost)
    code, said = run(capsys, "status", "--check", "--db", "s3://films/own")
    assert code == 1 and f"{table}.lance" in said and "sureshot index" in said
    assert command(asked) == 0
    assert run(capsys, "status", "--check", "--db", "s3://films/own")[0] == 0
    code, said = run(capsys, "search", "red", "--db", "s3://films/own")
    assert code == 0 and "red.mp4" in said


@pytest.mark.slow
def test_several_writers_and_readers_lose_nothing(films, library) -> None:
    db = "s3://films/shared"
    days = itertools.cycle([*[None] * 9, "503"])  # Lance gives up where a body is cut
    sureshot.index(library.videos / "red.mp4", db=db, **MADE)
    films.fault = lambda asked: next(days)
    folders = [(library.videos, None), ("s3://films/my films/tapes", None)]
    folders += [("s3://films/my films", "1/2"), ("s3://films/my films", "2/2")]
    failed: list[BaseException] = []

    def write(place: str | Path, share: str | None) -> None:
        try:
            sureshot.index(place, db=db, shard=share)
        except BaseException as error:
            failed.append(error)

    writers = [threading.Thread(target=write, args=place) for place in folders]
    for thread in writers:
        thread.start()
    while any(thread.is_alive() for thread in writers):
        assert sureshot.open_index(db).search("red")
    films.fault = lambda asked: None
    again = [sureshot.index(place, db=db).found for place, _ in folders]
    assert (failed, len(again)) == ([], 4)
    assert status(db, check=True).faults == ()
    assert status(db).videos == 10


@pytest.mark.slow
def test_a_server_notices_that_another_index_is_in_the_place(films: Bucket, monkeypatch) -> None:
    monkeypatch.setattr(remote, "_FRESH", 0.0)
    db = "s3://films/renewed"
    sureshot.index("s3://films/my films/red.mp4", db=db, **MADE)
    desk = Session(db=db, refresh=0)
    first = desk.searcher()
    assert (desk.searcher(), len(first.search("red"))) == (first, 1)
    assert command(["reset", "--db", db, "--yes"]) == 0
    with pytest.raises(StoreError, match="renewed"):
        desk.searcher()
    sureshot.index("s3://films/my films/long", db=db, **{**MADE, "window": 3.0})
    second = desk.searcher()
    assert second is not first
    assert {hit.path.name for hit in second.search("yellow")} == {"yellow.mp4"}
    assert second.store.settings.window == 3.0
    desk.close()


def test_a_page_may_index_a_bucket_and_no_other(films: Bucket, tmp_path) -> None:
    films.put("secret/red.mp4", b"")
    for unknown, reason in (("films/nothing", "There is no folder"), ("other", "no such bucket")):
        with pytest.raises(ArgumentError, match=reason):
            Roots([f"s3://{unknown}"])
    desk = Session(db=str(tmp_path / "db"), model="tiny")
    app = app_of(desk, ClipCache(tmp_path / "clips"), None, absolute("s3://films/my films"))
    with TestClient(app, base_url=HERE, headers=ALLOWED) as page:
        top = page.get("/api/folders").json()["folders"][0]["path"]
        below = page.get("/api/folders", params={"folder": top}).json()
        assert (top, below["above"]) == ("s3://films/my films", None)
        assert [one["name"] for one in below["folders"]] == sorted(
            {key.split("/")[1] for key in films.keys("my films/") if key.count("/") > 1}
        )
        for folder in ("s3://films", "s3://films/secret", "s3://films/my films/../secret"):
            assert page.get("/api/folders", params={"folder": folder}).status_code in (400, 404)
            assert page.post("/api/index", json={"folders": [folder]}).status_code in (400, 404)
        assert page.post("/api/index", json={"folders": [top]}).status_code == 200
        while (job := page.get("/api/index").json()["job"])["state"] == "running":
            time.sleep(0.05)
        assert job["state"] == "done" and "5 indexed" in job["text"]
    desk.close()


def test_the_page_finds_shows_and_plays_what_lies_in_a_bucket(films, library, tmp_path) -> None:
    db = "s3://films/served"
    sureshot.index("s3://films/my films/red.mp4", db=db, **MADE)
    desk = Session(db=db)
    with TestClient(app_of(desk, ClipCache(tmp_path / "clips")), base_url=HERE) as page:
        (hit,) = page.get("/api/search?q=red").json()["hits"]
        assert (hit["path"], hit["missing"]) == ("s3://films/my films/red.mp4", False)
        assert page.get(f"/api/thumbnail/{hit['id']}?at=1").headers["Content-Type"] == "image/jpeg"
        playing = page.get(f"/api/playing/{hit['id']}?at=1").json()
        film = page.get(playing["url"], headers={"Range": "bytes=0-9"})
        whole = (library.videos / "red.mp4").read_bytes()
        assert (playing["way"], film.content) == ("direct", whole[:10])
        assert page.get(f"/api/cut/{hit['id']}?start=0&end=1").status_code == 200
        # Neither another object nor another address can be asked for.
        for name in ("s3:%2F%2Ffilms%2Fmy films%2Fscenes.mp4", "0" * 32):
            assert page.get(f"/api/media/{name}").status_code in (404, 422)
        films.fault = lambda asked: "403"
        for what in ("thumbnail", "playing", "media"):
            refused = page.get(f"/api/{what}/{hit['id']}?at=2")
            assert refused.status_code in (410, 422), (what, refused.text)
            assert "access is denied" in refused.json()["error"]["message"]
    desk.close()
