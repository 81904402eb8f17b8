"""Objects are paths: what a storage gives, what that costs, and what becomes of its faults."""

import builtins
import datetime
import errno
import io
import itertools
import os
import pickle
import random
import ssl
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sureshot import s3
from sureshot.files import append_line, replace_file, write_text
from sureshot.s3 import ObjectPath, is_plain_key, lance_options, object_path, reason_in, refusal
from tests.buckets import BUCKET, SECRET, TOKEN, Bucket


def at(key: str, bucket: str = BUCKET) -> ObjectPath:
    return ObjectPath(f"s3://{bucket}/{key}")


def test_objects_and_what_is_above_them_are_there(bucket: Bucket) -> None:
    folder, file = at("a"), at("a/b ü?#%.mp4")
    folder.mkdir(parents=True, exist_ok=True)
    write_text(file, "grün\n")
    assert (folder.is_dir(), folder.is_file(), folder.exists()) == (True, False, True)
    assert (file.is_dir(), file.is_file(), file.exists()) == (False, True, True)
    assert (file.stat().st_size, file.read_text("utf-8"), file.read_bytes()[:2]) == (
        6,
        "grün\n",
        b"gr",
    )
    (stored,) = folder.below()
    assert (stored, folder.of_key(stored.key)) == (file.look(), file)
    assert file.read_range(4, 100) == ("grün\n".encode()[4:], stored)
    assert not at("a/b").exists()
    assert at("").is_dir()
    assert at("empty").write_bytes(b"") == 0
    assert (at("empty").is_file(), at("empty").read_bytes()) == (True, b"")
    bucket.put("empty/a.mp4", b"1")  # so "empty" is how some programs make a folder
    assert (at("empty").is_dir(), at("empty").is_file()) == (True, False)
    assert at("").entries() == [at("a"), at("empty")]
    assert [path.listed for path in at("a").entries()] == [file.look()]
    with pytest.raises(OSError, match="no folders"):
        folder.iterdir()
    with pytest.raises(OSError, match="written whole"):
        file.open("wb")
    with pytest.raises(RuntimeError), replace_file(file) as fresh:
        fresh.write_text("half")
        raise RuntimeError
    assert file.read_text("utf-8") == "grün\n"
    file.unlink()
    with pytest.raises(FileNotFoundError):
        file.unlink()
    file.unlink(missing_ok=True)


def test_other_content_has_another_time_even_in_the_same_second(bucket: Bucket) -> None:
    at("a").write_bytes(b"one")
    before = at("a").look()
    at("a").write_bytes(b"two")
    assert before.mtime_ns != at("a").stat().st_mtime_ns
    with pytest.raises(OSError, match="changed while it was being read"):
        at("a").read_range(0, 1, before.etag)


def test_503_and_cut_bodies_are_tried_again_but_not_for_ever(bucket: Bucket, monkeypatch) -> None:
    monkeypatch.setattr(s3, "_PAUSE", 0.001)
    bucket.put("a", b"x" * 1000)
    turns = itertools.chain(["503", "cut", "drop", "cut"], itertools.repeat(None))
    bucket.fault = lambda asked: next(turns) if asked.is_read else None
    assert at("a").read_bytes() == b"x" * 1000
    bucket.fault = lambda asked: "cut" if asked.is_read else None
    with pytest.raises(OSError, match="breaks connections off"):
        at("a").read_bytes()


def test_many_objects_are_deleted_where_a_storage_knows_no_list_of_them(bucket: Bucket) -> None:
    for number in range(40):
        bucket.put(f"a/{number}", b"1")
    bucket.fault = lambda asked: "501" if asked.method == "POST" else None
    at("a").delete([*bucket.keys("a/"), "a/none"])
    assert not bucket.keys("a/")
    bucket.fault = lambda asked: "403"
    with pytest.raises(PermissionError, match="access is denied"):
        at("a").delete(["a/1"])


def test_a_storage_may_refuse_to_delete_what_is_gone(bucket: Bucket) -> None:
    bucket.fault = lambda asked: "404" if asked.method == "DELETE" else None
    at("none").unlink(missing_ok=True)
    at("a").delete(["a/none", "a/nor this"])


def test_neither_rights_nor_a_bucket_nor_an_object(bucket: Bucket) -> None:
    with pytest.raises(FileNotFoundError):
        at("none").look()
    for ask in (at("a", "nowhere").exists, lambda: list(at("", "nowhere").below())):
        with pytest.raises(OSError, match="no such bucket") as refused:
            ask()
        assert refused.value.errno == errno.ENODEV  # else all videos of a lost bucket were gone
    bucket.fault = lambda asked: "403"
    with pytest.raises(PermissionError):
        list(at("").below())


def test_what_is_missing_here_is_named(bucket: Bucket, monkeypatch) -> None:
    def missing(name, *args, **kwargs):
        if name.startswith("botocore"):
            raise ImportError(name)
        return real(name, *args, **kwargs)

    real = builtins.__import__
    with monkeypatch.context() as patch:
        patch.setenv("AWS_NEW", "1")  # another environment, hence another client
        patch.setattr(builtins, "__import__", missing)
        with pytest.raises(OSError, match=r"object storage needs: .*install .*'.*(botocore|s3)"):
            at("a").look()
    with monkeypatch.context() as patch:
        patch.setattr(s3, "_TRIES", 1)
        patch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
        with pytest.raises(OSError, match="cannot be reached"):
            at("a").look()
    with monkeypatch.context() as patch:
        patch.setenv("AWS_ENDPOINT_URL", "127.0.0.1:9000")
        with pytest.raises(OSError, match="AWS_ENDPOINT_URL is not an address that begins with"):
            at("a").look()
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    with pytest.raises(PermissionError, match="set AWS_PROFILE, or AWS_ACCESS_KEY_ID"):
        at("a").look()
    monkeypatch.setenv("AWS_PROFILE", "nobody")
    with pytest.raises(PermissionError, match="no profile"):
        at("a").look()


def test_lance_gets_the_same_and_for_other_places_nothing(bucket: Bucket, monkeypatch) -> None:
    assert lance_options("/home/ann/index") == {}
    monkeypatch.setenv("AWS_SESSION_TOKEN", TOKEN)
    options = lance_options(f"s3://{BUCKET}/index")
    assert (options["aws_endpoint"], options["aws_region"]) == (bucket.url, "us-east-1")
    assert (options["aws_secret_access_key"], options["aws_session_token"]) == (SECRET, TOKEN)
    monkeypatch.delenv("AWS_ENDPOINT_URL")
    monkeypatch.setattr(s3, "_region", lambda *_: "eu-west-1")
    assert "aws_endpoint" not in lance_options(f"s3://{BUCKET}/index")


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
        ("", 403, errno.EACCES, "access is denied"),
        ("RequestTimeTooSkewed", 400, errno.EACCES, "clock of this machine"),
        ("PreconditionFailed", 400, errno.ESTALE, "changed while it was being read"),
        ("Strange9", 400, errno.EIO, "(Strange9)"),
        ("<b>\x1b[2J", 400, errno.EIO, "(no code)"),
    ],
)
def test_a_code_or_a_status_becomes_a_number_and_words(code, status, number, words) -> None:
    refused = refusal(AnsweredError(code, status), "s3://films/a.mp4")
    assert refused.errno == number
    assert words in str(refused.strerror)
    assert not any(secret in repr(refused) for secret in ("wJalr", "Signature="))


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
    assert reason is not None and words in reason and "http" not in reason
    assert reason_in("Not found: /home/ann/index") is None


def test_lance_is_to_trust_certificates_of_your_own_too(monkeypatch) -> None:
    text = "Error performing GET https://u:p@h - HTTP error: error sending request"
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    monkeypatch.setenv("AWS_CA_BUNDLE", "/own.pem")
    assert "not trusted; set SSL_CERT_FILE" in str(reason_in(text))
    monkeypatch.setenv("SSL_CERT_FILE", "/own.pem")
    assert "cannot be reached" in str(reason_in(text))


_ASKS = """
import sys, sureshot.store, lance
how = {"aws_endpoint": sys.argv[1], "aws_access_key_id": "a", "aws_secret_access_key": "b"}
try:
    lance.dataset("s3://films/x", storage_options=how | {"aws_region": "us-east-1"})
except Exception as error:
    print(error)
"""


def test_lance_prints_nothing_about_a_certificate_that_it_does_not_trust(tmp_path) -> None:
    """Our own error says what is wrong, once."""
    key, now = ec.generate_private_key(ec.SECP256R1()), datetime.datetime.now(datetime.UTC)
    name, day = x509.Name([]), datetime.timedelta(days=1)
    made = x509.CertificateBuilder(name, name, key.public_key(), 1, now - day, now + day)
    (tmp_path / "both.pem").write_bytes(
        key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        + made.sign(key, hashes.SHA256()).public_bytes(Encoding.PEM)
    )
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "both.pem")
    with ThreadingHTTPServer(("127.0.0.1", 0), BaseHTTPRequestHandler) as server:
        server.handle_error = lambda *_: None  # type: ignore[method-assign]
        server.socket = context.wrap_socket(server.socket, server_side=True)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        address = f"https://127.0.0.1:{server.server_address[1]}"
        asked = [sys.executable, "-c", _ASKS, address]
        done = subprocess.run(asked, capture_output=True, text=True, check=True)
        server.shutdown()
    assert (done.stderr, "error sending request" in done.stdout) == ("", True)


def test_any_order_of_reading_gives_what_is_there(bucket: Bucket) -> None:
    data = random.Random(0).randbytes(3_000_000)
    bucket.put("film", data)
    reader, file = at("film").open("rb", buffering=0), io.BytesIO(data)
    lot = random.Random(1)
    for _ in range(60):
        place, count = lot.randrange(len(data)), lot.randrange(1, 200_000)
        assert reader.seek(place) == file.seek(place)
        buffered = bytearray(count)
        got = reader.readinto(buffered)
        assert got and bytes(buffered[:got]) == file.read(got)
    assert reader.seek(0, os.SEEK_END) == len(data) == reader.stored.size
    assert reader.read(1) == b""
    reader.seek(10)
    assert reader.read() == data[10:]
    with pytest.raises(OSError, match="invalid"):
        reader.seek(-1)


def test_each_byte_is_read_once_by_few_requests_and_no_more_than_wanted(bucket: Bucket) -> None:
    bucket.put("film", bytes(6_000_000))

    def cost() -> tuple[int, int]:
        taken = len(bucket.asked), bucket.sent
        bucket.asked.clear()
        bucket.sent = 0
        return taken

    cost()
    reader = at("film").open("rb", buffering=0)
    while reader.read(65_536):
        pass
    assert cost() < (8, 6_000_001)
    reader = at("film").open("rb", buffering=0)
    reader.read(4096)
    reader.seek(-4096, os.SEEK_END)
    reader.read(4096)
    reader.seek(100_000)
    reader.read(65_536)
    assert cost() == (2, (1 << 19) + 4096)


@pytest.mark.parametrize("storage", [None, "loose"])
def test_an_object_that_is_replaced_is_no_mixture(bucket: Bucket, storage) -> None:
    bucket.fault = lambda asked: storage
    bucket.put("film", bytes(2_000_000))
    reader = at("film").open("rb", buffering=0)
    bucket.put("film", b"x" * 2_000_000)
    reader.seek(1_000_000)
    with pytest.raises(OSError, match="changed while it was being read"):
        reader.read(10)


def test_lines_of_several_writers_are_all_kept(bucket: Bucket) -> None:
    path = at("judged.jsonl")
    before = "x" * (1 << 20)  # more than one request reads
    append_line(path, f"{before}\n")

    def write(writer: int) -> None:
        for number in range(5):
            append_line(path, f"{writer} {number}\n")

    threads = [threading.Thread(target=write, args=(writer,)) for writer in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first, *lines = path.read_bytes().decode().splitlines()
    assert first == before
    assert sorted(lines) == sorted(f"{w} {n}" for w in range(3) for n in range(5))
    for writer in range(3):
        mine = [line for line in lines if line.startswith(f"{writer} ")]
        assert mine == [f"{writer} {n}" for n in range(5)]


def test_a_line_is_added_once_though_the_answer_is_lost(bucket: Bucket) -> None:
    append_line(at("judged.jsonl"), "one\n")
    turns = itertools.chain(["lost"], itertools.repeat(None))
    bucket.fault = lambda asked: next(turns) if asked.method == "PUT" else None
    append_line(at("judged.jsonl"), "two\n")
    assert at("judged.jsonl").read_text() == "one\ntwo\n"


def test_an_address_keeps_its_form_and_its_relatives() -> None:
    path = ObjectPath("s3://films/1999/a b.mp4")
    assert str(path) == os.fspath(path) == "s3://films/1999/a b.mp4"
    assert (path.bucket, path.key, path.suffix) == ("films", "1999/a b.mp4", ".mp4")
    assert [str(path.parent), str(path.parent / "c"), str(path.with_name("c"))] == [
        "s3://films/1999",
        *["s3://films/1999/c"] * 2,
    ]
    folders = (ObjectPath("s3://films/1999"), ObjectPath("s3://films/19"), Path("/films"))
    assert [path.is_relative_to(folder) for folder in folders] == [True, False, False]
    assert {path} == {pickle.loads(pickle.dumps(path)), ObjectPath("s3://films/1999/a b.mp4")}
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
