"""The two Lance tables of an index, ``videos`` and ``windows``: made, opened, deleted.

Why Lance, through its own library and not through LanceDB: appends commit atomically, so a killed
process leaves whole videos only; several writers merge; the same code reads local disk and object
storage; vectors get an approximate index without another copy. LanceDB reads these folders too, but
importing it takes 2.0 s where ``lance`` takes 0.3 s, and a search should not.
"""

import contextlib
import os
import shutil
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import pyarrow as pa

from sureshot.errors import StoreError, option
from sureshot.store.header import Header, ours
from sureshot.store.rows import video_schema, window_schema
from sureshot.trust.card import FILE as CARD

# Lance warns on stderr about its own retries, which are harmless here. Read when it is imported.
os.environ.setdefault("LANCE_LOG", "error")
import lance

Name = Literal["videos", "windows"]
Result = TypeVar("Result")

# `windows` is made first and carries the header; with `videos` the index is complete.
_NAMES: tuple[Name, Name] = ("windows", "videos")
_ATTEMPTS = 20
_CONFLICTS = 20  # times that a commit is tried again after somebody else's
_NEW = ".new-"  # in the name of a table that is not finished
_LANCE_FOLDERS = frozenset(
    ("data", "_versions", "_transactions", "_deletions", "_indices", "_refs")
)


class Tables:
    """The tables of the index at a place.

    Attributes:
        location: absolute folder or object-storage URI, see `sureshot.places.locate`.
    """

    def __init__(self, location: str) -> None:
        self.location = location
        self._session = lance.Session()  # keeps what searches read again and again

    def use(self, name: Name, act: Callable[[Any], Result]) -> Result:
        """What ``act`` makes of a table at its newest version; it must bear being repeated.

        Another process that compacts deletes the files of older versions, also of one that was the
        newest when it was opened here. Then the next one is tried.
        """
        seen = []
        for _ in range(_ATTEMPTS):
            version = None
            try:
                with _plain_errors():
                    table = self._open(name)
                    version = table.version
                    return act(table)
            except (OSError, ValueError) as error:
                # A file missing from one version twice is missing for good.
                if not _vanished(error) or version in seen:
                    raise
                seen.append(version)
        raise OSError("other processes rewrite it faster than it can be read")

    def upsert(self, name: Name, rows: pa.Table) -> None:
        """Rows in, in one commit; those with the key of an old one take its place."""

        def act(table: Any) -> None:
            upsert = table.merge_insert(rows.column_names[0])
            upsert.when_matched_update_all().when_not_matched_insert_all()
            upsert.conflict_retries(_CONFLICTS).execute(rows)

        self.use(name, act)

    def drop(self, name: Name, condition: str) -> None:
        """Rows out that meet an SQL condition, in one commit."""
        self.use(name, lambda table: table.delete(condition, conflict_retries=_CONFLICTS))

    def exists(self) -> bool:
        """Whether an index lies here, sound, damaged or half made.

        Raises:
            StoreError: the place cannot be looked at.
        """
        with guard(self.location, "look at"):
            if not self._remote:
                return any(_there(self._folder(name)) for name in _NAMES)
            try:
                self._open("windows")
            except (OSError, ValueError) as error:
                if _vanished(error):
                    return False
                raise
            return True

    def create(self, header: Header) -> None:
        """Make those tables that are missing, empty. Of several processes at it one wins."""
        with guard(self.location, "create"):
            for name in _NAMES:
                schema = video_schema(header) if name == "videos" else window_schema(header)
                if self._remote:
                    self._create_remote(name, schema)
                elif not _there(self._folder(name)):
                    self._create_local(name, schema)

    def header(self) -> Header:
        """What the index says of itself; completes one whose making was interrupted.

        Raises:
            StoreError: it is damaged, not ours, or a newer Sureshot wrote it.
        """
        with guard(self.location, "open"):
            metadata = self.use("windows", lambda table: table.schema.metadata)
            header = Header.from_metadata(metadata, self.location)
            if not self._remote and not _there(self._folder("videos")):
                self.create(header)
        return header

    def delete(self) -> None:
        """Delete the index with its calibration card, and nothing else that lies in its folder.

        Raises:
            StoreError: it is in object storage, something in its place is not an index, or its
                files cannot be deleted.
        """
        if self._remote:
            raise StoreError(
                f"{self.location} is object storage; delete it with the tools of that storage."
            )
        folder = Path(self.location)
        with guard(self.location, "delete"):
            there = [self._folder(name) for name in _NAMES if _there(self._folder(name))]
            for table in there:
                self._check_ours(table)
            unfinished = [p for name in _NAMES for p in folder.glob(f"{name}.lance{_NEW}*")]
            for table in there + unfinished:
                shutil.rmtree(table)
            if there:
                (folder / CARD).unlink(missing_ok=True)
            if folder.is_dir() and not folder.is_symlink() and not any(folder.iterdir()):
                folder.rmdir()

    def bytes_on_disk(self) -> int:
        """Size of a local index; 0 for one in object storage."""
        total = 0
        for name in _NAMES:
            for file in () if self._remote else self._folder(name).rglob("*"):
                with contextlib.suppress(FileNotFoundError):  # another process compacts
                    total += file.stat().st_size if file.is_file() else 0
        return total

    @property
    def _remote(self) -> bool:
        return "://" in self.location

    def _folder(self, name: Name) -> Path:
        return Path(self.location) / f"{name}.lance"

    def _open(self, name: Name) -> Any:
        if not self._remote and _there(self._folder(name)) and not self._folder(name).is_dir():
            # Lance would try again and again, for seconds.
            raise NotADirectoryError(f"{self._folder(name)} is not a directory")
        return lance.dataset(f"{self.location}/{name}.lance", session=self._session)

    def _create_remote(self, name: Name, schema: pa.Schema) -> None:
        try:
            lance.write_dataset(
                schema.empty_table(), f"{self.location}/{name}.lance", mode="create"
            )
        except OSError as error:
            if "already exists" not in str(error):
                raise

    def _create_local(self, name: Name, schema: pa.Schema) -> None:
        # Not at its place at once: of two processes in Lance's "create" mode the second may empty
        # what the first has made and filled meanwhile. A rename onto a full folder fails.
        Path(self.location).mkdir(parents=True, exist_ok=True)
        unfinished = f"{self._folder(name)}{_NEW}{uuid.uuid4().hex}"
        try:
            lance.write_dataset(schema.empty_table(), unfinished, mode="create")
            Path(unfinished).rename(self._folder(name))
        except OSError:
            shutil.rmtree(unfinished, ignore_errors=True)
            if not self._folder(name).is_dir():
                raise

    def _check_ours(self, folder: Path) -> None:
        """Refuse to delete what is not a table of ours; a damaged one of ours is accepted."""
        mine = folder.is_dir() and not folder.is_symlink()
        try:
            with _plain_errors():
                mine = mine and ours(lance.dataset(str(folder)).schema.metadata)
        except (OSError, ValueError):
            mine = {p.name for p in folder.iterdir()} <= _LANCE_FOLDERS
        if not mine:
            raise StoreError(
                f"{folder} is not part of an index of Sureshot, so nothing was deleted. Move it "
                f"away, or choose another place with {option('db')}."
            )


@contextlib.contextmanager
def _plain_errors() -> Iterator[None]:
    """Lance's errors as what they are: it wraps a Ctrl-C, and panics at some kinds of damage."""
    try:
        yield
    except BaseException as error:
        if "KeyboardInterrupt" in str(error):
            raise KeyboardInterrupt from None
        if (
            type(error).__name__ == "PanicException"
        ):  # no `Exception`, and of a class without a name
            raise ValueError(str(error)) from None
        raise


def _there(path: Path) -> bool:
    """Whether something is at a path; unlike `exists`, loud where one may not look."""
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


@contextlib.contextmanager
def guard(location: str, doing: str) -> Iterator[None]:
    """Turn what Lance and the disk say into one sentence with the fix in it."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, pa.ArrowException) as error:
        reason = _first_line(error)
        raise StoreError(
            f"Cannot {doing} the index at {location}: {reason}. {_fix(error, location)}"
        ) from None


def _fix(error: Exception, location: str) -> str:
    text = str(error).lower()

    def says(*parts: str) -> bool:
        return any(part in text for part in parts)

    if says("no space left", "os error 28", "quota", "file too large"):
        return "The disk is full: free some space and run the same command again."
    if says("permission denied", "read-only", "not permitted"):
        return f"Choose a place you may write to with {option('db')}."
    if says("not a directory", "file exists", "is not utf-8", "file name too long"):
        return f"Choose another place with {option('db')}."
    if says("conflict", "concurrent", "other processes"):
        return "Nothing that was indexed before is lost; run the same command again."
    if "://" in location:
        return "Check the address and your access to it."
    return "It may be damaged. `sureshot reset` removes it; then index your folder again."


def _vanished(error: Exception) -> bool:
    return "not found" in str(error).lower()


def _first_line(error: Exception) -> str:
    """Lance's messages go on with the place in its source; the first sentence is enough."""
    return str(error).split("\n")[0].split(", /")[0].strip().rstrip(".")[:300] or repr(error)
