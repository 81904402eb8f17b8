"""An S3 storage for tests: moto's server behind a proxy of ours that counts and plays faults."""

import http.client
import logging
import re
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

SECRET = "wJalrXUtnFEMI/K7MDENG/notarealkey"
TOKEN = "FwoGZXIvYXdzEBYaDnotarealtoken"
BUCKET = "films"
# What becomes of a request; None forwards it.
Fault = Callable[["Asked"], str | None]


class Asked:
    """A request as the proxy got it.

    Attributes:
        method: its method.
        path: bucket, key and query as they were sent.
        range: bytes asked for; empty for all.
    """

    def __init__(self, method: str, path: str, span: str) -> None:
        self.method, self.path, self.range = method, path, span

    @property
    def is_read(self) -> bool:
        """Whether it asks for the content of an object."""
        return self.method == "GET" and "list-type" not in self.path


class Bucket:
    """A bucket, and how its storage behaves.

    Attributes:
        url: endpoint.
        asked: requests so far.
        sent: bytes of bodies that were sent so far.
        fault: decides what becomes of a request: ``503``, ``403`` and the like refuse it, ``cut``
            ends the connection midway, ``drop`` before a word, ``lost`` after the request is done,
            ``slow`` answers after a second, ``untagged`` without an ETag, ``loose`` as rclone does:
            without quotes around the ETags of a listing, with the checksum of the whole object next
            to a part of it, and whatever the condition is.
        delay: seconds before each answer, as a storage far away has them.
    """

    def __init__(self, url: str, client: Any) -> None:
        self.url = url
        self.client = client
        self.asked: list[Asked] = []
        self.sent = 0
        self.fault: Fault = lambda asked: None
        self.delay = 0.0

    def put(self, key: str, data: bytes | Path) -> None:
        """Put an object."""
        body = data.read_bytes() if isinstance(data, Path) else data
        self.client.put_object(Bucket=BUCKET, Key=key, Body=body)

    def keys(self, prefix: str = "") -> list[str]:
        """Keys of all objects."""
        answer = self.client.list_objects_v2(Bucket=BUCKET, Prefix=prefix)
        return [one["Key"] for one in answer.get("Contents", ())]

    def clear(self) -> None:
        """Delete all objects, end all faults and forget what was counted."""
        self.fault = lambda asked: None
        while keys := self.keys():
            named = {"Objects": [{"Key": key} for key in keys]}
            self.client.delete_objects(Bucket=BUCKET, Delete=named)
        self.asked.clear()
        self.sent = 0


class _Proxy(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    bucket: Bucket
    behind: tuple[str, int]

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing."""

    def _answer(self) -> None:
        length = int(self.headers.get("Content-Length", 0))
        body = self.rfile.read(length)
        asked = Asked(self.command, self.path, self.headers.get("Range", ""))
        self.bucket.asked.append(asked)
        fault = self.bucket.fault(asked)
        if fault == "drop":
            self.close_connection = True
            return
        time.sleep(1.0 if fault == "slow" else self.bucket.delay)
        if fault and fault.isdigit():
            self._send(int(fault), {}, b"<Error><Code>Code%s</Code></Error>" % fault.encode())
            return
        if fault == "loose":
            del self.headers["If-Match"]
        onward = http.client.HTTPConnection(*self.behind)
        onward.request(self.command, self.path, body, dict(self.headers))
        answer = onward.getresponse()
        data = answer.read()
        if fault == "lost":
            self.close_connection = True
            return
        headers = {k: v for k, v in answer.getheaders() if k.lower() not in _OURS}
        if fault == "untagged":
            headers = {k: v for k, v in headers.items() if k.lower() != "etag"}
            data = re.sub(rb"<ETag>[^<]*</ETag>", b"", data)
        if fault == "loose":
            data = data.replace(b"&quot;", b"")
            headers["x-amz-checksum-crc32"] = "vc6LVw=="
        if self.command == "HEAD":
            headers["Content-Length"] = answer.getheader("Content-Length", "0")
        self._send(answer.status, headers, data, cut=fault == "cut")
        onward.close()

    def _send(self, status: int, headers: dict[str, str], data: bytes, cut: bool = False) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        if self.command != "HEAD":
            self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        if cut:
            data = data[: len(data) // 2]
            self.close_connection = True
        if self.command != "HEAD":
            self.bucket.sent += len(data)  # before the client can have it and look
            self.wfile.write(data)

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _answer  # noqa: N815


_OURS = {"content-length", "connection", "transfer-encoding", "date", "server"}


@contextmanager
def storage() -> Iterator[Bucket]:
    """A storage with one empty bucket; the environment says where it is."""
    from moto.server import ThreadedMotoServer

    logging.getLogger("werkzeug").disabled = True
    server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    server.start()
    handler = type("Proxy", (_Proxy,), {"behind": server.get_host_and_port()})
    proxy = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    proxy.daemon_threads = True
    thread = threading.Thread(target=proxy.serve_forever, daemon=True)
    thread.start()
    url = f"http://127.0.0.1:{proxy.server_address[1]}"
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_PROFILE", "AWS_SESSION_TOKEN", "AWS_ENDPOINT_URL_S3", "AWS_REGION"):
            patch.delenv(name, raising=False)
        patch.setenv("AWS_ENDPOINT_URL", url)
        patch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
        patch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        patch.setenv("AWS_DEFAULT_REGION", "us-east-1")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        patch.setenv("AWS_CONFIG_FILE", "/dev/null")
        patch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/dev/null")
        import botocore.session

        client = botocore.session.get_session().create_client("s3")
        bucket = Bucket(url, client)
        handler.bucket = bucket  # type: ignore[attr-defined]
        client.create_bucket(Bucket=BUCKET)
        try:
            yield bucket
        finally:
            proxy.shutdown()
            proxy.server_close()
            thread.join(5)
            server.stop()
