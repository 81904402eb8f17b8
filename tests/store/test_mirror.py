"""Searchers read a local copy of an index in S3 storage."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import SureshotError
from sureshot.store import remote
from sureshot.store.index import Store
from tests.buckets import BUCKET, Bucket
from tests.encoded import make_store, random_windows, record

PLACE = f"s3://{BUCKET}/index"
QUERY = np.full(24, 0.2, np.float32)


@pytest.fixture
def cache(bucket: Bucket, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(remote, "_FRESH", 0.0)
    return tmp_path / "sureshot" / "indexes"


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*.lance") if path.is_file()]


def test_a_second_search_reads_nothing_from_the_storage(bucket: Bucket, cache: Path) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(20))
    first = Store.open(PLACE, cached=True).nearest(QUERY, 5)
    bucket.asked.clear()
    again = Store.open(PLACE, cached=True).nearest(QUERY, 5)
    assert not [asked for asked in bucket.asked if ".lance/data" in asked.path]
    assert again.keys == first.keys == Store.open(PLACE).nearest(QUERY, 5).keys
    assert len(files(cache)) == 1  # the table of videos was not asked for


@pytest.mark.slow
def test_what_is_written_is_found_at_once_and_what_is_replaced_goes(
    bucket: Bucket, cache: Path, monkeypatch
) -> None:
    writer = make_store(PLACE)
    writer.write(record("/v/a.mp4"), random_windows(3))
    reader = Store.open(PLACE, cached=True)
    assert reader.count() == 3
    writer.write(record("/v/b.mp4"), random_windows(4, seed=1))
    assert reader.count() == 7
    assert len(reader.videos()) == 2
    monkeypatch.setattr(remote, "_ABANDONED", -1.0)
    writer.remove(writer.videos())
    writer.compact()
    assert reader.count() == 0
    assert reader.videos() == []
    assert not reader.trouble()


@pytest.mark.slow
def test_a_copy_that_lost_a_file_is_brought_again(bucket: Bucket, cache: Path) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(3))
    assert len(Store.open(PLACE, cached=True).nearest(QUERY, 5).keys) == 3
    for path in files(cache):
        path.unlink()
    assert len(Store.open(PLACE, cached=True).nearest(QUERY, 5).keys) == 3
    assert len(files(cache)) >= 1


def test_an_index_made_anew_in_the_same_place_is_another_one(bucket: Bucket, cache: Path) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(20))
    reader = Store.open(PLACE, cached=True)
    before = reader.nearest(QUERY, 20)
    assert not reader.is_replaced()
    Store.delete(PLACE)
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(20, seed=1))
    there = Store.open(PLACE).nearest(QUERY, 20)
    assert there.start.tolist() != before.start.tolist() or (there.frames != before.frames).any()
    for one in (Store.open(PLACE, cached=True), reader):
        found = one.nearest(QUERY, 20)
        assert found.keys == there.keys
        assert (found.frames == there.frames).all()
    assert reader.is_replaced()


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["a byte", "all", "short"])
def test_a_damaged_copy_is_brought_anew(bucket: Bucket, cache: Path, harm: str) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(3))
    before = Store.open(PLACE, cached=True).nearest(QUERY, 3)
    for path in files(cache):
        data = bytearray(path.read_bytes())
        match harm:
            case "a byte":
                data[data.index(before.frames[0].astype(np.float16).tobytes()[:4])] ^= 64
            case "all":
                data = bytearray(len(data))
            case _:
                data = data[: len(data) // 2]
        path.write_bytes(data)
    reader = Store.open(PLACE, cached=True)
    after = reader.nearest(QUERY, 3)
    assert after.keys == before.keys
    assert (after.frames == before.frames).all()
    assert reader.trouble() == []


@pytest.mark.slow
def test_copies_stay_within_their_limit(bucket: Bucket, cache: Path, monkeypatch) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(200))
    monkeypatch.setenv(remote.LIMIT, "0")
    assert Store.open(PLACE, cached=True).count() == 200
    assert not cache.exists()
    monkeypatch.setenv(remote.LIMIT, "1")
    monkeypatch.setattr(remote, "_MEGABYTE", 1000)
    assert Store.open(PLACE, cached=True).count() == 200
    assert not files(cache)
    monkeypatch.setattr(remote, "_MEGABYTE", 1_000_000)
    other = cache / "another"
    other.mkdir(parents=True)
    (other / "x").write_bytes(bytes(990_000))
    assert Store.open(PLACE, cached=True).count() == 200
    assert files(cache)
    assert not other.exists()
    monkeypatch.setenv(remote.LIMIT, "much")
    with pytest.raises(SureshotError, match="megabytes"):
        remote.limit()


@pytest.mark.slow
def test_without_room_for_a_copy_the_storage_is_read(bucket: Bucket, cache: Path) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(3))
    cache.parent.mkdir(parents=True)
    cache.write_text("a file in the way")
    assert Store.open(PLACE, cached=True).count() == 3


def test_folders_have_no_copy(tmp_path: Path) -> None:
    assert remote.mirror_of(str(tmp_path)) is None
    assert remote.mirror_of("gs://bucket/index") is None
