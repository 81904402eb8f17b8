"""Objects are paths: what a storage gives, what that costs, and what becomes of its faults."""

import builtins
import errno
import io
import itertools
import os
import pickle
import random
import threading
from pathlib import Path

import pytest

from sureshot import s3
from sureshot.files import replace_file, write_text
from sureshot.s3 import (
    ObjectPath,
    ObjectReader,
    delete,
    is_plain_key,
    lance_options,
    listed,
    look,
    object_path,
    put_object,
    read_range,
    reason_in,
    refusal,
)
from tests.buckets import BUCKET, SECRET, TOKEN, Bucket


def test_what_is_put_is_listed_looked_at_read_and_deleted(bucket: Bucket) -> None:
    for number in range(3):
        put_object(BUCKET, f"a/{number} ü?#%.mp4", bytes(10 + number))
    found = list(listed(BUCKET, "a/"))
    assert [(stored.key, stored.size) for stored in found] == [
        (f"a/{number} ü?#%.mp4", 10 + number) for number in range(3)
    ]
    assert look(BUCKET, found[1].key) == found[1]
    assert read_range(BUCKET, found[1].key, 4, 100) == (bytes(7), found[1])
    assert len(list(listed(BUCKET, "a/", limit=1))) == 1
    delete(BUCKET, [stored.key for stored in found])
    assert not list(listed(BUCKET, ""))
    put_object(BUCKET, "a", b"")
    assert read_range(BUCKET, "a", 0, 100)[0] == b""


def test_other_content_has_another_time_even_in_the_same_second(bucket: Bucket) -> None:
    put_object(BUCKET, "a", b"one")
    before = look(BUCKET, "a")
    put_object(BUCKET, "a", b"two")
    after = look(BUCKET, "a")
    assert (before.size, after.size) == (3, 3)
    assert before.mtime_ns != after.mtime_ns
    with pytest.raises(OSError, match="changed while it was being read"):
        read_range(BUCKET, "a", 0, 1, before.etag)


def test_a_write_on_a_condition_fails_where_others_were_quicker(bucket: Bucket) -> None:
    put_object(BUCKET, "a", b"1", instead_of="")
    with pytest.raises(OSError, match="changed") as refused:
        put_object(BUCKET, "a", b"2", instead_of="")
    assert refused.value.errno == errno.ESTALE
    known = look(BUCKET, "a").etag
    put_object(BUCKET, "a", b"3", instead_of=known)
    with pytest.raises(OSError, match="changed"):
        put_object(BUCKET, "a", b"4", instead_of=known)
    assert read_range(BUCKET, "a", 0, 9)[0] == b"3"


def test_503_and_cut_bodies_are_tried_again_but_not_for_ever(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setattr(s3, "_PAUSE", 0.001)
    put_object(BUCKET, "a", b"x" * 1000)
    turns = itertools.chain(["503", "cut", "drop", "cut"], itertools.repeat(None))
    bucket.fault = lambda asked: next(turns) if asked.is_read else None
    assert read_range(BUCKET, "a", 0, 1000)[0] == b"x" * 1000
    bucket.fault = lambda asked: "cut" if asked.is_read else None
    with pytest.raises(OSError, match="breaks connections off"):
        read_range(BUCKET, "a", 0, 1000)


def test_neither_rights_nor_a_bucket_nor_an_object(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError):
        look(BUCKET, "none")
    with pytest.raises(OSError, match="no such bucket") as refused:
        list(listed("other", ""))
    assert refused.value.errno == errno.ENODEV  # else all videos of a lost bucket would be gone
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


def test_an_endpoint_that_is_not_there_is_reported_soon(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    monkeypatch.setattr(s3, "_TRIES", 1)
    with pytest.raises(OSError, match="cannot be reached"):
        look(BUCKET, "a")


def test_lance_gets_the_same_and_for_other_places_nothing(bucket: Bucket, monkeypatch) -> None:
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


class AnsweredError(Exception):
    def __init__(self, code: str, status: int = 400) -> None:
        super().__init__("AKIDEXAMPLE wJalrXUtnFEMI https://user:word@host/?X-Amz-Signature=00")
        self.response = {
            "Error": {"Code": code, "Message": "secret"},
            "ResponseMetadata": {"HTTPStatusCode": status},
        }


@pytest.mark.parametrize(
    ("code", "status", "number", "words"),
    [
        ("NoSuchKey", 400, errno.ENOENT, "no such object"),
        ("404", 400, errno.ENOENT, "no such object"),
        ("", 403, errno.EACCES, "access is denied"),
        ("SignatureDoesNotMatch", 400, errno.EACCES, "does not fit"),
        ("ExpiredToken", 400, errno.EACCES, "expired"),
        ("RequestTimeTooSkewed", 400, errno.EACCES, "clock of this machine"),
        ("PreconditionFailed", 400, errno.ESTALE, "changed while it was being read"),
        ("SlowDown", 400, errno.EAGAIN, "slow down"),
        ("Strange9", 400, errno.EIO, "(Strange9)"),
        ("<b>\x1b[2J", 400, errno.EIO, "(no code)"),
    ],
)
def test_a_code_or_a_status_becomes_a_number_and_words(code, status, number, words) -> None:
    refused = refusal(AnsweredError(code, status), "s3://films/a.mp4")
    assert refused.errno == number
    assert words in str(refused.strerror)
    assert "wJalr" not in str(refused) + repr(refused)
    assert "Signature=" not in str(refused) + repr(refused)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("Generic S3 error: <Error><Code>ExpiredToken</Code><Token-0>Fwo</Token-0>", "expired"),
        ("Generic S3 error: Error performing GET http://h/b in 1ms - 403 Forbidden", "denied"),
        ("S3 error: Server returned non-2xx status code: 503 Service", "slow down"),
        ("Error performing GET http://u:p@h - HTTP error: operation timed out", "in time"),
        ("Error performing GET http://u:p@h - HTTP error: error sending request", "reached"),
        ("Generic S3 error: HTTP error: request or response body error", "breaks connections"),
        ("Generic S3 error: something new http://u:p@h", "failed"),
    ],
)
def test_accounts_of_lance_become_words(text, words) -> None:
    reason = reason_in(text)
    assert reason is not None
    assert words in reason
    assert "http" not in reason
    assert reason_in("Not found: /home/ann/index") is None


def test_any_order_of_reading_gives_what_is_there(bucket: Bucket) -> None:
    data = random.Random(0).randbytes(3_000_000)
    bucket.put("film", data)
    reader, file = ObjectReader(BUCKET, "film"), io.BytesIO(data)
    lot = random.Random(1)
    for _ in range(60):
        at, count = lot.randrange(len(data)), lot.randrange(1, 200_000)
        assert reader.seek(at) == file.seek(at)
        buffered = bytearray(count)
        got = reader.readinto(buffered)
        assert bytes(buffered[:got]) == file.read(got)
        assert got
    assert reader.seek(0, os.SEEK_END) == len(data) == reader.size
    assert reader.read(1) == b""
    reader.seek(10)
    assert reader.read() == data[10:]
    with pytest.raises(OSError, match="invalid"):
        reader.seek(-1)


def test_each_byte_is_read_once_by_few_requests_and_no_more_than_wanted(bucket: Bucket) -> None:
    bucket.put("film", bytes(6_000_000))
    reader = ObjectReader(BUCKET, "film")
    while reader.read(65_536):
        pass
    assert reader.fetched == 6_000_000
    assert reader.requests < 8
    reader = ObjectReader(BUCKET, "film")
    reader.read(4096)
    reader.seek(-4096, os.SEEK_END)
    reader.read(4096)
    reader.seek(100_000)
    reader.read(65_536)
    assert (reader.requests, reader.fetched) == (2, (1 << 19) + 4096)


def test_an_object_that_is_replaced_is_no_mixture(bucket: Bucket) -> None:
    bucket.put("film", bytes(2_000_000))
    reader = ObjectReader(BUCKET, "film")
    bucket.put("film", b"x" * 2_000_000)
    reader.seek(1_000_000)
    with pytest.raises(OSError, match="changed while it was being read"):
        reader.read(10)


def test_an_address_keeps_its_form_and_its_relatives() -> None:
    path = ObjectPath("s3://films/1999/a b.mp4")
    assert str(path) == path.__fspath__() == "s3://films/1999/a b.mp4"
    assert (path.bucket, path.key, path.suffix) == ("films", "1999/a b.mp4", ".mp4")
    assert str(path.parent) == "s3://films/1999"
    assert str(path.with_name("c")) == "s3://films/1999/c"
    assert path.is_relative_to(ObjectPath("s3://films/1999"))
    assert not path.is_relative_to(ObjectPath("s3://films/19"))
    assert not path.is_relative_to(Path("/films"))
    assert str(ObjectPath("s3://films") / "x") == "s3://films/x"
    assert path == pickle.loads(pickle.dumps(path))
    assert hash(path) == hash(ObjectPath("s3://films/1999/a b.mp4"))
    assert path.is_absolute() and path.samefile("s3://films/1999/a b.mp4")
    assert path.absolute() is path.resolve() is path.expanduser() is path


def test_a_path_made_of_an_address_is_understood_and_stays_in_its_folder() -> None:
    assert str(object_path(Path("s3://films/a.mp4"))) == "s3://films/a.mp4"
    assert object_path("s3:/films/a.mp4") is None
    assert object_path(Path("/s3:/films")) is None
    with pytest.raises(ValueError, match=r"no '\.\.'"):
        object_path("s3://films/a/../../other/b.mp4")
    plain = [is_plain_key(key) for key in ("a/b", "a//b", "/a", "a/../b", "./a", "a/")]
    assert plain == [True, *[False] * 5]


def test_objects_and_what_is_above_them_are_there(bucket: Bucket) -> None:
    bucket.put("a/b.mp4", "grün\n".encode())
    folder, file = ObjectPath(f"s3://{BUCKET}/a"), ObjectPath(f"s3://{BUCKET}/a/b.mp4")
    assert (folder.is_dir(), folder.is_file(), folder.exists()) == (True, False, True)
    assert (file.is_dir(), file.is_file(), file.exists()) == (False, True, True)
    assert file.stat().st_size == 6
    assert file.lstat().st_mtime_ns == file.stat().st_mtime_ns
    with file.open(encoding="utf-8") as opened:
        assert opened.read() == "grün\n"
    assert not ObjectPath(f"s3://{BUCKET}/a/b").exists()
    assert not file.is_symlink()
    assert ObjectPath(f"s3://{BUCKET}").is_dir()
    assert [stored.key for stored in folder.below()] == ["a/b.mp4"]
    assert folder.of_key("x/y") == ObjectPath(f"s3://{BUCKET}/x/y")
    with pytest.raises(OSError, match="no such bucket"):
        ObjectPath("s3://nowhere/a").exists()
    with pytest.raises(OSError, match="no folders"):
        folder.iterdir()


def test_an_object_is_written_whole_and_deleted(bucket: Bucket) -> None:
    path = ObjectPath(f"s3://{BUCKET}/index/trust.json")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(path, "{}\n")
    assert path.read_bytes() == b"{}\n"
    assert len(path.etag()) == 32
    with pytest.raises(RuntimeError), replace_file(path) as fresh:
        fresh.write_text("half")
        raise RuntimeError
    assert path.read_bytes() == b"{}\n"
    with pytest.raises(OSError, match="written whole"):
        path.open("wb")
    path.unlink()
    with pytest.raises(FileNotFoundError):
        path.unlink()
    path.unlink(missing_ok=True)


def test_lines_of_several_writers_are_all_kept(bucket: Bucket) -> None:
    path = ObjectPath(f"s3://{BUCKET}/judged.jsonl")

    def write(writer: int) -> None:
        for number in range(5):
            path.append(f"{writer} {number}\n".encode())

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    lines = path.read_bytes().decode().splitlines()
    assert sorted(lines) == sorted(f"{w} {n}" for w in range(3) for n in range(5))
    for writer in range(3):
        mine = [line for line in lines if line.startswith(f"{writer} ")]
        assert mine == [f"{writer} {n}" for n in range(5)]
