"""Requests to an S3 storage: list, look, read a range, write whole, delete.

Credentials come from where all programs look for them (the environment, ``~/.aws``, the role of the
machine), the endpoint from ``AWS_ENDPOINT_URL_S3`` or ``AWS_ENDPOINT_URL``. Every error is an
`OSError` in plain words, see `refusals`.
"""

import errno
import hashlib
import os
import threading
import time
import urllib.parse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from sureshot.objects.refusals import refusal

SCHEME = "s3://"
_CONNECT, _ANSWER = 5, 15  # seconds that a connection, and the next bytes of an answer, may take
_TRIES = 4  # of a request that is refused for the moment, and of a body that is cut off
_PAUSE = 0.2  # seconds before the second try of a body; doubles
_AT_ONCE = 1000  # objects that one request deletes
_CONNECTIONS = 32
_ENVIRONMENTS = 8  # of which clients are kept
_SECOND = 1_000_000_000

_making = threading.Lock()
_made: dict[tuple[Any, ...], tuple[Any, Any]] = {}  # session and client by process and environment
_regions: dict[tuple[str, str], str] = {}


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a storage says of an object.

    Attributes:
        key: name in its bucket.
        size: bytes.
        mtime_ns: when it was written, in nanoseconds. Storages tell whole seconds; the rest is made
            of the ETag, so that another content has another time.
        etag: what the storage tells its content by.
    """

    key: str
    size: int
    mtime_ns: int
    etag: str


def look(bucket: str, key: str) -> StoredObject:
    """What the storage says of an object.

    Raises:
        OSError: there is none, or it cannot be asked.
    """
    answer = _call("head_object", bucket, key, Bucket=bucket, Key=key)
    return _described(key, int(answer["ContentLength"]), answer)


def listed(bucket: str, prefix: str, *, most: int | None = None) -> Iterator[StoredObject]:
    """The objects whose keys begin with a prefix, in the order of their keys.

    Args:
        bucket: the bucket.
        prefix: beginning of keys.
        most: how many at most; None is all.

    Raises:
        OSError: the bucket cannot be listed.
    """
    given: dict[str, Any] = {"Bucket": bucket, "Prefix": prefix}
    if most is not None:
        given["MaxKeys"] = most
    while True:
        answer = _call("list_objects_v2", bucket, prefix, **given)
        for one in answer.get("Contents", ()):
            yield _described(one["Key"], int(one["Size"]), one)
        if most is not None or not answer.get("IsTruncated"):
            return
        given["ContinuationToken"] = answer["NextContinuationToken"]


def read_range(
    bucket: str, key: str, first: int, count: int, etag: str = ""
) -> tuple[bytes, StoredObject]:
    """Bytes of an object, and what the storage says of it.

    Args:
        bucket: the bucket.
        key: the object.
        first: first byte.
        count: how many bytes, at least 1; there may be fewer.
        etag: what the object is known by; if it is another by now that is an error.

    Raises:
        OSError: it cannot be read, or has changed.
    """
    given = {"IfMatch": etag} if etag else {}
    span = f"bytes={first}-{first + count - 1}"
    for left in reversed(range(_TRIES)):
        try:
            answer = _call("get_object", bucket, key, Bucket=bucket, Key=key, Range=span, **given)
        except OSError as error:
            if error.strerror == "is shorter than it was" and not first:  # an empty one
                return b"", look(bucket, key)
            raise
        try:
            data = answer["Body"].read()
        except Exception as error:  # of the library below the library, in many kinds
            if not left:
                raise refusal(error, f"{SCHEME}{bucket}/{key}") from None
            time.sleep(_PAUSE * 2 ** (_TRIES - left))
            continue
        size = int(answer.get("ContentRange", f"/{len(data)}").rpartition("/")[2])
        return data, _described(key, size, answer)
    raise AssertionError("the last try returns or raises")


def put_object(bucket: str, key: str, data: bytes, *, instead_of: str | None = None) -> None:
    """Write an object, whole or not at all.

    Args:
        bucket: the bucket.
        key: the object.
        data: its content.
        instead_of: ETag of the content that it may replace, empty for none at all; None replaces
            whatever is there.

    Raises:
        OSError: it cannot be written; of number ``ESTALE`` or ``ENOENT`` if another content is
            there than was said.
    """
    given: dict[str, Any] = {"Bucket": bucket, "Key": key, "Body": data}
    if instead_of is not None:
        given |= {"IfMatch": instead_of} if instead_of else {"IfNoneMatch": "*"}
    _call("put_object", bucket, key, **given)


def delete(bucket: str, keys: Sequence[str]) -> None:
    """Delete objects; none of them need be there.

    Raises:
        OSError: one cannot be deleted.
    """
    for first in range(0, len(keys), _AT_ONCE):
        some = keys[first : first + _AT_ONCE]
        named = {"Objects": [{"Key": key} for key in some], "Quiet": True}
        answer = _call("delete_objects", bucket, some[0], Bucket=bucket, Delete=named)
        for wrong in answer.get("Errors", ()):
            raise refusal(_RefusedError(wrong), f"{SCHEME}{bucket}/{wrong.get('Key', '')}")


def lance_options(location: str) -> dict[str, str]:
    """What Lance must be told to reach the same storage in the same way; empty for other places.

    Args:
        location: a folder, or an address of object storage.

    Raises:
        OSError: there are no credentials.
    """
    if not location.startswith(SCHEME):
        return {}
    session, client = _connected()
    bucket = location.removeprefix(SCHEME).partition("/")[0]
    options = {
        "aws_region": _region(client, bucket),
        "connect_timeout": f"{_CONNECT} seconds",
        "timeout": "60 seconds",
        "client_max_retries": str(_TRIES),
        "client_retry_timeout": "60",
    }
    try:
        credentials = session.get_credentials()
        frozen = credentials and credentials.get_frozen_credentials()
    except Exception as error:
        raise refusal(error, location) from None
    if frozen:
        options |= {
            "aws_access_key_id": frozen.access_key,
            "aws_secret_access_key": frozen.secret_key,
        }
        options |= {"aws_session_token": frozen.token} if frozen.token else {}
    endpoint = client.meta.endpoint_url
    host = urllib.parse.urlsplit(endpoint).hostname or ""
    if not host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        plain_http = endpoint.startswith("http://")
        options |= {"aws_endpoint": endpoint, "allow_http": "true" if plain_http else "false"}
    return options


class _RefusedError(Exception):
    """An error among the answers to one request about many objects."""

    def __init__(self, answer: dict[str, Any]) -> None:
        super().__init__()
        self.response = {"Error": answer}


def _described(key: str, size: int, answer: dict[str, Any]) -> StoredObject:
    etag = str(answer.get("ETag", ""))
    part = int(hashlib.sha256(etag.encode()).hexdigest()[:12], 16) % _SECOND
    seconds = int(answer["LastModified"].timestamp())
    return StoredObject(key=key, size=size, mtime_ns=seconds * _SECOND + part, etag=etag)


def _call(name: str, bucket: str, key: str, **given: Any) -> Any:
    """The answer to a request."""
    _, client = _connected()
    try:
        return getattr(client, name)(**given)
    except Exception as error:
        raise refusal(error, f"{SCHEME}{bucket}/{key}") from None


def _connected() -> tuple[Any, Any]:
    """The session and the client of this process and environment."""
    said = tuple(sorted(item for item in os.environ.items() if item[0].startswith("AWS_")))
    here = (os.getpid(), said)  # a connection must not be shared by a process and its child
    with _making:
        if here not in _made:
            if len(_made) >= _ENVIRONMENTS:
                _made.clear()
            _made[here] = _connect()
        return _made[here]


def _connect() -> tuple[Any, Any]:
    try:
        import botocore.session
        from botocore.config import Config
    except ImportError:
        raise OSError(
            errno.ENOSYS, "addresses of object storage need: pip install 'sureshot[s3]'"
        ) from None
    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_ANSWER,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        max_pool_connections=_CONNECTIONS,
        user_agent_extra="sureshot",
    )
    try:
        session = botocore.session.get_session()
        return session, session.create_client("s3", config=config)
    except Exception as error:
        raise refusal(error) from None


def _region(client: Any, bucket: str) -> str:
    """Region in which a bucket is; asked once."""
    here = (client.meta.endpoint_url, bucket)
    if here not in _regions:
        try:
            headers = client.head_bucket(Bucket=bucket)["ResponseMetadata"]["HTTPHeaders"]
        except Exception as error:
            answer = getattr(error, "response", {}).get("ResponseMetadata", {})
            headers = answer.get("HTTPHeaders", {})
            if not answer.get("HTTPStatusCode"):
                raise refusal(error, f"{SCHEME}{bucket}") from None
        usual = client.meta.region_name
        usual = "us-east-1" if usual in (None, "aws-global") else usual
        _regions[here] = headers.get("x-amz-bucket-region") or usual
    return _regions[here]
