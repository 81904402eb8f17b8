"""Videos and indexes in object storage, the whole way, on good days and bad ones."""

import itertools
from pathlib import Path

import pytest

import sureshot
from sureshot.objects import client
from tests.buckets import Bucket
from tests.small_library import Library

MADE = {"model": "tiny", "window": 2.0, "frames": 4, "workers": 1}


@pytest.fixture
def films(bucket: Bucket, library: Library, monkeypatch) -> Bucket:
    """The small library in a bucket."""
    monkeypatch.setattr(client, "_PAUSE", 0.001)
    for path in library.videos.rglob("*.mp4"):
        bucket.put(f"my films/{path.relative_to(library.videos)}", path)
    bucket.asked.clear()
    bucket.sent = 0
    return bucket


def windows(db: str | Path) -> list[tuple[str, float, float]]:
    """Names and times of all windows."""
    store = sureshot.open_index(db).store
    found = store.windows_in([r for r in store.videos() if r.windows])
    named = zip(found.paths, found.start, found.end, strict=True)
    return sorted((path.name, start, end) for path, start, end in named)


def test_videos_in_a_bucket_are_indexed_as_files_are(films: Bucket, library, tmp_path) -> None:
    size = sum(path.stat().st_size for path in library.videos.rglob("*.mp4"))
    done = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    assert (done.indexed, done.failed) == (5, [])
    reads = [asked for asked in films.asked if asked.is_read]
    assert (len(reads), films.sent < size + 20_000) == (5, True)
    assert windows(tmp_path / "db") == windows(library.db)
    films.asked.clear()
    again = sureshot.index("s3://films/my films", db=tmp_path / "db", prune=True)
    assert (again.found, again.unchanged, again.pruned) == (5, 5, 0)
    assert not [asked for asked in films.asked if asked.is_read]
    assert len(films.asked) < 10  # whatever number of videos there is
    films.client.delete_object(Bucket="films", Key="my films/red.mp4")
    films.put("my films/moved.mp4", library.videos / "scenes.mp4")
    moved = sureshot.index("s3://films/my films", db=tmp_path / "db", prune=True)
    assert (moved.indexed, moved.copied, moved.pruned) == (0, 1, 1)


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


def test_a_storage_with_bad_days_gives_the_same_index(films: Bucket, library, tmp_path) -> None:
    days = itertools.cycle([None, "503", None, "cut", None, "drop"])
    films.fault = lambda asked: next(days)
    done = sureshot.index("s3://films/my films", db=tmp_path / "db", **MADE)
    assert (done.indexed, done.failed) == (5, [])
    assert windows(tmp_path / "db") == windows(library.db)
