"""Requests to a storage: what they give, what they cost, and what becomes of faults."""

import builtins
import errno
import itertools

import pytest

from sureshot import s3
from sureshot.s3 import (
    delete,
    lance_options,
    listed,
    look,
    put_object,
    read_range,
)
from tests.buckets import BUCKET, SECRET, TOKEN, Bucket


def test_what_is_put_is_listed_looked_at_read_and_deleted(bucket: Bucket) -> None:
    for number in range(3):
        put_object(BUCKET, f"a/{number} ü?#%.mp4", bytes(10 + number))
    found = list(listed(BUCKET, "a/"))
    assert [(one.key, one.size) for one in found] == [
        (f"a/{number} ü?#%.mp4", 10 + number) for number in range(3)
    ]
    assert look(BUCKET, found[1].key) == found[1]
    data, stored = read_range(BUCKET, found[1].key, 4, 100)
    assert (data, stored) == (bytes(7), found[1])
    assert len(list(listed(BUCKET, "a/", limit=1))) == 1
    delete(BUCKET, [one.key for one in found])
    assert not list(listed(BUCKET, ""))


def test_other_content_has_another_time_even_in_the_same_second(bucket: Bucket) -> None:
    put_object(BUCKET, "a", b"one")
    before = look(BUCKET, "a")
    put_object(BUCKET, "a", b"two")
    after = look(BUCKET, "a")
    assert (before.size, after.size) == (3, 3)
    assert before.mtime_ns != after.mtime_ns
    with pytest.raises(OSError, match="changed while it was being read"):
        read_range(BUCKET, "a", 0, 1, before.etag)


def test_an_empty_object_is_read(bucket: Bucket) -> None:
    put_object(BUCKET, "a", b"")
    assert read_range(BUCKET, "a", 0, 100)[0] == b""


def test_a_write_on_a_condition_fails_where_others_were_quicker(bucket: Bucket) -> None:
    put_object(BUCKET, "a", b"1", instead_of="")
    with pytest.raises(OSError, match="changed") as told:
        put_object(BUCKET, "a", b"2", instead_of="")
    assert told.value.errno == errno.ESTALE
    known = look(BUCKET, "a").etag
    put_object(BUCKET, "a", b"3", instead_of=known)
    with pytest.raises(OSError, match="changed"):
        put_object(BUCKET, "a", b"4", instead_of=known)
    assert read_range(BUCKET, "a", 0, 9)[0] == b"3"


def test_503_and_cut_bodies_are_tried_again(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setattr(s3, "_PAUSE", 0.001)
    put_object(BUCKET, "a", b"x" * 1000)
    turns = itertools.chain(["503", "cut", "drop", "cut"], itertools.repeat(None))
    bucket.fault = lambda asked: next(turns) if asked.is_read else None
    assert read_range(BUCKET, "a", 0, 1000)[0] == b"x" * 1000


def test_a_storage_that_stays_out_of_order_is_told_of(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setattr(s3, "_PAUSE", 0.001)
    put_object(BUCKET, "a", b"x" * 1000)
    bucket.fault = lambda asked: "cut" if asked.is_read else None
    with pytest.raises(OSError, match="breaks connections off"):
        read_range(BUCKET, "a", 0, 1000)


def test_neither_rights_nor_a_bucket_nor_an_object(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError):
        look(BUCKET, "none")
    with pytest.raises(OSError, match="no such bucket") as told:
        list(listed("other", ""))
    assert told.value.errno == errno.ENODEV  # else all videos of a lost bucket would count as gone
    bucket.fault = lambda asked: "403"
    with pytest.raises(PermissionError):
        list(listed(BUCKET, ""))


def test_without_credentials_it_says_where_they_belong(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(PermissionError, match="AWS_PROFILE"):
        look(BUCKET, "a")
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(PermissionError, match="no profile"):
        look(BUCKET, "a")


def test_an_endpoint_that_is_not_there_is_told_soon(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    monkeypatch.setattr(s3, "_TRIES", 1)
    with pytest.raises(OSError, match="cannot be reached"):
        look(BUCKET, "a")


def test_lance_is_told_the_same_and_of_other_places_nothing(bucket: Bucket, monkeypatch) -> None:
    assert lance_options("/home/ann/index") == {}
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    options = lance_options(f"s3://{BUCKET}/index")
    assert options["aws_endpoint"] == bucket.url
    assert (options["aws_secret_access_key"], options["aws_session_token"]) == (SECRET, TOKEN)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setattr(s3, "_region", lambda *_: "eu-west-1")
    assert "aws_endpoint" not in lance_options(f"s3://{BUCKET}/index")


def test_without_the_package_it_says_what_to_install(bucket: Bucket, monkeypatch) -> None:
    def missing(name, *args, **kwargs):
        if name.startswith("botocore"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    monkeypatch.setenv("AWS_NEW", "1")  # another environment, hence another client
    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(OSError, match=r"pip install 'sureshot\[s3\]'"):
        look(BUCKET, "a")
