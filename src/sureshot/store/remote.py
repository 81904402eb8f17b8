"""The tables of an index in object storage, as the objects that they are.

Lance has its own way to the storage. What it cannot say or do is here: whether tables are there at
all, what went wrong in words, how large they are, and how they go.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import time
import urllib.parse
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from sureshot.errors import SureshotError
from sureshot.paths import cache_dir
from sureshot.s3 import SCHEME, ObjectPath, StoredObject, delete, lance_options, object_path

_VERSIONS = "_versions"


def is_remote(location: str) -> bool:
    """Whether a place is no folder.

    Examples:
        >>> is_remote("s3://films/index"), is_remote("/home/ann/index")
        (True, False)
    """
    return "://" in location


def table_address(location: str, name: str) -> str:
    """A table as Lance is to be told of it: it takes an address for one with percent signs."""
    if not location.startswith(SCHEME):
        return f"{location}/{name}.lance"
    return SCHEME + urllib.parse.quote(f"{location.removeprefix(SCHEME)}/{name}.lance")


def options(location: str) -> dict[str, str] | None:
    """What Lance is told of the storage; None for a folder.

    Raises:
        OSError: the storage cannot be asked, or there are no credentials.
    """
    return lance_options(location) or None


def table_is_there(location: str, name: str) -> bool:
    """Whether a table in S3 storage has a version that can be opened.

    Raises:
        OSError: the storage cannot be asked, or there is no such bucket.
    """
    return any((_place(location) / f"{name}.lance" / _VERSIONS).first())


def parts_of_table(location: str, name: str) -> set[str]:
    """What lies directly below a table in S3 storage; empty if there is nothing.

    Raises:
        OSError: the storage cannot be asked.
    """
    table = _place(location) / f"{name}.lance"
    keys = (one.key.removeprefix(f"{table.key}/") for one in table.below())
    return {key.partition("/")[0] for key in keys}


def bytes_of(location: str) -> int:
    """Size of all objects below a place.

    Raises:
        OSError: the storage cannot be asked.
    """
    return sum(one.size for one in _place(location).below())


def delete_tables(location: str, names: tuple[str, ...]) -> None:
    """Delete tables, what tells their versions first: ended midway, they are there or gone.

    Args:
        location: place of the index.
        names: tables, in the order in which they go.

    Raises:
        OSError: an object cannot be deleted.
    """
    for name in names:
        table = _place(location) / f"{name}.lance"
        keys = [one.key for one in table.below()]
        versions = f"{table.key}/{_VERSIONS}/"
        for some in (
            [key for key in keys if key.startswith(versions)],
            [key for key in keys if not key.startswith(versions)],
        ):
            delete(table.bucket, some)


def _place(location: str) -> ObjectPath:
    found = object_path(location)
    assert found is not None
    return found


MOST = 4096  # megabytes of all copies together; `LIMIT` in the environment says otherwise
LIMIT = "SURESHOT_INDEX_CACHE"
_MEGABYTE = 1_000_000
_FRESH = 1.0  # seconds during which the storage is not asked again for the newest version
_ABANDONED = 3600.0  # seconds; what is not of the newest version may be of somebody's until then
_AT_ONCE = 8  # files
_PART = 1 << 24  # bytes of a file that are asked for at once
_NEWEST = 20  # digits by which Lance names manifests so that the newest comes first


def limit() -> int:
    """Bytes that all copies may have together; 0 keeps none.

    Raises:
        SureshotError: the environment says something that is no number.
    """
    text = os.environ.get(LIMIT, str(MOST))
    if not text.isascii() or not text.isdigit():
        raise SureshotError(f"{LIMIT} is {text!r}; write it as megabytes, such as {MOST}.")
    return int(text) * _MEGABYTE


def mirror_of(location: str) -> "Mirror | None":
    """The copy of the index at a place; None where it is to be read where it lies.

    Raises:
        SureshotError: the environment says something else than a number for the limit.
    """
    place, most = object_path(location), limit()
    if place is None or not most:
        return None
    with contextlib.suppress(SureshotError):
        return Mirror(place, most)
    return None  # no home folder, no cache


class Mirror:
    """The copy of one index.

    Args:
        place: address of the index.
        most: bytes that all copies may have together.

    Attributes:
        folder: where the copy is.
    """

    def __init__(self, place: ObjectPath, most: int) -> None:
        self._place = place
        self._most = most
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        name = hashlib.sha256(f"{endpoint} {place}".encode()).hexdigest()[:32]
        self.folder = cache_dir() / "indexes" / name
        self._known: dict[str, tuple[str, float, bool]] = {}  # version, when looked, if copied
        self._renewed: dict[str, str] = {}  # tables brought anew, and their versions then

    def table(self, name: str, remote: Callable[[], Any]) -> Path | None:
        """The copy of a table at its newest version; None where it is to be read where it lies.

        Args:
            name: ``videos`` or ``windows``.
            remote: opens the table at its newest version where it lies.

        Raises:
            OSError: the storage cannot be asked.
        """
        version, looked, copied = self._known.get(name, ("", 0.0, False))
        if not version or time.monotonic() - looked > _FRESH:
            newest = self._newest(name)
            if newest is None:
                return None
            if _told_by(newest) != version:
                copied = self._has(name, newest) or self._copy(name, newest, remote)
            self._known[name] = _told_by(newest), time.monotonic(), copied
        return self._table(name) if copied else None

    def forget(self, name: str) -> None:
        """Look at a table anew before it is opened next: a file of its copy may be missing."""
        self._known.pop(name, None)
        self._mark(name).unlink(missing_ok=True)

    def renew(self, name: str) -> bool:
        """Throw the copy of a table away, as something in it is not what was written.

        Returns:
            Whether there was one, not brought anew already at this version.
        """
        version, _, copied = self._known.get(name, ("", 0.0, False))
        if not copied or self._renewed.get(name) == version:
            return False
        self._renewed[name] = version
        self.forget(name)
        shutil.rmtree(self._table(name), ignore_errors=True)
        return True

    def _has(self, name: str, manifest: StoredObject) -> bool:
        """Whether an earlier program has brought a version; its mark comes last."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            return self._mark(name).read_text("utf-8") == _told_by(manifest)
        return False

    def _newest(self, name: str) -> StoredObject | None:
        """The manifest of the newest version of a table."""
        versions = self._place / f"{name}.lance" / "_versions"
        one = next(versions.first(), None)
        stem = "" if one is None else one.key.rpartition("/")[2].removesuffix(".manifest")
        return one if len(stem) == _NEWEST and stem.isdigit() else None

    def _copy(self, name: str, manifest: StoredObject, remote: Callable[[], Any]) -> bool:
        """Bring what a version of a table names; whether that fits into the limit."""
        table = self._place / f"{name}.lance"
        target = self._table(name)
        opened = remote()
        stem = manifest.key.rpartition("/")[2].removesuffix(".manifest")
        if opened.version != 2**64 - 1 - int(stem):
            return False  # somebody has written meanwhile; the next search copies
        files = {one.key: one for one in _named(table, opened)}
        if sum(one.size for one in files.values()) > self._most:
            return False
        files[manifest.key] = manifest
        paths = {key: target / key.removeprefix(f"{table.key}/") for key in files}
        fresh = [key for key in files if _size(paths[key]) != files[key].size]
        try:
            self._make_room(sum(files[key].size for key in fresh))
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                rest = [key for key in fresh if key != manifest.key]
                bring = partial(_bring, table)
                list(pool.map(bring, (files[k] for k in rest), (paths[k] for k in rest)))
            _bring(table, manifest, paths[manifest.key])
            self._mark(name).write_text(_told_by(manifest), "utf-8")
            os.utime(self.folder)
        except OSError as error:
            if error.errno not in (errno.ENOSPC, errno.EDQUOT, errno.EROFS) and not _local(error):
                raise
            return False  # no room for a copy
        self._drop(target, set(paths.values()))
        return True

    def _make_room(self, wanted: int) -> None:
        """Throw copies of other indexes away, the oldest first, until so many bytes fit."""
        self.folder.mkdir(parents=True, exist_ok=True)
        sizes = {}
        for folder in self.folder.parent.iterdir():
            with contextlib.suppress(FileNotFoundError):
                size = sum(_size(path) or 0 for path in folder.rglob("*") if path.is_file())
                sizes[folder] = (folder.stat().st_mtime, size)
        total = wanted + sum(size for _, size in sizes.values())
        for folder, (_, size) in sorted(sizes.items(), key=lambda item: item[1]):
            if total > self._most and folder != self.folder:
                shutil.rmtree(folder, ignore_errors=True)
                total -= size

    def _drop(self, target: Path, named: set[Path]) -> None:
        """Throw away what no version names any more, but for what somebody may be reading."""
        for path in target.rglob("*"):
            with contextlib.suppress(OSError):
                stale = "_versions" in path.parts or time.time() - path.stat().st_mtime > _ABANDONED
                if path not in named and path.is_file() and stale:
                    path.unlink()

    def _table(self, name: str) -> Path:
        return self.folder / f"{name}.lance"

    def _mark(self, name: str) -> Path:
        """File that says of which version the copy of a table is."""
        return self.folder / f"{name}.version"


def _told_by(manifest: StoredObject) -> str:
    """What tells a version of a table from all others, those of other indexes included."""
    return f"{manifest.key} {manifest.etag}"


def _named(table: ObjectPath, opened: Any) -> Iterator[StoredObject]:
    """The files that a version of a table names, but for its manifest."""
    there = {one.key: one for one in table.below()}

    def find(inside: str) -> StoredObject:
        try:
            return there[f"{table.key}/{inside}"]
        except KeyError:
            raise OSError(f"not found: {inside}") from None  # as Lance says it: it is tried again

    for fragment in opened.get_fragments():
        for part in fragment.data_files():
            yield find(f"data/{part.path}")
        if deleted := fragment.deletion_file():
            yield find(deleted)
    for index in opened.describe_indices():
        for segment in index.segments:
            below = f"{table.key}/_indices/{segment.uuid}/"
            yield from (one for key, one in there.items() if key.startswith(below))


def _bring(table: ObjectPath, stored: StoredObject, path: Path) -> None:
    """Copy an object into a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    unfinished = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    source = table.of_key(stored.key)
    try:
        with unfinished.open("wb") as file:
            for first in range(0, stored.size, _PART):
                file.write(source.read_range(first, min(_PART, stored.size - first)))
        unfinished.replace(path)
    finally:
        unfinished.unlink(missing_ok=True)


def _local(error: OSError) -> bool:
    """Whether an error is of this machine's disk, and not of the storage."""
    return isinstance(error.filename, str | bytes) and "://" not in os.fsdecode(error.filename)


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None
