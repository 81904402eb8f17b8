"""An index in S3 storage: its address, whether it is there, how large it is, and how it goes."""

import pytest

from sureshot.errors import StoreError
from sureshot.store import remote
from sureshot.store.index import Store
from sureshot.store.tables import NAMES
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
    with pytest.raises(StoreError, match="tools of that storage"):
        Store.delete("gs://bucket/index")


def test_faults_are_told_in_one_sentence_without_secrets(bucket: Bucket) -> None:
    make_store(PLACE)
    for fault, words in (("403", "access is denied"), ("404", "no such object")):
        bucket.fault = lambda asked, fault=fault: fault
        with pytest.raises(StoreError, match=words) as told:
            Store.open(PLACE).videos()
        said = str(told.value)
        assert SECRET not in said
        assert "http" not in said
        assert said.count(". ") <= 1
    bucket.fault = lambda asked: None
    with pytest.raises(StoreError, match="no such bucket"):
        Store.exists("s3://elsewhere/index")
