"""An index in S3 storage: its tables as the objects that they are, and local copies of them.

Lance has its own way to the storage. What it cannot say or do is here: whether tables are there at
all, how large they are, how they are deleted, and copies that searches read. A storage that cannot
be asked is an `OSError`.
"""

import contextlib
import errno
import hashlib
import os
import shutil
import time
import urllib.parse
import uuid
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.paths import cache_dir
from sureshot.s3 import SCHEME, ObjectPath, StoredObject, object_path
from sureshot.store.checksums import FILE, Checksums

LIMIT = "SURESHOT_INDEX_CACHE"  # megabytes of all copies together, in the environment
_USUAL_LIMIT = 4096
_MEGABYTE = 1_000_000
_FRESH = 1.0  # seconds during which the storage is not asked again for the newest version
_ABANDONED = 3600.0  # seconds; files that the newest version lacks may be read until then
_FILES_AT_ONCE = 8
_PART = 1 << 24  # bytes of a file that are asked for at once
_VERSIONS = {"_versions", "_transactions"}  # of which a copy has the newest alone, or none
_DIGITS = 20  # by which Lance names manifests so that the newest comes first


def is_remote(location: str) -> bool:
    """Whether a place is no folder.

    Examples:
        >>> is_remote("s3://films/index"), is_remote("/home/ann/index")
        (True, False)
    """
    return "://" in location


def table_address(location: str, name: str) -> str:
    """Address of a table for Lance, which takes one in S3 storage with percent signs."""
    if not location.startswith(SCHEME):
        return f"{location}/{name}.lance"
    return SCHEME + urllib.parse.quote(f"{location.removeprefix(SCHEME)}/{name}.lance")


def table_is_there(location: str, name: str) -> bool:
    """Whether a table in S3 storage has a version."""
    return any((_table(location, name) / "_versions").below(limit=1))


def parts_of_table(location: str, name: str) -> set[str]:
    """Names of what is directly below a table in S3 storage; empty if there is nothing."""
    return {path.name for path in _table(location, name).entries()}


def delete_tables(location: str, names: tuple[str, ...]) -> None:
    """Delete tables in this order, their versions first: ended midway, they are there or gone."""
    for name in names:
        table = _table(location, name)
        keys = [stored.key for stored in table.below()]
        manifests = [key for key in keys if key.startswith(f"{table.key}/_versions/")]
        table.delete(manifests)
        table.delete(sorted(set(keys).difference(manifests)))


def _table(location: str, name: str) -> ObjectPath:
    return ObjectPath(location) / f"{name}.lance"


def limit() -> int:
    """Bytes that all copies may have together; 0 keeps none."""
    text = os.environ.get(LIMIT, str(_USUAL_LIMIT))
    if not text.isascii() or not text.isdigit():
        raise SureshotError(f"{LIMIT} is {text!r}; write it as megabytes, such as {_USUAL_LIMIT}.")
    return int(text) * _MEGABYTE


def mirror_of(location: str) -> "Mirror | None":
    """The copy of the index at a place; None where it is to be read from there."""
    place, max_bytes = object_path(location), limit()
    with contextlib.suppress(SureshotError):  # no home folder, no cache
        return Mirror(place, max_bytes) if place and max_bytes else None
    return None


class Mirror:
    """The local copy of one index."""

    def __init__(self, place: ObjectPath, max_bytes: int) -> None:
        self._place = place
        self._max_bytes = max_bytes
        endpoint = os.environ.get("AWS_ENDPOINT_URL_S3") or os.environ.get("AWS_ENDPOINT_URL", "")
        name = hashlib.sha256(f"{endpoint} {place}".encode()).hexdigest()[:32]
        self._folder = cache_dir() / "indexes" / name
        self._known: dict[str, tuple[str, float, bool]] = {}  # version, when asked, if copied
        self._renewed: dict[str, str] = {}  # tables brought again, and their versions then

    def table(self, name: str) -> Path | None:
        """The copy of a table at its newest version; None where the storage is to be read."""
        version, asked, copied = self._known.get(name, ("", 0.0, False))
        if not version or time.monotonic() - asked > _FRESH:
            newest = self._newest(name)
            if newest is None:
                return None
            if _version(newest) != version:
                copied = self._has(name, newest) or self._copy(name, newest)
            self._known[name] = _version(newest), time.monotonic(), copied
        return self._copy_of(name) if copied else None

    def forget(self, name: str) -> None:
        """Compare a table with the storage before it is opened next: a file may be missing."""
        self._known.pop(name, None)
        self._mark(name).unlink(missing_ok=True)

    def renew(self, name: str) -> bool:
        """Throw a damaged copy of a table away; False if none, or renewed at this version."""
        version, _, copied = self._known.get(name, ("", 0.0, False))
        if not copied or self._renewed.get(name) == version:
            return False
        self._renewed[name] = version
        self.forget(name)
        shutil.rmtree(self._copy_of(name), ignore_errors=True)
        return True

    def _has(self, name: str, manifest: StoredObject) -> bool:
        """Whether an earlier program has brought a version; its mark is written last."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            if self._mark(name).read_text("utf-8") == _version(manifest):
                damaged = Checksums(self._copy_of(name)).damaged()
                for inside in damaged:
                    (self._copy_of(name) / inside).unlink()
                return not damaged
        return False

    def _newest(self, name: str) -> StoredObject | None:
        """The manifest of the newest version of a table."""
        for first in (self._place / f"{name}.lance" / "_versions").below(limit=1):
            stem = first.key.rpartition("/")[2].removesuffix(".manifest")
            return first if len(stem) == _DIGITS and stem.isdigit() else None
        return None

    def _copy(self, name: str, manifest: StoredObject) -> bool:
        """Bring a version of a table; whether that fits into the limit."""
        table, target = self._place / f"{name}.lance", self._copy_of(name)
        named = ((stored.key.removeprefix(f"{table.key}/"), stored) for stored in table.below())
        files = {target / name: one for name, one in named if not _VERSIONS & {*name.split("/")}}
        if sum(stored.size for stored in files.values()) > self._max_bytes:
            return False
        fresh = {path: stored for path, stored in files.items() if _size(path) != stored.size}
        last = target / manifest.key.removeprefix(f"{table.key}/")
        try:
            self._make_room(sum(stored.size for stored in fresh.values()) + manifest.size)
            with ThreadPoolExecutor(_FILES_AT_ONCE) as pool:
                list(pool.map(partial(_bring, table), fresh.values(), fresh))
            _bring(table, manifest, last)
            brought = (str(path.relative_to(target)) for path in (*fresh, last))
            Checksums(target).add(brought)
            self._mark(name).write_text(_version(manifest), "utf-8")
            os.utime(self._folder)
        except OSError as error:
            # No room for a copy, or another process has just compacted.
            known = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.ENOENT)
            if error.errno not in known and not _local(error):
                raise
            return False
        self._drop_old(target, {*files, last, target / FILE})
        with contextlib.suppress(OSError):  # longer than need be, it is still right
            Checksums(target).forget(())
        return True

    def _make_room(self, needed: int) -> None:
        """Throw copies of other indexes away, the oldest first, until so many bytes fit."""
        self._folder.mkdir(0o700, parents=True, exist_ok=True)
        sizes = {}
        for folder in self._folder.parent.iterdir():
            with contextlib.suppress(FileNotFoundError):
                size = sum(_size(path) or 0 for path in folder.rglob("*") if path.is_file())
                sizes[folder] = (folder.stat().st_mtime, size)
        total = needed + sum(size for _, size in sizes.values())
        for folder, (_, size) in sorted(sizes.items(), key=lambda item: item[1]):
            if total > self._max_bytes and folder != self._folder:
                shutil.rmtree(folder, ignore_errors=True)
                total -= size

    def _drop_old(self, target: Path, named: set[Path]) -> None:
        """Throw away files of older versions that are no longer read."""
        for path in {*target.rglob("*")} - named:
            with contextlib.suppress(OSError):
                stale = "_versions" in path.parts or time.time() - path.stat().st_mtime > _ABANDONED
                if stale and path.is_file():
                    path.unlink()

    def _copy_of(self, name: str) -> Path:
        return self._folder / f"{name}.lance"

    def _mark(self, name: str) -> Path:
        """File with the version of the copy of a table."""
        return self._folder / f"{name}.version"


def _version(manifest: StoredObject) -> str:
    """What tells a version of a table from all others, those of other indexes included."""
    return f"{manifest.key} {manifest.etag}"


def _bring(table: ObjectPath, stored: StoredObject, path: Path) -> None:
    """Copy an object into a file that is there whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.{uuid.uuid4().hex}")
    source = table.of_key(stored.key)
    try:
        with fresh.open("wb") as file:
            for first in range(0, stored.size, _PART):
                file.write(source.read_range(first, min(_PART, stored.size - first))[0])
        fresh.replace(path)
    finally:
        fresh.unlink(missing_ok=True)


def _local(error: OSError) -> bool:
    """Whether an error is of this machine's disk, and not of the storage."""
    return isinstance(error.filename, str | bytes) and "://" not in os.fsdecode(error.filename)


def _size(path: Path) -> int | None:
    with contextlib.suppress(OSError):
        return path.stat().st_size
    return None
