"""Paths of objects: an address ``s3://bucket/name`` that is used as any other path."""

import errno
import io
import os
import stat
import zlib
from collections.abc import Generator, Iterator
from pathlib import Path, PosixPath
from typing import Any

from sureshot.objects.client import (
    SCHEME,
    StoredObject,
    delete,
    listed,
    look,
    put_object,
    read_range,
)
from sureshot.objects.reader import ObjectReader

_ROOT = SCHEME.rstrip("/")
_TRIES = 50  # of a write that others come before
_MOST = 1 << 30  # bytes of an object that is read whole


class ObjectPath(PosixPath):
    """A path of an object or of all objects whose names begin with it and a slash.

    It is a `Path` whose questions go to the storage; what a storage has not (folders that are
    empty, links, renaming, opening for writing) is an `OSError`. Made by `object_path`.
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
        if any(listed(self.bucket, below, most=1)):
            nothing = StoredObject(key=below, size=0, mtime_ns=0, etag="")
            return _status(self, stat.S_IFDIR | 0o755, nothing)
        if not self.key:
            raise FileNotFoundError(errno.ENOENT, "an empty bucket", str(self))
        raise FileNotFoundError(errno.ENOENT, "no such object", str(self))

    def etag(self) -> str:
        """What the storage tells the content of the object by.

        Raises:
            OSError: there is none, or it cannot be asked.
        """
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
        """Refused: objects lie in no folders, see `below`.

        Raises:
            OSError: always.
        """
        raise OSError(errno.ENOTSUP, "object storage has no folders", str(self))

    def below(self) -> Iterator[StoredObject]:
        """Every object below, however deep, in the order of keys.

        Raises:
            OSError: the bucket cannot be listed.
        """
        return listed(self.bucket, f"{self.key}/" if self.key else "")

    def first(self) -> Iterator[StoredObject]:
        """The first object below, if there is any.

        Raises:
            OSError: the bucket cannot be listed.
        """
        return listed(self.bucket, f"{self.key}/", most=1)

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
        """The object to read from.

        Raises:
            OSError: it cannot be read; or is to be written, which `write_bytes` does.
        """
        if set(mode) - set("rbt"):
            raise OSError(errno.EROFS, "an object is written whole", str(self))
        raw = ObjectReader(self.bucket, self.key)
        if "b" in mode:
            return raw if buffering == 0 else io.BufferedReader(raw)
        return io.TextIOWrapper(io.BufferedReader(raw), encoding or "utf-8", errors, newline)

    def read_range(self, first: int, count: int) -> bytes:
        """Bytes of the object from one on.

        Raises:
            OSError: they cannot be read.
        """
        return read_range(self.bucket, self.key, first, count)[0]

    def read_bytes(self) -> bytes:
        """All of an object of at most 1 GB."""
        return read_range(self.bucket, self.key, 0, _MOST)[0]

    def write_bytes(self, data: Any) -> int:
        """Write the object, whole or not at all.

        Raises:
            OSError: it cannot be written.
        """
        put_object(self.bucket, self.key, bytes(data))
        return len(data)

    def append(self, data: bytes) -> None:
        """Add bytes to the end, however many others do so at the same time.

        Raises:
            OSError: it cannot be written, or others came before 50 times.
        """
        for _ in range(_TRIES):
            try:
                before, known = read_range(self.bucket, self.key, 0, _MOST)
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
        """Kind of what is there; 0 if nothing is.

        Raises:
            OSError: the storage cannot be asked.
        """
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
