"""Objects of an S3 storage as paths: listed, read by ranges, written whole.

Whatever cannot be done is an `OSError`: `FileNotFoundError` where there is no object,
`PermissionError` where the storage denies it, another one where it cannot be asked.
"""

import errno
import hashlib
import io
import os
import re
import stat
import threading
import time
import urllib.parse
import zlib
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import Any

# What storages answer and what the library raises, by code, status or class, with the number of
# the system that says the same. By names, as the library is loaded only where something is read.
_REASONS = (
    ("NoSuchKey 404", errno.ENOENT, "no such object"),
    # Not "no such file": of a bucket that a wrong endpoint does not have, nothing is gone.
    ("NoSuchBucket", errno.ENODEV, "there is no such bucket at this endpoint"),
    ("InvalidBucketName", errno.ENODEV, "no bucket can have this name"),
    (
        "AccessDenied AllAccessDisabled 403",
        errno.EACCES,
        "access is denied by the object storage; check your credentials and the bucket's policy",
    ),
    ("InvalidAccessKeyId", errno.EACCES, "the object storage does not know this access key"),
    ("SignatureDoesNotMatch", errno.EACCES, "the secret key does not fit the access key"),
    (
        "ExpiredToken ExpiredTokenException",
        errno.EACCES,
        "the credentials have expired; get new ones",
    ),
    ("InvalidToken", errno.EACCES, "the session token is not valid; get a new one"),
    (
        "RequestTimeTooSkewed",
        errno.EACCES,
        "the clock of this machine differs too much from that of the object storage; set it",
    ),
    ("PreconditionFailed 412", errno.ESTALE, "changed while it was being read"),
    ("ConditionalRequestConflict", errno.ESTALE, "is being written by another program"),
    ("SlowDown 503", errno.EAGAIN, "the object storage is overloaded (it says: slow down)"),
    ("ServiceUnavailable", errno.EAGAIN, "the object storage is not available"),
    ("InternalError 500", errno.EIO, "the object storage is out of order"),
    ("InvalidRange", errno.EINVAL, "is shorter than it was"),
    (
        "NoCredentialsError PartialCredentialsError CredentialRetrievalError",
        errno.EACCES,
        "no credentials for the object storage were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID "
        "and AWS_SECRET_ACCESS_KEY",
    ),
    (
        "TokenRetrievalError SSOTokenLoadError UnauthorizedSSOTokenError",
        errno.EACCES,
        "the sign-on has expired; sign on again",
    ),
    ("ProfileNotFound", errno.EACCES, "~/.aws has no profile of the name in AWS_PROFILE"),
    ("ConfigParseError", errno.EACCES, "the files in ~/.aws cannot be read"),
    ("ParamValidationError", errno.EINVAL, "no bucket or object can have this name"),
    ("InvalidRegionError", errno.EINVAL, "the region is none"),
    ("SSLError", errno.EPROTO, "the certificate of the object storage is not trusted"),
    ("ReadTimeoutError", errno.ETIMEDOUT, "the object storage did not answer in time"),
    ("ConnectTimeoutError", errno.ETIMEDOUT, "the object storage cannot be reached"),
    ("EndpointConnectionError", errno.ECONNREFUSED, "the object storage cannot be reached"),
    ("ProxyConnectionError", errno.ECONNREFUSED, "the proxy cannot be reached"),
    ("InvalidProxiesConfigError", errno.EINVAL, "the settings of the proxy are wrong"),
)
_KNOWN = {name: (number, words) for names, number, words in _REASONS for name in names.split()}
_CUT = (errno.ECONNRESET, "the object storage breaks connections off")


def refusal(error: Exception, place: str = "") -> OSError:
    """The error of the library as one of the system, with words of ours alone.

    Args:
        error: what the library raised.
        place: address of what was asked for, without credentials.
    """
    response: Any = getattr(error, "response", None)
    if isinstance(response, dict):
        code = str(response.get("Error", {}).get("Code", ""))
        status = str(response.get("ResponseMetadata", {}).get("HTTPStatusCode", ""))
        number, words = _KNOWN.get(code) or _KNOWN.get(status) or _other(code or status)
    else:
        known = (_KNOWN.get(kind.__name__) for kind in type(error).__mro__)
        number, words = next(filter(None, known), _CUT)
    return OSError(number, words, place) if place else OSError(number, words)


def reason_in(text: str) -> str | None:
    """What Lance's account of a failed request means; None if it is of none.

    Examples:
        >>> reason_in("Generic S3 error: ... 403 Forbidden: <Error><Code>ExpiredToken</Code> ...")
        'the credentials have expired; get new ones'
    """
    for code in re.findall(r"<Code>(\w{1,60})</Code>", text):
        return (_KNOWN.get(code) or _other(code))[1]
    if not re.search(r"\b(S3|GCS|Azure\w*) error|Error performing|object.store", text):
        return None
    for status in re.findall(r"\b(?:status code:?|status) (\d{3})\b|\b([45]\d\d) [A-Z]", text):
        return (_KNOWN.get("".join(status)) or _other("".join(status)))[1]
    if "timed out" in text or "timeout" in text.partition("HTTP error")[2]:
        return _KNOWN["ReadTimeoutError"][1]
    if "error sending request" in text or "connect" in text.lower():
        return _KNOWN["EndpointConnectionError"][1]
    return _CUT[1] if "body" in text else "the object storage failed"


def _other(code: str) -> tuple[int, str]:
    safe = code if re.fullmatch(r"[A-Za-z0-9]{1,60}", code) else "no code"
    return errno.EIO, f"the object storage refused it ({safe})"


SCHEME = "s3://"
_ROOT = SCHEME.rstrip("/")
_CONNECT, _ANSWER = 5, 15  # seconds that a connection, and the next bytes of an answer, may take
_TRIES = 4  # of a request that is refused for the moment, and of a body that is cut off
_PAUSE = 0.2  # seconds before the second try of a body; doubles
_DELETED_AT_ONCE = 1000  # objects
_CONNECTIONS = 32
_ENVIRONMENTS = 8  # of which clients are kept
_SECOND = 1_000_000_000
_APPENDS = 50  # tries of one that others come before
_WHOLE = 1 << 30  # bytes of an object that is read whole
_FIRST = 1 << 19  # bytes of the first request of a reader, and of the one after a jump
_LARGEST = 1 << 23  # bytes of one request; it doubles up to this
_KEPT = 4  # requests whose bytes are kept: the index at the end of a file, the place before a jump
_QUICK, _SLOW = 1.0, 4.0  # seconds of a request that makes the next one larger, or smaller

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
    """What the storage says of an object."""
    answer = _call("head_object", bucket, key, Key=key)
    return _described(key, int(answer["ContentLength"]), answer)


def listed(bucket: str, prefix: str, *, limit: int | None = None) -> Iterator[StoredObject]:
    """The objects whose keys begin with a prefix, in the order of their keys."""
    given: dict[str, Any] = {"Prefix": prefix} | ({} if limit is None else {"MaxKeys": limit})
    while True:
        answer = _call("list_objects_v2", bucket, prefix, **given)
        for found in answer.get("Contents", ()):
            yield _described(found["Key"], int(found["Size"]), found)
        if limit is not None or not answer.get("IsTruncated"):
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
    """
    given = {"Range": f"bytes={first}-{first + count - 1}"} | ({"IfMatch": etag} if etag else {})
    for left in reversed(range(_TRIES)):
        try:
            answer = _call("get_object", bucket, key, Key=key, **given)
        except OSError as error:
            if error.strerror == _KNOWN["InvalidRange"][1] and not first:  # an empty one
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
    given: dict[str, Any] = {"Key": key, "Body": data}
    if instead_of is not None:
        given |= {"IfMatch": instead_of} if instead_of else {"IfNoneMatch": "*"}
    _call("put_object", bucket, key, **given)


def delete(bucket: str, keys: Sequence[str]) -> None:
    """Delete objects; none of them need be there."""
    for first in range(0, len(keys), _DELETED_AT_ONCE):
        some = keys[first : first + _DELETED_AT_ONCE]
        named = {"Objects": [{"Key": key} for key in some], "Quiet": True}
        for wrong in _call("delete_objects", bucket, some[0], Delete=named).get("Errors", ()):
            error = OSError()
            error.response = {"Error": wrong}  # type: ignore[attr-defined]
            raise refusal(error, f"{SCHEME}{bucket}/{wrong.get('Key', '')}")


def lance_options(location: str) -> dict[str, str]:
    """What Lance needs to reach the same storage in the same way; empty for other places.

    Args:
        location: a folder, or an address of object storage.
    """
    if not location.startswith(SCHEME):
        return {}
    session, client = _connected()
    options = {
        "aws_region": _region(client, location.removeprefix(SCHEME).partition("/")[0]),
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
        options["aws_access_key_id"] = frozen.access_key
        options["aws_secret_access_key"] = frozen.secret_key
        options |= {"aws_session_token": frozen.token} if frozen.token else {}
    endpoint = client.meta.endpoint_url
    host = urllib.parse.urlsplit(endpoint).hostname or ""
    if not host.endswith((".amazonaws.com", ".amazonaws.com.cn")):
        allowed = "true" if endpoint.startswith("http://") else "false"
        options |= {"aws_endpoint": endpoint, "allow_http": allowed}
    return options


def _described(key: str, size: int, answer: dict[str, Any]) -> StoredObject:
    etag = str(answer.get("ETag", ""))
    part = int(hashlib.sha256(etag.encode()).hexdigest()[:12], 16) % _SECOND
    seconds = int(answer["LastModified"].timestamp())
    return StoredObject(key=key, size=size, mtime_ns=seconds * _SECOND + part, etag=etag)


def _call(name: str, bucket: str, key: str, **given: Any) -> Any:
    """The answer to a request."""
    _, client = _connected()
    try:
        return getattr(client, name)(Bucket=bucket, **given)
    except Exception as error:
        raise refusal(error, f"{SCHEME}{bucket}/{key}") from None


def _connected() -> tuple[Any, Any]:
    """The session and the client of this process and environment."""
    environment = tuple(sorted(i for i in os.environ.items() if i[0].startswith("AWS_")))
    here = (os.getpid(), environment)  # a process and its child must not share a connection
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


class ObjectReader(io.RawIOBase):
    """An open object; all that is read of it is of one content, or it is an error.

    Attributes:
        name: its address.
        stored: what the storage says of it.
        fetched: bytes read from the storage so far.
        requests: requests made so far.
    """

    def __init__(self, bucket: str, key: str) -> None:
        super().__init__()
        self._bucket, self._key = bucket, key
        self.name, self.mode = f"{SCHEME}{bucket}/{key}", "rb"
        self._at = 0
        self._ahead = _FIRST
        self._parts: list[tuple[int, bytes]] = []
        self.fetched = self.requests = 0
        self.stored: StoredObject | None = None
        self._fetch(0, _FIRST)

    @property
    def size(self) -> int:
        """Bytes of the object."""
        return self.stored.size if self.stored else 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte; nothing is read by that."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence)
        if start is None or start + offset < 0:
            raise OSError(errno.EINVAL, "invalid argument")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """The next bytes into a buffer; how many."""
        count = len(buffer)
        if not count or self._at >= self.size:
            return 0
        data = self._known() or self._fetch(self._at, max(count, self._next_request()))
        data = data[:count]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _known(self) -> memoryview:
        """What is there already from the present place on."""
        for start, data in reversed(self._parts):
            if start <= self._at < start + len(data):
                return memoryview(data)[self._at - start :]
        return memoryview(b"")

    def _next_request(self) -> int:
        """How many bytes the next request asks for."""
        start, data = self._parts[-1]
        gap = self._at - start - len(data)
        # ffmpeg leaves out streams that are not wanted: a small gap is no jump.
        if not 0 <= gap <= self._ahead:
            self._ahead = _FIRST
        return self._ahead

    def _fetch(self, first: int, count: int) -> memoryview:
        began = time.monotonic()
        known = self.stored.etag if self.stored else ""
        data, self.stored = read_range(self._bucket, self._key, first, count, known)
        took = time.monotonic() - began
        self.requests += 1
        self.fetched += len(data)
        self._parts = [*self._parts[1 - _KEPT :], (first, data)]
        if took < _QUICK:
            self._ahead = min(self._ahead * 2, _LARGEST)
        elif took > _SLOW:
            self._ahead = max(self._ahead // 4, _FIRST // 8)
        return memoryview(data)


class ObjectPath(PosixPath):
    """A path of an object or of all objects whose names begin with it and a slash.

    It is a `Path` whose questions go to the storage; what a storage has not (folders that are
    empty, links, renaming, opening for writing) is an `OSError`, as is a storage that cannot be
    asked. Made by `object_path`.
    """

    def __str__(self) -> str:
        parts = self.parts
        if not parts or parts[0] != _ROOT:
            return "/".join(parts) or "."
        return SCHEME + "/".join(parts[1:])

    def __fspath__(self) -> str:
        return str(self)

    def __repr__(self) -> str:
        return f"ObjectPath({str(self)!r})"

    @property
    def bucket(self) -> str:
        """Name of the bucket; empty where the path names none."""
        return self.parts[1] if len(self.parts) > 1 else ""

    @property
    def key(self) -> str:
        """Name in the bucket; empty for the bucket itself."""
        return "/".join(self.parts[2:])

    def is_absolute(self) -> bool:
        """True."""
        return True

    def absolute(self) -> "ObjectPath":
        """Itself."""
        return self

    def resolve(self, strict: bool = False) -> "ObjectPath":
        """Itself; a storage has no links."""
        return self

    def expanduser(self) -> "ObjectPath":
        """Itself."""
        return self

    def samefile(self, other: Any) -> bool:
        """Whether it is the same address."""
        return str(self) == os.fspath(other)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and time of an object, or that it is a folder of some.

        Raises:
            FileNotFoundError: there is neither.
            OSError: the storage cannot be asked.
        """
        if self.key:
            try:
                return _status(self, stat.S_IFREG | 0o644, look(self.bucket, self.key))
            except FileNotFoundError:
                pass  # a folder, perhaps; and whether there is such a bucket, only a listing tells
        below = f"{self.key}/" if self.key else ""
        if any(listed(self.bucket, below, limit=1)):
            nothing = StoredObject(key=below, size=0, mtime_ns=0, etag="")
            return _status(self, stat.S_IFDIR | 0o755, nothing)
        if not self.key:
            raise FileNotFoundError(errno.ENOENT, "an empty bucket", str(self))
        raise FileNotFoundError(errno.ENOENT, "no such object", str(self))

    def etag(self) -> str:
        """What the storage tells the content of the object by."""
        return look(self.bucket, self.key).etag.strip('"')

    def lstat(self) -> os.stat_result:
        """The same as `stat`."""
        return self.stat()

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object, or some below."""
        return self._mode() != 0

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object."""
        return stat.S_ISREG(self._mode())

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there are objects below, and none of just this name."""
        return stat.S_ISDIR(self._mode())

    def is_symlink(self) -> bool:
        """False."""
        return False

    def iterdir(self) -> Generator["ObjectPath", None, None]:
        """Refused with an `OSError`: objects are in no folders, see `below`."""
        raise OSError(errno.ENOTSUP, "object storage has no folders", str(self))

    def below(self) -> Iterator[StoredObject]:
        """Every object below, however deep, in the order of keys."""
        return listed(self.bucket, f"{self.key}/" if self.key else "")

    def first(self) -> Iterator[StoredObject]:
        """The first object below, if there is any."""
        return listed(self.bucket, f"{self.key}/", limit=1)

    def of_key(self, key: str) -> "ObjectPath":
        """The path of an object in the same bucket."""
        return type(self)(f"{SCHEME}{self.bucket}/{key}")

    def open(
        self,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> Any:
        """The object to read from."""
        if set(mode) - set("rbt"):
            raise OSError(errno.EROFS, "an object is written whole", str(self))
        raw = ObjectReader(self.bucket, self.key)
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedReader(raw)
        return io.TextIOWrapper(io.BufferedReader(raw), encoding or "utf-8", errors, newline)

    def read_range(self, first: int, count: int) -> bytes:
        """Bytes of the object from one on."""
        return read_range(self.bucket, self.key, first, count)[0]

    def read_bytes(self) -> bytes:
        """All of an object of at most 1 GB."""
        return read_range(self.bucket, self.key, 0, _WHOLE)[0]

    def write_bytes(self, data: Any) -> int:
        """Write the object, whole or not at all."""
        put_object(self.bucket, self.key, bytes(data))
        return len(data)

    def append(self, data: bytes) -> None:
        """Add bytes to the end, however many others do so at the same time."""
        for _ in range(_APPENDS):
            try:
                before, known = read_range(self.bucket, self.key, 0, _WHOLE)
                etag = known.etag
            except FileNotFoundError:
                before, etag = b"", ""
            try:
                put_object(self.bucket, self.key, before + data, instead_of=etag)
            except FileNotFoundError:
                continue  # somebody has deleted it meanwhile
            except OSError as error:
                if error.errno != errno.ESTALE:
                    raise
                continue
            return
        raise OSError(errno.EAGAIN, "others write it without a pause", str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object."""
        if not missing_ok:
            self.stat()
        delete(self.bucket, [self.key])

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there with the first object below it."""

    def _mode(self) -> int:
        """Kind of what is there; 0 if nothing is."""
        try:
            return self.stat().st_mode
        except FileNotFoundError:
            return 0


def object_path(address: str | Path) -> ObjectPath | None:
    """The path that an address names; None for what is no address of an object.

    A `Path` that was made of an address has lost a slash, and is understood all the same.

    Raises:
        ValueError: it has ``..`` in it.

    Examples:
        >>> object_path("s3://films/1999/a b.mp4"), object_path(Path("s3://films")).bucket
        (ObjectPath('s3://films/1999/a b.mp4'), 'films')
        >>> object_path("/home/ann/s3:/x") is None
        True
    """
    if isinstance(address, ObjectPath):
        return address
    text = os.fspath(address)
    squeezed = isinstance(address, Path) and text.startswith(f"{_ROOT}/")
    if not text.startswith(SCHEME) and not squeezed:
        return None
    path = ObjectPath(text)
    if ".." in path.parts:
        raise ValueError("an address of object storage has no '..' in it")
    return path


def is_plain_key(key: str) -> bool:
    """Whether a key is one that a path can have: without empty parts, ``.`` and ``..``."""
    return not {"", ".", ".."} & set(key.split("/")) and "\0" not in key


def _status(path: ObjectPath, mode: int, stored: StoredObject) -> os.stat_result:
    """What an object says of itself, as the system says it of a file."""
    seconds = stored.mtime_ns // 1_000_000_000
    device, number = zlib.crc32(path.bucket.encode()), zlib.crc32(path.key.encode())
    fields = (mode, number, device, 1, 0, 0, stored.size, seconds, seconds, seconds)
    exact = stored.mtime_ns / 1e9
    return os.stat_result((*fields, *(exact,) * 3, *(stored.mtime_ns,) * 3))
