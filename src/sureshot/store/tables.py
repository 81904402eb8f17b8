"""The Lance tables of an index: made, opened, written, deleted.

``windows`` and ``videos`` are in every index, ``lines`` from the first words on that were read.

Why Lance, through its own library and not through LanceDB: appends commit atomically, so a killed
process leaves whole videos only; several writers merge; the same code reads local disk and object
storage; vectors get an approximate index without another copy. LanceDB reads these folders too, but
importing it takes 2.0 s where ``lance`` takes 0.3 s, and a search should not.
"""

import contextlib
import errno
import math
import os
import re
import shutil
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal, TypeVar

import lance
import pyarrow as pa
from lance.commit import CommitConflictError

from sureshot.errors import StoreError, option
from sureshot.files import sync_path
from sureshot.paths import make_index_folder
from sureshot.s3 import SCHEME, ObjectPath, lance_options, reason_in
from sureshot.store import remote
from sureshot.store.checksums import FILE, Checksums, deadly
from sureshot.store.rows import Header, is_ours, line_schema, video_schema, window_schema

Name = Literal["videos", "windows", "lines"]
Result = TypeVar("Result")

# `windows` is made first and carries the header; with `videos` the index is complete.
NAMES: tuple[Name, Name] = ("windows", "videos")
EVERY: tuple[Name, ...] = ("windows", "lines", "videos")
INDEXES = {"windows": "vectors", "lines": "words", "videos": "videos"}
SCHEMAS = {"windows": window_schema, "lines": line_schema, "videos": video_schema}
CONFLICTS = 20  # times that a commit is tried again after somebody else's
NEW = ".new-"  # in the name of a table that is not finished
ASIDE = ".broken-"  # in the name of a manifest that was moved out of its table
FAILURES = (OSError, ValueError, RuntimeError, pa.ArrowException)  # of Lance and of the disk
_ATTEMPTS = 20
# Versions of `windows` that a loss of power may cost. Rows of `videos` are made again from the
# windows, so of those any number may be lost.
_LOST_AT_ONCE = 4
_METADATA = 8 << 20  # bytes kept of manifests; by itself Lance keeps those of thousands of versions
_LOOK_AGAIN = 10.0  # seconds
_SYNCED_AT_ONCE = 8  # files; the disk writes them together in the time of one or two
_LAST = 2**64 - 1  # Lance names the manifest of a version by what remains up to this
_HINT = "latest_version_hint.json"  # rewritten with every version, and not needed
_END = b"LANC"  # the last bytes of every file of rows and of vectors
_LANCE_FOLDERS = frozenset(
    ("data", "_versions", "_transactions", "_deletions", "_indices", "_refs", FILE)
)


class _DamagedCopyError(OSError):
    """A local copy was damaged, and is thrown away."""


class Tables:
    """The tables of the index at a place, see `sureshot.paths.locate`."""

    def __init__(self, location: str, *, cached: bool = False) -> None:
        self.location = location
        self._remote = remote.is_remote(location)
        self._in_s3 = location.startswith(SCHEME)
        self._session = _session()  # keeps what searches read again and again
        self._mirror = remote.mirror_of(location) if cached else None
        self._trusted: set[Name] = set()  # tables whose newest version was seen to be whole
        # The version in place of a broken newest one, and how many rows it lacks, in words.
        self._fallen: dict[Name, tuple[int, str]] = {}
        self._damaged: dict[Name, set[int]] = {}  # parts of which a file is not what was written
        self._deadly: dict[Name, set[int]] = {}  # those of them at which a reader would end
        self._thorough = False  # whether the next check reads every file
        self.unindexed: set[Name] = set()  # tables with a damaged index of vectors or words
        self._durable = Durable([] if self._remote else [self._folder(name) for name in EVERY])
        self._sums = {name: Checksums(self._folder(name)) for name in EVERY}
        self._looked = -math.inf  # when a storage was asked for lines last, by `time.monotonic`

    def stamp(self) -> tuple[int, ...]:
        """Another one where another index may be in its place; empty in object storage.

        A number of a file may come again as soon as its file is gone, so the time counts as well.
        """
        try:
            status = self._folder("videos").stat()
        except OSError:
            return ()
        return status.st_dev, status.st_ino, status.st_mtime_ns

    def use(
        self, name: Name, act: Callable[[Any], Result], *, copy: bool = True, deadly: bool = False
    ) -> Result:
        """What ``act`` makes of a table at its newest version; it must bear being repeated.

        Another process that compacts deletes the files of older versions, also of one that was the
        newest when it was opened here. Then the next one is tried.

        Args:
            copy: whether a local copy will do.
            deadly: whether a table is used though reading all of it would end this process.
        """
        seen = []
        for _ in range(_ATTEMPTS):
            version = folder = None
            try:
                with plain_errors():
                    if copy and self._mirror is not None:
                        folder = self._mirror.table(name)
                    table = self._open(name) if folder is None else self._open_at(str(folder))
                    version = table.version
                    if not deadly and self._deadly.get(name):
                        raise ValueError(f"a file of {name} is not what was written")
                    return act(table)
            except _DamagedCopyError:
                continue
            except (OSError, ValueError) as error:
                if folder is not None and not _vanished(error) and self._renew_copy(name):
                    continue
                if self._mirror is not None:
                    self._mirror.forget(name)
                # A file missing from one version twice is missing for good.
                if not _vanished(error) or version in seen:
                    raise
                seen.append(version)
        raise OSError("other processes rewrite it faster than it can be read")

    def read(self, name: Name, act: Callable[[Any], Result], *, deadly: bool = False) -> Result:
        """What `use` gives; `StoreError` where the table cannot be read."""
        with as_store_error(self.location, "read"):
            return self.use(name, act, deadly=deadly)

    def rows(self, name: Name, columns: Sequence[str], condition: str | None = None) -> pa.Table:
        """Columns of the rows that meet an SQL condition; what Lance says comes out as it is."""
        return self.use(name, lambda t: t.to_table(columns=[*columns], filter=condition))

    @property
    def names(self) -> tuple[Name, ...]:
        """The tables that are there, those of an index without words or with them."""
        return EVERY if self.has_lines() else NAMES

    def has_lines(self) -> bool:
        """Whether there is a table of lines; a storage is asked once in ten seconds."""
        if not self._remote:
            return self._has("lines")
        if self._looked < math.inf and time.monotonic() - self._looked > _LOOK_AGAIN:
            there = self._in_s3 and self._has("lines")
            self._looked = math.inf if there else time.monotonic()
        return self._looked == math.inf

    def create_lines(self, header: Header) -> None:
        """Make the table of lines, empty, if it is missing."""
        if not self.has_lines():
            self._create("lines", header)
            self._looked = math.inf if self._remote else self._looked

    def count(self, name: Name, condition: str | None = None) -> int:
        """Number of rows that meet an SQL condition."""
        return self.use(name, lambda table: int(table.count_rows(condition)))

    def doubt(self, name: Name) -> None:
        """Begin `use` again with a new copy where rows of a local copy are damaged.

        Does nothing where they were read from the index itself, or from a new copy already.
        """
        if self._renew_copy(name):
            raise _DamagedCopyError

    def _renew_copy(self, name: Name) -> bool:
        renewed = self._mirror is not None and self._mirror.renew(name)
        if renewed:
            self._session = _session()  # it may remember what was wrong
        return renewed

    def change(self, name: Name, act: Callable[[Any], Result], *, deadly: bool = False) -> Result:
        """What ``act`` makes of a table that it writes to; a broken newest version is refused."""

        def writing(table: Any) -> Result:
            if name in self._fallen:
                raise StoreError(f"{self.trouble()[0]} Until then nothing else can be changed.")
            return act(table)

        done = self.use(name, writing, copy=False, deadly=deadly)
        if not self._remote:
            with contextlib.suppress(*FAILURES):  # without checksums less damage is seen
                self._take_checksums(name)
        return done

    def _take_checksums(self, name: Name) -> None:
        """Keep those of the files that the newest version names, and of its manifest."""
        folder = self._folder(name)
        number, path = max(_manifests(folder).items())
        opened = self._open_at(str(folder), number)
        sums, files = self._sums[name], {file for _, file, _ in _files_of_rows(opened)}
        sums.add({*files, *_index_files(folder, opened)} - sums.known().keys())
        sums.add([f"_versions/{path.name}"], rows=opened.count_rows())

    def commit(self, name: Name, act: Callable[[Any], None], *, deadly: bool = False) -> None:
        """Do `change` again after commits of others that came between."""
        for _ in range(CONFLICTS - 1):
            with contextlib.suppress(CommitConflictError):
                return self.change(name, act, deadly=deadly)
        return self.change(name, act, deadly=deadly)

    def upsert(self, name: Name, rows: pa.Table) -> None:
        """Rows in, in one commit; those with the key of an old one take its place."""

        def act(table: Any) -> None:
            upsert = table.merge_insert(rows.column_names[0])
            upsert.when_matched_update_all().when_not_matched_insert_all()
            if self._remote:
                upsert.conflict_retries(CONFLICTS).execute(rows)
                return
            made, _ = upsert.execute_uncommitted(rows)
            check_rows(self.location, name, made.operation.new_fragments)
            lance.LanceDataset.commit(table, made, read_version=table.version)

        self.commit(name, act)

    def drop(self, name: Name, condition: str) -> None:
        """Rows out that meet an SQL condition, in one commit."""
        self.change(name, lambda table: table.delete(condition, conflict_retries=CONFLICTS))

    def sync(self) -> None:
        """Wait until all that was written to a local index is on the disk."""
        self._durable.sync()

    def exists(self) -> bool:
        """Whether there is an index here, sound, damaged or half made."""
        with as_store_error(self.location, "look at"):
            if self._in_s3 or not self._remote:
                return any(map(self._has, NAMES))
            try:
                self._open("windows")
            except (OSError, ValueError) as error:
                if _vanished(error):
                    return False
                raise
            return True

    def create(self, header: Header) -> None:
        """Make those tables that are missing, empty. Of several processes at it one wins."""
        header = replace(header, index_id=header.index_id or uuid.uuid4().hex)
        with as_store_error(self.location, "create"):
            for name in NAMES:
                self._create(name, header)

    def _create(self, name: Name, header: Header) -> None:
        rows = SCHEMAS[name](header).empty_table()
        if not self._remote:
            if not is_there(self._folder(name)):
                self._create_local(name, rows)
            return
        place, options = remote.table_address(self.location, name), lance_options(self.location)
        try:
            lance.write_dataset(rows, place, mode="create", storage_options=options or None)
        except OSError as error:
            if "already exists" not in str(error):
                raise

    def _create_local(self, name: Name, rows: pa.Table) -> None:
        # Not at its place at once: of two processes in Lance's "create" mode the second may empty
        # what the first has made and filled meanwhile. A rename onto a full folder fails.
        folder = Path(self.location)
        make_index_folder(folder)
        fresh = Path(f"{self._folder(name)}{NEW}{uuid.uuid4().hex}")
        try:
            lance.write_dataset(rows, str(fresh), mode="create")
            names = [f"_versions/{path.name}" for path in _manifests(fresh).values()]
            Checksums(fresh).add(names, rows=0)
            Durable([fresh]).sync()
            fresh.rename(self._folder(name))
        except OSError:
            shutil.rmtree(fresh, ignore_errors=True)
            if not self._folder(name).is_dir():
                raise
        sync_paths([folder, folder.parent])

    def header(self) -> Header:
        """What the index says of itself."""
        with as_store_error(self.location, "open"):
            metadata = self.use("windows", lambda table: table.schema.metadata, deadly=True)
            return Header.from_metadata(metadata, self.location)

    def check_is(self, header: Header) -> None:
        """Refuse to go on where another process has deleted the index that had this header."""
        if self.half_made() or self.header().index_id != header.index_id:
            raise StoreError(_removed(self.location, "read"))

    def half_made(self) -> bool:
        """Whether the making of an index, or its deletion, was interrupted."""
        if self._remote and not self._in_s3:
            return False
        with as_store_error(self.location, "look at"):
            return self._has("windows") and not self._has("videos")

    def _has(self, name: Name) -> bool:
        """Whether there is a table in a folder or in S3 storage."""
        if self._in_s3:
            return remote.table_is_there(self.location, name)
        return is_there(self._folder(name))

    def trouble(self) -> list[str]:
        """A sentence for each table of which an older version has to do, with the fix."""
        said = [
            f"The newest version of the table of {name} at {self.location} is damaged, as by a "
            f"loss of power; the version before it is used{lacks}. "
            f"`sureshot index FOLDER` encodes again what is missing."
            for name, (_, lacks) in self._fallen.items()
        ]
        said += [
            f"A file of the table of {name} at {self.location} is damaged. `sureshot index FOLDER` "
            f"keeps what is sound in it and encodes the rest again."
            for name in EVERY
            if self._damaged.get(name)
        ]
        said += [
            f"The index of {INDEXES[name]} at {self.location} is damaged, so searches compare all "
            f"{name}. `sureshot index FOLDER` makes it again."
            for name in sorted(self.unindexed)
        ]
        return said

    def move_broken_aside(self) -> list[Name]:
        """Go on from the older version of tables whose newest one is broken; these tables."""
        for name in self.names:
            self.check_again(name)
            self.use(name, lambda table: table.version, deadly=True)
        fallen = list(self._fallen)
        for name in fallen:
            names = move_aside(self._folder(name), above=self._fallen.pop(name)[0])
            self._sums[name].forget(names)
        if fallen:
            self._session = _session()  # it may remember what is no more
        return fallen

    def check_again(self, name: Name, *, thorough: bool = False) -> None:
        """Hold the files of a local table against their checksums when it is used next."""
        self._trusted.discard(name)
        self._thorough = thorough

    def damaged(self, name: Name) -> tuple[set[int], set[int]]:
        """Parts of a table with a damaged file, and those of them that end who reads them."""
        return self._damaged.get(name, set()), self._deadly.get(name, set())

    def forget_checksums(self, name: Name) -> None:
        """Drop the checksums of files of a local table that are gone."""
        if not self._remote:
            self._sums[name].forget(())

    def before_is_whole(self, name: Name) -> bool:
        """Whether the version before the newest of a local table, if any, can be opened."""
        before = [] if self._remote else versions(self._folder(name))[1:2]
        with contextlib.suppress(OSError, ValueError):
            return all(self._version(name, number)[1] for number in before)
        return False

    def bytes_on_disk(self) -> int:
        """Size of an index; 0 where that cannot be asked."""
        if self._in_s3:
            with as_store_error(self.location, "look at"):
                return sum(stored.size for stored in ObjectPath(self.location).below())
        return sum(
            _size(Path(folder, file)) or 0  # another process may compact
            for name in (() if self._remote else EVERY)
            for folder, _, files in os.walk(self._folder(name))
            for file in files
        )

    def is_ours(self, name: Name) -> bool:
        """Whether what is in the place of a table is ours, sound or damaged, or nothing."""
        if self._in_s3:
            below = remote.parts_of_table(self.location, name)
        else:
            folder = self._folder(name)
            if not is_there(folder):
                return True
            if not folder.is_dir() or folder.is_symlink():
                return False
            below = {path.name for path in folder.iterdir()}
        with contextlib.suppress(OSError, ValueError), plain_errors():
            if below and not _is_blank(opened := self._open(name)):
                return is_ours(opened.schema.metadata)
        return below <= _LANCE_FOLDERS

    def _open(self, name: Name) -> Any:
        folder = self._folder(name)
        if not self._remote and is_there(folder) and not folder.is_dir():
            # Lance would try again and again, for seconds.
            raise NotADirectoryError(f"{folder} is not a directory")
        if self._remote or name in self._trusted or not is_there(folder / "_versions"):
            return self._open_at(remote.table_address(self.location, name))
        return self._open_whole(name)

    def _open_whole(self, name: Name) -> Any:
        """The newest version of a local table that is what was committed.

        Where there is none, the newest one, so that what can be read of it is.
        """
        folder = self._folder(name)
        self._fallen.pop(name, None)
        newest: Any = None
        broken: Exception | None = None
        # Asked before the folder, to which others add meanwhile.
        last = max(self._sums[name].known(), key=_number, default="")
        numbers = versions(folder)
        for _ in range(_ATTEMPTS if numbers else 0):
            try:
                newest, whole = self._version(name, numbers[0])
                broken = None
            except (OSError, ValueError) as error:
                broken, whole = error, False
            if whole:
                self._check_files(name, newest)
                if _number(last) > numbers[0]:
                    self._fall_back(name, newest, last)
                else:
                    self._trusted.add(name)
                return newest
            before, numbers = numbers, versions(folder)
            # Others may have compacted meanwhile: then there is a newer version by now.
            if before[0] == numbers[0]:
                break
        for number in numbers[1 : _LOST_AT_ONCE + 1 if name == "windows" else None]:
            with contextlib.suppress(OSError, ValueError):
                older, whole = self._version(name, number)
                if whole:
                    newer = _manifests(folder)[numbers[0]]
                    self._fall_back(name, older, f"_versions/{newer.name}")
                    self._check_files(name, older)
                    return older
        if broken is not None:
            raise broken
        return self._open_at(str(folder)) if newest is None else newest

    def _fall_back(self, name: Name, opened: Any, newest: str) -> None:
        """Use a version in place of the newest, which has this manifest."""
        rows, lost = opened.count_rows(), self._sums[name].rows(newest)
        lacks = f", which has {rows:,} {name} where the newest had {lost:,}"
        self._fallen[name] = opened.version, lacks if 0 <= lost != rows else ""

    def _version(self, name: Name, number: int) -> tuple[Any, bool]:
        """A version of a local table, and whether it is what was committed."""
        folder = self._folder(name)
        if (path := _manifests(folder).get(number)) is None:
            raise FileNotFoundError(f"version {number} of {name} was not found")
        manifest = f"_versions/{path.name}"
        if self._sums[name].damaged([manifest]):
            raise ValueError(f"{manifest} of {name} is not what was written")
        with plain_errors():
            opened = self._open_at(str(folder), number)
            known = manifest in self._sums[name].known()
            return opened, is_whole(folder, opened) and (known or self._fits(name, opened))

    def _fits(self, name: Name, opened: Any) -> bool:
        """Whether a version, of whose manifest no checksum is known, is one of this table."""
        try:
            header = Header.from_metadata(opened.schema.metadata, self.location)
        except StoreError:
            return False
        return bool(opened.schema.equals(SCHEMAS[name](header)))

    def _check_files(self, name: Name, opened: Any) -> None:
        """Find the files of a version that are not what was written."""
        folder, sums, thorough = self._folder(name), self._sums[name], self._thorough
        parts = {file: number for number, file, _ in _files_of_rows(opened)}
        damaged = {parts[file] for file in sums.damaged(parts, thorough=thorough)}
        self._damaged[name] = damaged
        self._deadly[name] = deadly(folder, opened.version, damaged) if damaged else set()
        indexes = list(_index_files(folder, opened))
        whole = all(_size(folder / file) for file in indexes)
        self.unindexed.discard(name)
        if not whole or sums.damaged(indexes, thorough=thorough):
            self.unindexed.add(name)

    def _open_at(self, address: str, version: int | None = None) -> Any:
        options = lance_options(address) or None
        return lance.dataset(
            address, version=version, session=self._session, storage_options=options
        )

    def _folder(self, name: Name) -> Path:
        return Path(self.location) / f"{name}.lance"


def versions(table: Path) -> list[int]:
    """Numbers of the versions of a local table, newest first."""
    return sorted(_manifests(table), reverse=True)


def _manifests(table: Path) -> dict[int, Path]:
    """The manifest of each version."""
    paths = (table / "_versions").iterdir()
    return {number: path for path in paths if (number := _number(path.name))}


def _number(manifest: str) -> int:
    """The number of the version whose manifest has this name; 0 of other files."""
    stem = Path(manifest).stem
    if not manifest.endswith(".manifest") or not stem.isdigit():
        return 0
    return _LAST - int(stem) if len(stem) == len(str(_LAST)) else int(stem)


def is_whole(table: Path, opened: Any) -> bool:
    """Whether the files of rows that a version of a local table names are there in full length."""
    return not _is_blank(opened) and all(
        (there := _size(table / file)) and there == (size or there)
        for _, file, size in _files_of_rows(opened)
    )


def _files_of_rows(opened: Any) -> Iterator[tuple[int, str, int | None]]:
    """The part of a table that each file of a version is of, the file, and its size if known."""
    for fragment in opened.get_fragments():
        for part in fragment.data_files():
            yield fragment.fragment_id, f"data/{part.path}", part.file_size_bytes
        if deleted := fragment.deletion_file():
            yield fragment.fragment_id, deleted, None


def _index_files(table: Path, opened: Any) -> Iterator[str]:
    """Files of the indexes of a version."""
    if not (table / "_indices").is_dir():
        return
    for index in opened.describe_indices():
        for segment in index.segments:
            folder = table / "_indices" / str(segment.uuid)
            # A loss of power may leave the folder empty.
            kind = "metadata.lance" if "Inverted" in index.type_url else "index.idx"
            yield f"_indices/{segment.uuid}/{kind}"
            if folder.is_dir():
                yield from (f"_indices/{segment.uuid}/{file.name}" for file in folder.iterdir())


def state_of(opened: Any) -> tuple[Any, ...]:
    """What tells a version of a table from others, also from those of another index in its place.

    An index that was made again has the same numbers of versions.
    """
    return opened.version, *_files_of_rows(opened)


def _is_blank(opened: Any) -> bool:
    """Whether a manifest of zeros was opened, which Lance takes for a version 0 of nothing."""
    return bool(opened.version < 1)


def _size(path: Path) -> int | None:
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return None


def move_aside(table: Path, above: int) -> list[str]:
    """Move manifests newer than a version out of a table, next to it; their names before."""
    newer = {number: path for number, path in _manifests(table).items() if number > above}
    for number, path in newer.items():
        path.rename(table.parent / f"{table.name}{ASIDE}{number}")
    # It says which version is newest, and is made again with the next one.
    (table / "_versions" / _HINT).unlink(missing_ok=True)
    return [f"_versions/{path.name}" for path in newer.values()]


def check_rows(location: str, name: str, fragments: Iterable[Any]) -> None:
    """`check_written` for new files of rows; of a remote index its storage takes care."""
    if not remote.is_remote(location):
        data = Path(location) / f"{name}.lance" / "data"
        names = {file.path for fragment in fragments for file in fragment.files}
        check_written(data / name for name in sorted(names))


def check_written(paths: Iterable[Path]) -> None:
    """Delete new files that are cut short: a disk full at the last bytes is no error to Lance."""
    short = [path for path in paths if not _is_ended(path)]
    for path in short:
        path.unlink()
    if short:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(short[0]))


def _is_ended(path: Path) -> bool:
    with path.open("rb") as opened:
        opened.seek(-min(len(_END), path.stat().st_size), os.SEEK_END)
        return opened.read() == _END


class Durable:
    """The files of local tables, forced to the disk once each."""

    def __init__(self, tables: Sequence[Path]) -> None:
        self._tables = tables
        self._known: set[str] = set()

    def sync(self) -> None:
        """Wait until every file of the tables, and its name, is on the disk.

        Files that an earlier call waited for are left alone, as Lance never changes a file.
        """
        due, found = set[str](), set[str]()
        for table in self._tables:
            for folder, inside, names in os.walk(table):
                files = {f"{folder}/{name}" for name in names if name != _HINT}
                entries = files | {f"{folder}/{name}" for name in inside}
                due |= (files - self._known) | (set() if entries <= self._known else {folder})
                found |= entries
        sync_paths(due)
        self._known = found


def sync_paths(paths: Iterable[str | Path]) -> None:
    """Wait until files, and the names in folders, are on the disk; what is gone is left out."""
    with ThreadPoolExecutor(_SYNCED_AT_ONCE) as pool:
        list(pool.map(sync_path, paths))


@contextlib.contextmanager
def as_store_error(location: str, doing: str) -> Iterator[None]:
    """Turn what Lance and the disk say into one sentence with the fix in it."""
    try:
        yield
    except FAILURES as error:
        if doing != "create" and _vanished(error) and _is_removed(location, doing):
            raise StoreError(_removed(location, doing)) from None
        reason = reason_in(str(error)) if remote.is_remote(location) else None
        reason = reason or _first_line(error)
        raise StoreError(
            f"Cannot {doing} the index at {location}: {reason}. {_fix(error, location, doing)}"
        ) from None


def _is_removed(location: str, doing: str) -> bool:
    """Whether the tables of a local index are gone, or already being made again."""
    windows, videos = (is_there(Path(location) / f"{name}.lance") for name in NAMES)
    return not (remote.is_remote(location) or videos or (windows and doing == "open"))


def _removed(location: str, doing: str) -> str:
    return (
        f"Cannot {doing} the index at {location}: another process has deleted it. "
        f"`sureshot index FOLDER` makes a new one."
    )


def _fix(error: Exception, location: str, doing: str) -> str:
    text = str(error).replace(location, "").lower()  # a folder may be named like any reason

    def says(*parts: str) -> bool:
        return any(part in text for part in parts)

    if says("no space left", "os error 28", "quota", "file too large"):
        return "The disk is full: free some space and run the same command again."
    if says("permission denied", "read-only", "not permitted"):
        return f"Choose a place you may write to with {option('db')}."
    if says("conflict", "concurrent", "other processes"):
        return "Nothing that was indexed before is lost; run the same command again."
    # Of what is to be created, nothing is there that could be damaged.
    if doing == "create" or says("not a directory", "file exists", "file name too long"):
        return f"Choose another place with {option('db')}."
    lost = doing != "write" and re.search(r"not found: \S*\.lance\b", text)
    if remote.is_remote(location) and not lost:
        return "Check the address and your access to it, then run the same command again."
    return (
        "It may be damaged. `sureshot index FOLDER` encodes again what cannot be read; if that "
        "fails too, `sureshot reset` removes the index; then index your folders again."
    )


def _first_line(error: Exception) -> str:
    """Lance's messages go on with the place in its source; the first sentence is enough."""
    text = re.sub(r"^\[Errno \d+\] |: 's3://.*'$", "", str(error).split("\n")[0])
    return text.split(", /")[0].strip().rstrip(".")[:300] or repr(error)


@contextlib.contextmanager
def plain_errors() -> Iterator[None]:
    """Lance's errors as what they are: it wraps a Ctrl-C, and panics at some kinds of damage."""
    try:
        yield
    except BaseException as error:
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from None
        if type(error).__name__ == "PanicException":  # no `Exception`, and its class has no name
            raise ValueError(str(error)) from None
        raise


def is_there(path: Path) -> bool:
    """Whether something is at a path; unlike `exists`, loud where one may not look."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def _session() -> lance.Session:
    return lance.Session(metadata_cache_size_bytes=_METADATA)


def _vanished(error: Exception) -> bool:
    return isinstance(error, FileNotFoundError) or "not found" in str(error).lower()
