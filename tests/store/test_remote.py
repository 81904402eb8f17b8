"""An index in S3 storage is found, written and deleted, and searches read a local copy of it."""

from pathlib import Path

import numpy as np
import pytest

from sureshot.errors import StoreError, SureshotError
from sureshot.store import remote, repair
from sureshot.store.checksums import FILE
from sureshot.store.index import Store
from sureshot.store.tables import NAMES, Tables
from tests.buckets import BUCKET, SECRET, Bucket
from tests.encoded import make_store, random_windows, record

PLACE = f"s3://{BUCKET}/an index, 100 %#1"


def test_addresses_are_escaped_for_lance_alone() -> None:
    assert remote.table_address("/home/ann/a b", "videos") == "/home/ann/a b/videos.lance"
    assert remote.table_address("s3://b/a#b %20", "videos") == "s3://b/a%23b%20%2520/videos.lance"


def test_an_index_is_made_written_found_and_deleted(bucket: Bucket) -> None:
    bucket.put("an index, 100 %#1/notes.txt", b"mine")
    assert not Store.exists(PLACE)
    store = make_store(PLACE)
    assert Store.exists(PLACE)
    store.write(record("/v/a.mp4"), random_windows(3))
    assert make_store(PLACE).count() == 3
    assert Store.open(PLACE).bytes_on_disk() > 1000
    Store.delete(PLACE)
    assert not Store.exists(PLACE)
    assert bucket.keys() == ["an index, 100 %#1/notes.txt"]
    Store.delete(PLACE)


@pytest.mark.slow
def test_a_deletion_that_was_ended_leaves_an_index_that_says_so_and_is_made_whole(
    bucket: Bucket,
) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(3))
    remote.delete_tables(PLACE, (NAMES[1],))
    with pytest.raises(StoreError, match="half made"):
        Store.open(PLACE)
    store = Store.open(PLACE, complete=True)
    assert [one.windows for one in store.videos()] == [3]


def test_what_is_not_ours_is_not_deleted(bucket: Bucket) -> None:
    bucket.put("other/windows.lance/film.mp4", b"x")
    with pytest.raises(StoreError, match="not part of an index"):
        Store.delete(f"s3://{BUCKET}/other")
    assert len(bucket.keys()) == 1


@pytest.mark.parametrize(
    ("fault", "words"), [("403", "access is denied"), ("404", "no such object")]
)
def test_faults_are_one_sentence_without_secrets(bucket: Bucket, fault: str, words: str) -> None:
    make_store(PLACE)
    bucket.fault = lambda asked: fault
    with pytest.raises(StoreError, match=words) as refused:
        Store.open(PLACE).videos()
    said = str(refused.value)
    assert SECRET not in said and "http" not in said and said.count(". ") <= 1
    bucket.fault = lambda asked: None
    with pytest.raises(StoreError, match="no such bucket"):
        Store.exists("s3://elsewhere/index")


COPIED = f"s3://{BUCKET}/index"
QUERY = np.full(24, 0.2, np.float32)


@pytest.fixture
def cache(bucket: Bucket, tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    monkeypatch.setattr(remote, "_FRESH", 0.0)
    return tmp_path / "sureshot" / "indexes"


def files(cache: Path) -> list[Path]:
    return [path for path in cache.rglob("*.lance") if path.is_file()]


def test_a_second_search_reads_nothing_from_the_storage(bucket: Bucket, cache: Path) -> None:
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(20))
    first = Store.open(COPIED, cached=True).finder.nearest(QUERY, 5)
    bucket.asked.clear()
    again = Store.open(COPIED, cached=True).finder.nearest(QUERY, 5)
    assert not [asked for asked in bucket.asked if ".lance/data" in asked.path]
    assert again.keys == first.keys == Store.open(COPIED).finder.nearest(QUERY, 5).keys
    assert len(files(cache)) == 1  # the table of videos was not asked for
    assert {folder.stat().st_mode & 0o777 for folder in cache.iterdir()} == {0o700}


@pytest.mark.slow
def test_what_is_written_is_found_at_once_and_what_is_replaced_goes(
    bucket: Bucket, cache: Path, monkeypatch
) -> None:
    writer = make_store(COPIED)
    writer.write(record("/v/a.mp4"), random_windows(3))
    reader = Store.open(COPIED, cached=True)
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


def test_checksums_of_a_copy_are_of_files_in_it(bucket: Bucket, cache: Path) -> None:
    writer = make_store(COPIED)
    for number in range(3):
        writer.write(record(f"/v/{number}.mp4"), random_windows(1))
        assert Store.open(COPIED, cached=True).count() == number + 1
    (table,) = cache.rglob("windows.lance")
    names = [line.split()[-2] for line in (table / FILE).read_text().splitlines() if line]
    assert names and all((table / name).exists() for name in names)


def test_a_storage_that_fails_for_a_moment_costs_no_file(bucket: Bucket, monkeypatch) -> None:
    make_store(PLACE).write(record("/v/a.mp4"), random_windows(3))

    def fail(again: bool) -> None:
        raise OSError("for a moment")

    monkeypatch.setattr(repair, "_readable", lambda part: False)
    with pytest.raises(OSError, match="for a moment"):
        repair.retry_without_bad_files(Tables(PLACE), fail)
    assert (len(Store.open(PLACE).videos()), Store.open(PLACE).count()) == (1, 3)


@pytest.mark.slow
def test_a_copy_that_lost_a_file_is_brought_again(bucket: Bucket, cache: Path) -> None:
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(3))
    assert len(Store.open(COPIED, cached=True).finder.nearest(QUERY, 5).keys) == 3
    for path in files(cache):
        path.unlink()
    assert len(Store.open(COPIED, cached=True).finder.nearest(QUERY, 5).keys) == 3
    assert len(files(cache)) >= 1


def test_an_index_made_anew_in_the_same_place_is_another_one(bucket: Bucket, cache: Path) -> None:
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(20))
    reader = Store.open(COPIED, cached=True)
    before = reader.finder.nearest(QUERY, 20)
    assert not reader.is_replaced()
    Store.delete(COPIED)
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(20, seed=1))
    there = Store.open(COPIED).finder.nearest(QUERY, 20)
    assert there.start.tolist() != before.start.tolist() or (there.frames != before.frames).any()
    for one in (Store.open(COPIED, cached=True), reader):
        found = one.finder.nearest(QUERY, 20)
        assert found.keys == there.keys
        assert (found.frames == there.frames).all()
    assert reader.is_replaced()


@pytest.mark.slow
@pytest.mark.parametrize("harm", ["a byte", "all", "short", "manifest"])
def test_a_damaged_copy_is_brought_anew(bucket: Bucket, cache: Path, harm: str) -> None:
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(3))
    before = Store.open(COPIED, cached=True).finder.nearest(QUERY, 3)
    for path in cache.rglob("*.manifest") if harm == "manifest" else files(cache):
        data = bytearray(path.read_bytes())
        match harm:
            case "manifest":
                data[data.index(b"sureshot") + 2] ^= 1  # no header of ours any more
            case "a byte":
                data[data.index(before.frames[0].astype(np.float16).tobytes()[:4])] ^= 64
            case "all":
                data = bytearray(len(data))
            case _:
                data = data[: len(data) // 2]
        path.write_bytes(data)
    reader = Store.open(COPIED, cached=True)
    after = reader.finder.nearest(QUERY, 3)
    assert after.keys == before.keys
    assert (after.frames == before.frames).all()
    assert reader.trouble() == []


@pytest.mark.slow
def test_copies_stay_within_their_limit(bucket: Bucket, cache: Path, monkeypatch) -> None:
    make_store(COPIED).write(record("/v/a.mp4"), random_windows(200))
    monkeypatch.setenv(remote.LIMIT, "0")
    assert Store.open(COPIED, cached=True).count() == 200
    assert not cache.exists()
    monkeypatch.setenv(remote.LIMIT, "1")
    monkeypatch.setattr(remote, "_MEGABYTE", 1000)
    assert Store.open(COPIED, cached=True).count() == 200
    assert not files(cache)
    monkeypatch.setattr(remote, "_MEGABYTE", 1_000_000)
    other = cache / "another"
    other.mkdir(parents=True)
    (other / "x").write_bytes(bytes(990_000))
    assert Store.open(COPIED, cached=True).count() == 200
    assert files(cache)
    assert not other.exists()
    assert remote.mirror_of(str(cache)) is None  # folders have no copy
    monkeypatch.setenv(remote.LIMIT, "much")
    with pytest.raises(SureshotError, match="megabytes"):
        remote.limit()
