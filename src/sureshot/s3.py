"""Objects of an S3 storage as paths: listed, read by ranges, written whole.

Whatever cannot be done is an `OSError`: `FileNotFoundError` where there is no object,
`PermissionError` where the storage denies it, another one where it cannot be asked.
"""

import contextlib
import errno
import functools
import hashlib
import io
import os
import re
import stat
import time
import urllib.parse
import zlib
from collections.abc import Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path, PosixPath
from typing import Any

from sureshot.errors import install_command

SCHEME = "s3://"
_ROOT = SCHEME.rstrip("/")
_CONNECT, _ANSWER = 5, 15  # seconds that a connection, and the next bytes of an answer, may take
_TRIES = 4  # of a request that is refused for the moment, and of a body that is cut off
_PAUSE = 0.2  # seconds before the second try of a body; doubles
_CONNECTIONS = 32
_ENVIRONMENTS = 8  # of which clients are kept
_SECOND = 1_000_000_000
_APPENDS = 50  # tries of one that others come before
_FIRST = 1 << 19  # bytes of the first request of a reader, and of the one after a jump
_LARGEST = 1 << 23  # bytes of one request; it doubles up to this
_KEPT = 4  # requests whose bytes are kept: the index at the end of a file, the place before a jump

# The number of the system, the codes, statuses and classes of errors that mean it, our words. By
# names, as the library is loaded only where something is read. A missing bucket is not "no such
# file": of a bucket that a wrong endpoint does not have, nothing is gone.
_REASONS = """
ENOENT | NoSuchKey 404 | no such object
ENODEV | NoSuchBucket | there is no such bucket at this endpoint
ENODEV | InvalidBucketName ParamValidationError | no bucket or object can have this name
EACCES | AccessDenied AllAccessDisabled 403 | access is denied by the object storage; \
check your credentials and the bucket's policy
EACCES | InvalidAccessKeyId | the object storage does not know this access key
EACCES | SignatureDoesNotMatch | the secret key does not fit the access key
EACCES | ExpiredToken ExpiredTokenException | the credentials have expired; get new ones
EACCES | InvalidToken | the session token is not valid; get a new one
EACCES | RequestTimeTooSkewed | the clock of this machine differs too much from that of the \
object storage; set it
ESTALE | PreconditionFailed ConditionalRequestConflict 412 | changed while it was being read
EAGAIN | SlowDown 503 | the object storage is overloaded (it says: slow down)
EINVAL | InvalidRange | is shorter than it was
EACCES | NoCredentialsError PartialCredentialsError CredentialRetrievalError | no credentials \
for the object storage were found; set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY
EACCES | TokenRetrievalError SSOTokenLoadError UnauthorizedSSOTokenError | the sign-on has \
expired; sign on again
EACCES | ProfileNotFound | ~/.aws has no profile of the name in AWS_PROFILE
EACCES | ConfigParseError | the files in ~/.aws cannot be read
EPROTO | SSLError | the certificate of the object storage is not trusted
ETIMEDOUT | ReadTimeoutError | the object storage did not answer in time
ECONNREFUSED | EndpointConnectionError ConnectTimeoutError | the object storage cannot be reached
ECONNREFUSED | ProxyConnectionError InvalidProxiesConfigError | the proxy cannot be reached
"""
_KNOWN = {
    name: (int(getattr(errno, number)), words)
    for number, names, words in (line.split(" | ") for line in _REASONS.split("\n")[1:-1])
    for name in names.split()
}
_CUT = (errno.ECONNRESET, "the object storage breaks connections off")


def refusal(error: Exception, place: str = "") -> OSError:
    """The error of the library as one of the system, with words of ours alone.

    The place is the address of what was asked for, without credentials.
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
    # Lance asks the system which certificates to trust.
    bundle = "AWS_CA_BUNDLE" in os.environ and "SSL_CERT_FILE" not in os.environ
    if bundle and "https://" in text and "error sending request" in text:
        return f"{_KNOWN['SSLError'][1]}; set SSL_CERT_FILE to the file of AWS_CA_BUNDLE"
    if "error sending request" in text or "connect" in text.lower():
        return _KNOWN["EndpointConnectionError"][1]
    return _CUT[1] if "body" in text else "the object storage failed"


def _other(code: str) -> tuple[int, str]:
    safe = code if re.fullmatch(r"[A-Za-z0-9]{1,60}", code) else "no code"
    return errno.EIO, f"the object storage refused it ({safe})"


@dataclass(frozen=True, slots=True)
class StoredObject:
    """What a storage says of an object."""

    key: str
    size: int
    # When it was written. Storages say whole seconds; the nanoseconds are made of the ETag, so that
    # another content has another time.
    mtime_ns: int
    etag: str  # what the storage knows its content by


def lance_options(location: str) -> dict[str, str]:
    """What Lance needs to reach the same storage in the same way; empty for other places."""
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


def _connected() -> tuple[Any, Any]:
    """The session and the client of this process and environment."""
    environment = tuple(sorted(i for i in os.environ.items() if i[0].startswith("AWS_")))
    return _connect(os.getpid(), environment)  # a process and its child must share no connection


@functools.lru_cache(_ENVIRONMENTS)
def _connect(process: int, environment: tuple[tuple[str, str], ...]) -> tuple[Any, Any]:
    try:
        import botocore.session
        from botocore.config import Config
    except ImportError:
        raise OSError(errno.ENOSYS, f"object storage needs: {install_command('s3')}") from None
    config = Config(
        connect_timeout=_CONNECT,
        read_timeout=_ANSWER,
        retries={"mode": "standard", "total_max_attempts": _TRIES},
        max_pool_connections=_CONNECTIONS,
        # Some storages send the checksum of the whole object with a range of it.
        response_checksum_validation="when_required",
        user_agent_extra="sureshot",
    )
    try:
        session = botocore.session.get_session()
        return session, session.create_client("s3", config=config)
    except Exception as error:
        if isinstance(error, ValueError) and "endpoint" in str(error):
            raise OSError(
                errno.EINVAL, "AWS_ENDPOINT_URL is not an address that begins with http or https"
            ) from None
        raise refusal(error) from None


@functools.lru_cache(_ENVIRONMENTS)
def _region(client: Any, bucket: str) -> str:
    """Region in which a bucket is."""
    try:
        answer = client.head_bucket(Bucket=bucket)["ResponseMetadata"]
    except Exception as error:
        answer = getattr(error, "response", {}).get("ResponseMetadata", {})
        if not answer.get("HTTPStatusCode"):
            raise refusal(error, f"{SCHEME}{bucket}") from None
    usual = client.meta.region_name
    usual = "us-east-1" if usual in (None, "aws-global") else usual
    return answer.get("HTTPHeaders", {}).get("x-amz-bucket-region") or usual


class ObjectPath(PosixPath):
    """A path of an object or of all objects whose names begin with it and a slash.

    It is a `Path` whose questions go to the storage; what a storage has not (folders that are
    empty, links, renaming, opening for writing) is an `OSError`, as is a storage that cannot be
    asked. Made by `object_path`.
    """

    listed: StoredObject | None = None  # what `entries` of its folder said of it

    def __str__(self) -> str:
        parts = self.parts
        if not parts or parts[0] != _ROOT:
            return "/".join(parts) or "."
        return SCHEME + "/".join(parts[1:])

    __fspath__ = __str__

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

    def of_key(self, key: str) -> "ObjectPath":
        """The path of an object in the same bucket."""
        return type(self)(f"{SCHEME}{self.bucket}/{key}")

    def is_absolute(self) -> bool:
        """True."""
        return True

    def is_symlink(self) -> bool:
        """False."""
        return False

    def resolve(self, strict: bool = False) -> "ObjectPath":
        """Itself: an address is absolute, and a storage has no links."""
        return self

    absolute = expanduser = resolve

    def samefile(self, other: Any) -> bool:
        """Whether it is the same address."""
        return str(self) == os.fspath(other)

    def look(self) -> StoredObject:
        """What the storage says of the object."""
        answer = self._call("head_object", Key=self.key)
        return _described(self.key, int(answer["ContentLength"]), answer)

    def stat(self, *, follow_symlinks: bool = True) -> os.stat_result:
        """Size and time of an object, or that it is a folder of some."""
        found = None
        with contextlib.suppress(FileNotFoundError):
            found = self.look() if self.key else None
        # Without one it is a folder, perhaps, and whether there is such a bucket, only a listing
        # tells. Some programs make a folder by an empty object of its name.
        if not (found and found.size) and any(self.below(limit=1)):
            return self._status(stat.S_IFDIR | 0o755, size=0, mtime_ns=0)
        if found:
            return self._status(stat.S_IFREG | 0o644, found.size, found.mtime_ns)
        what = "no such object" if self.key else "an empty bucket"
        raise FileNotFoundError(errno.ENOENT, what, str(self))

    lstat = stat

    def exists(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object, or some below."""
        return self._mode() != 0

    def is_file(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there is an object."""
        return stat.S_ISREG(self._mode())

    def is_dir(self, *, follow_symlinks: bool = True) -> bool:
        """Whether there are objects below, and none of just this name that is not empty."""
        return stat.S_ISDIR(self._mode())

    def iterdir(self) -> Generator["ObjectPath", None, None]:
        """Refused with an `OSError`: objects are in no folders, see `below`."""
        raise OSError(errno.ENOTSUP, "object storage has no folders", str(self))

    def below(self, limit: int | None = None) -> Iterator[StoredObject]:
        """The objects below, however deep, in the order of keys; the first ones if limited."""
        for answer in self._listings({} if limit is None else {"MaxKeys": limit}):
            for found in answer.get("Contents", ()):
                yield _described(found["Key"], int(found["Size"]), found)
            if limit is not None:
                return

    def entries(self) -> list["ObjectPath"]:
        """What is directly below, in the order of names; objects as they were ``listed``."""
        found: dict[str, StoredObject | None] = {}
        start = len(self.key) + 1 if self.key else 0
        for answer in self._listings({"Delimiter": "/"}):
            for one in answer.get("Contents", ()):
                found.setdefault(one["Key"][start:], _described(one["Key"], int(one["Size"]), one))
            found |= {one["Prefix"][start:-1]: None for one in answer.get("CommonPrefixes", ())}
        paths = [self / name for name in sorted(found) if is_plain_key(name)]
        for path in paths:
            path.listed = found[path.name]
        return paths

    def _listings(self, given: dict[str, Any]) -> Iterator[dict[str, Any]]:
        """The answers of a listing, of which each has at most a thousand objects."""
        answer: dict[str, Any] = {"IsTruncated": True}
        given = given | {"Prefix": f"{self.key}/" if self.key else ""}
        while answer.get("IsTruncated"):
            answer = self._call("list_objects_v2", **given)
            yield answer
            given["ContinuationToken"] = answer.get("NextContinuationToken")

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
        raw = ObjectReader(self)
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedReader(raw)
        return io.TextIOWrapper(io.BufferedReader(raw), encoding or "utf-8", errors, newline)

    def read_range(self, first: int, count: int, etag: str = "") -> tuple[bytes, StoredObject]:
        """At most so many bytes, and what the storage says of the object.

        It is an error if the object has another content than an ETag given.
        """
        given = {"Range": f"bytes={first}-{first + count - 1}"}
        given |= {"IfMatch": etag} if etag else {}
        for left in reversed(range(_TRIES)):
            try:
                answer = self._call("get_object", Key=self.key, **given)
            except OSError as error:
                if error.strerror == _KNOWN["InvalidRange"][1] and not first:  # an empty one
                    return b"", self.look()
                raise
            try:
                data = answer["Body"].read()
            except Exception as error:  # of the library below the library, in many kinds
                if not left:
                    raise refusal(error, str(self)) from None
                time.sleep(_PAUSE * 2 ** (_TRIES - left))
                continue
            size = int(answer.get("ContentRange", f"/{len(data)}").rpartition("/")[2])
            found = _described(self.key, size, answer)
            if etag and found.etag != etag:  # some storages overlook the condition
                raise OSError(*_KNOWN["PreconditionFailed"], str(self))
            return data, found
        raise AssertionError("the last try returns or raises")

    def write_bytes(self, data: Any, instead_of: str | None = None) -> int:
        """Write the object, whole or not at all.

        It replaces whatever is there, or only the content of the ETag ``instead_of``, empty for
        none at all. Where another is there, the error has ``ESTALE``.
        """
        given: dict[str, Any] = {"Key": self.key, "Body": bytes(data)}
        if instead_of is not None:
            given |= {"IfMatch": instead_of} if instead_of else {"IfNoneMatch": "*"}
        self._call("put_object", **given)
        return len(data)

    def append(self, data: bytes) -> None:
        """Add bytes to the end, however many others do so at the same time."""
        whole = b""
        for _ in range(_APPENDS):
            before, etag = b"", ""
            try:
                with contextlib.suppress(FileNotFoundError):
                    reader = ObjectReader(self)
                    before, etag = reader.read(), reader.stored.etag
                if not whole or not before.startswith(whole):  # else only the answer was lost
                    whole = before + data
                    self.write_bytes(whole, instead_of=etag)
                return
            except OSError as error:  # somebody has changed or deleted it meanwhile
                if error.errno not in (errno.ESTALE, errno.ENOENT):
                    raise
        raise OSError(errno.EAGAIN, "others write it without a pause", str(self))

    def unlink(self, missing_ok: bool = False) -> None:
        """Delete the object."""
        if not missing_ok:
            self.stat()
        with contextlib.suppress(FileNotFoundError):  # as some storages say it of one that is gone
            self._call("delete_object", Key=self.key)

    def delete(self, keys: Sequence[str]) -> None:
        """Delete objects of the same bucket; none of them need be there."""
        with ThreadPoolExecutor(_CONNECTIONS) as pool:  # not a list of them at once, as some refuse
            list(pool.map(lambda key: self.of_key(key).unlink(missing_ok=True), keys))

    def mkdir(self, mode: int = 0o777, parents: bool = False, exist_ok: bool = False) -> None:
        """Nothing: a folder is there with the first object below it."""

    def _call(self, name: str, **given: Any) -> Any:
        """The answer to a request."""
        _, client = _connected()
        try:
            return getattr(client, name)(Bucket=self.bucket, **given)
        except Exception as error:
            raise refusal(error, str(self)) from None

    def _mode(self) -> int:
        """Kind of what is there; 0 if nothing is."""
        try:
            return self.stat().st_mode
        except FileNotFoundError:
            return 0

    def _status(self, mode: int, size: int, mtime_ns: int) -> os.stat_result:
        """What an object says of itself, as the system says it of a file."""
        device, number = zlib.crc32(self.bucket.encode()), zlib.crc32(self.key.encode())
        times = mtime_ns // _SECOND, mtime_ns / _SECOND, mtime_ns  # whole, exact, nanoseconds
        fields = (mode, number, device, 1, 0, 0, size)
        return os.stat_result((*fields, *(time for time in times for _ in range(3))))


def _described(key: str, size: int, answer: dict[str, Any]) -> StoredObject:
    etag = str(answer.get("ETag", ""))
    etag = f'"{etag}"' if etag and '"' not in etag else etag  # some listings leave these out
    part = int(hashlib.sha256(etag.encode()).hexdigest()[:12], 16) % _SECOND
    seconds = int(answer["LastModified"].timestamp())
    return StoredObject(key=key, size=size, mtime_ns=seconds * _SECOND + part, etag=etag)


class ObjectReader(io.RawIOBase):
    """An open object; all that is read of it is of one content, or it is an error."""

    stored: StoredObject

    def __init__(self, path: ObjectPath) -> None:
        super().__init__()
        self.name, self.mode = str(path), "rb"
        self._path = path
        self._at = 0
        self._ahead = _FIRST
        self._parts: list[tuple[int, bytes]] = []
        self._fetch(0, _FIRST)

    def readable(self) -> bool:
        """True."""
        return True

    seekable = readable

    def tell(self) -> int:
        """Byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte; nothing is read by that."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.stored.size}.get(whence)
        if start is None or start + offset < 0:
            raise OSError(errno.EINVAL, "invalid argument")
        self._at = start + offset
        return self._at

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """The next bytes into a buffer; how many."""
        count = len(buffer)
        if not count or self._at >= self.stored.size:
            return 0
        data = (self._known() or self._fetch(self._at, count))[:count]
        buffer[: len(data)] = data
        self._at += len(data)
        return len(data)

    def _known(self) -> memoryview:
        """What is there already from the present place on."""
        for start, data in reversed(self._parts):
            if start <= self._at < start + len(data):
                return memoryview(data)[self._at - start :]
        return memoryview(b"")

    def _fetch(self, first: int, least: int) -> memoryview:
        """Bytes from a place on: more at once the longer they are read without a jump."""
        known = ""
        if self._parts:
            start, before = self._parts[-1]
            # ffmpeg leaves out streams that are not wanted: a small gap is no jump.
            on = 0 <= first - start - len(before) <= self._ahead
            self._ahead = min(self._ahead * 2, _LARGEST) if on else _FIRST
            known = self.stored.etag
        data, self.stored = self._path.read_range(first, max(least, self._ahead), known)
        self._parts = [*self._parts[1 - _KEPT :], (first, data)]
        return memoryview(data)


def object_path(address: str | Path) -> ObjectPath | None:
    """The path that an address names, None where it names no object; ValueError for ``..`` in it.

    A `Path` that was made of an address has lost a slash, and is understood all the same.

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
