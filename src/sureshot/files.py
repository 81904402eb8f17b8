"""Atomic files and folders, locks, and digests of content.

A file is written in a hidden folder next to its place, synced to the disk, and renamed. So a full
disk, a kill or a loss of power leaves the old file or the new one. Hidden folders that killed
processes left are removed when the same file is written next.
"""

import contextlib
import errno
import fcntl
import functools
import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from sureshot.errors import ModelError, SureshotError, pip_install
from sureshot.paths import cache_dir, make_index_folder
from sureshot.s3 import ObjectPath

CARD = "trust.json"  # the calibration card in the folder of an index or of a checkpoint
_SAMPLE = 65536  # bytes of each part of a file that is read for a quick look
_LONGEST_NAME = 40  # characters of a name that the name of its hidden folder repeats
_ABANDONED = 86_400.0  # seconds after which no process of another machine still writes
_LOOK = 0.005  # seconds between looks at a lock that another process has
Making = Literal["file", "folder", ""]  # what is made where there is nothing to lock
_NEW, _OLD = "new", "old"  # names in a hidden folder: what is written, and what it replaces


@contextlib.contextmanager
def replace_file(path: Path) -> Iterator[Path]:
    """Write a file, or an object, that is there only when complete and on the disk.

    An empty file with the same suffix is there to be written in the block; if that raises, it is
    removed and the old file stays as it was.

    Examples:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "note.txt"
        >>> with replace_file(path) as fresh:
        ...     _ = fresh.write_text("whole")
        >>> path.read_text()
        'whole'
    """
    if isinstance(path, ObjectPath):
        with tempfile.TemporaryDirectory() as folder:
            fresh = Path(folder, f"{_NEW}{path.suffix}")
            fresh.touch()
            yield fresh
            path.write_bytes(fresh.read_bytes())
        return
    with _hidden_folder(path) as hidden:
        fresh = hidden / f"{_NEW}{path.suffix}"
        fresh.touch()
        mode = fresh.stat().st_mode
        yield fresh
        _sync_file(fresh, mode)
        fresh.replace(path)
    _sync_folder(path.parent)


@contextlib.contextmanager
def replace_folder(folder: Path) -> Iterator[Path]:
    """Write a folder that appears, or replaces another, only when complete and on the disk.

    An empty one is there to be filled in the block; if that raises, the old folder stays as it was.
    A process that is killed between moving the old folder away and the new one in leaves none:
    `restore_folder` puts the old one back, as does the next call of this function. Folders above
    it are made.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _hidden_folder(folder) as hidden:
        fresh = hidden / _NEW
        fresh.mkdir()
        mode = fresh.stat().st_mode & 0o666
        yield fresh
        for inside, _, names in os.walk(fresh, topdown=False):
            for name in names:
                _sync_file(Path(inside, name), mode)
            _sync_folder(Path(inside))
        if os.path.lexists(folder):
            folder.replace(hidden / _OLD)
        fresh.replace(folder)
    _sync_folder(folder.parent)


def restore_folder(path: Path) -> None:
    """Remove what killed processes left of a path; put back what they moved away."""
    for hidden in _abandoned(path.parent, re.escape(_prefix(path))):
        with contextlib.suppress(FileNotFoundError):  # another process clears too
            _discard(hidden, path)


def remove_abandoned(folder: Path) -> None:
    """Remove what killed processes left of files that they wrote into a folder."""
    for hidden in _abandoned(folder, r"\..*\."):
        shutil.rmtree(hidden, ignore_errors=True)


def _abandoned(folder: Path, prefix: str) -> Iterator[Path]:
    """The hidden folders whose processes are gone, by how their names begin."""
    pattern = re.compile(prefix + r"([0-9a-f]{8})-(\d+)-[0-9a-f]{8}\.partial", re.DOTALL)
    try:
        names = os.listdir(folder)  # noqa: PTH208 - a cache has thousands of files
    except OSError:
        return
    for match in filter(None, map(pattern.fullmatch, names)):
        if _is_abandoned(hidden := folder / match[0], match[1], int(match[2])):
            yield hidden


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8, whole or not at all, line ends as they are."""
    with replace_file(path) as fresh:
        fresh.write_text(text, "utf-8", newline="")


def write_json(path: Path, value: Any) -> None:
    """Write a value as indented JSON, whole or not at all."""
    write_text(path, json.dumps(value, indent=2) + "\n")


def append_line(path: Path, line: str) -> None:
    """Add a line, newline included, to a file or a new one; on the disk when this returns.

    Killed or out of room, it leaves the file as it was.
    """
    data = line.encode()
    if isinstance(path, ObjectPath):
        path.append(data)
        return
    opened = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    try:
        before = os.fstat(opened).st_size
        if os.write(opened, data) != len(data):
            os.ftruncate(opened, before)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fspath(path))
        os.fsync(opened)
    finally:
        os.close(opened)
    if not before:
        _sync_folder(path.parent)


def file_digest(path: Path) -> str:
    """SHA-256 of a file's content, as hex.

    Remembered in the cache folder under path, size and modification time, so a later call on an
    unchanged file costs two small reads. A cache that cannot be written is silently done without.
    """
    stat = path.stat()
    stamp = f"{stat.st_size} {stat.st_mtime_ns}"
    name = hashlib.sha256(os.fsencode(path.resolve())).hexdigest()[:32]
    memo = Path(os.devnull) / name  # where nothing can be read or written
    with contextlib.suppress(OSError, ValueError, SureshotError):  # no home folder, no cache
        memo = cache_dir() / "digests" / name
        known, digest = memo.read_text().rsplit(" ", 1)
        if known == stamp and len(bytes.fromhex(digest)) == hashlib.sha256().digest_size:
            return digest
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    with contextlib.suppress(OSError):
        memo.parent.mkdir(parents=True, exist_ok=True)
        write_text(memo, f"{stamp} {digest}")
    return digest


def sampled_digest(path: Path) -> str:
    """SHA-256 of a file's size and of 64 kB each from its start, middle and end, as hex.

    It tells files apart where copies, archives and mounts do not keep their times.
    """
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        digest = hashlib.sha256(str(size).encode())
        for start in sorted({0, max(0, (size - _SAMPLE) // 2), max(0, size - _SAMPLE)}):
            file.seek(start)
            digest.update(file.read(_SAMPLE))
    return digest.hexdigest()


def verify(path: Path, expected: str, package: str) -> None:
    """Check a weights file that came with a package against the digest we tested with."""
    fix = f"Reinstall it: {pip_install(again=True)} {package}"
    try:
        digest = file_digest(path)
    except OSError as error:
        raise ModelError(
            f"The weights file {path} cannot be read ({error.strerror}). {fix}"
        ) from None
    if digest != expected:
        raise ModelError(
            f"The weights file {path} is not the one Sureshot was tested with (sha256 "
            f"{digest[:12]}…, expected {expected[:12]}…), so it was not loaded. {fix}"
        )


@contextlib.contextmanager
def _hidden_folder(path: Path) -> Iterator[Path]:
    """A new folder next to a path, removed after the block, as are abandoned ones."""
    restore_folder(path)
    token = f"{_machine()}-{os.getpid()}-{os.urandom(4).hex()}"
    # Absolute, so that no library takes the begin of a name for a protocol ("http:").
    hidden = path.parent.absolute() / f"{_prefix(path)}{token}.partial"
    hidden.mkdir()
    try:
        yield hidden
    finally:
        _discard(hidden, path)


def _discard(hidden: Path, path: Path) -> None:
    """Remove a hidden folder; what it was to replace goes back if nothing has replaced it."""
    if os.path.lexists(hidden / _OLD) and not os.path.lexists(path):
        (hidden / _OLD).replace(path)
    shutil.rmtree(hidden, ignore_errors=True)


def _prefix(path: Path) -> str:
    """How the names of the hidden folders of a path begin; no other path has the same."""
    digest = hashlib.sha256(os.fsencode(path.name)).hexdigest()[:8]
    return f".{path.name[:_LONGEST_NAME]}~{digest}."  # a name has at most 255 bytes


@functools.cache
def _machine() -> str:
    """Digest of the machine, or of the container on it, whose process ids we see."""
    space = ""
    with contextlib.suppress(OSError):  # Linux alone has it
        space = os.readlink("/proc/self/ns/pid")  # noqa: PTH115
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def _is_abandoned(hidden: Path, machine: str, process: int) -> bool:
    """Whether no process writes in a hidden folder; for other machines its age decides."""
    if machine != _machine():
        with contextlib.suppress(OSError):
            return time.time() - hidden.stat().st_mtime > _ABANDONED
        return False
    try:
        os.kill(process, 0)
    except (OSError, OverflowError) as error:  # it may belong to another user
        return not isinstance(error, PermissionError)
    return False


def _sync_file(path: Path, mode: int) -> None:
    """Wait until a file is on the disk; give it these permissions, which some writers change."""
    with path.open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o777 != mode & 0o777:
            with contextlib.suppress(OSError):  # a file system without permissions
                path.chmod(mode & 0o777)
        os.fsync(file.fileno())


def _sync_folder(folder: Path) -> None:
    """Wait until the names in a folder are on the disk, where the file system can tell."""
    with contextlib.suppress(OSError):
        sync_path(folder)


def sync_path(path: str | Path) -> None:
    """Wait until a file, or the names in a folder, are on the disk."""
    # What is gone, another process has replaced; what may not be read, another user has written.
    with contextlib.suppress(FileNotFoundError, PermissionError):
        opened = os.open(path, os.O_RDONLY)
        try:
            os.fsync(opened)
        except OSError as error:
            if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # a file system without
                raise
        finally:
            os.close(opened)


def open_lock(path: str, *, make: Making) -> int | None:
    """A file or folder to be locked, opened; None where there is none to have."""
    if make == "folder":
        make_index_folder(path)
    # A lock of one's own on a network file system wants a file opened for writing.
    for way in (os.O_RDWR | (os.O_CREAT if make == "file" else 0), os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, way, 0o666)
    return None


def lock(
    path: str,
    stack: contextlib.ExitStack,
    *,
    make: Making = "",
    shared: bool = False,
    patience: float = 0.0,
) -> bool | None:
    """Lock a file or folder until the stack ends; whether it is locked, None where it cannot be.

    ``patience`` is for how many seconds to wait for another process. The system gives a lock up
    when the process that has it dies. It is a FileNotFoundError if who had it has deleted the file.
    """
    waited = False
    until = time.monotonic() + patience
    while (opened := open_lock(path, make=make)) is not None:
        kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
        with contextlib.ExitStack() as attempt:
            attempt.callback(os.close, opened)
            try:
                fcntl.flock(opened, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                waited = True
                time.sleep(_LOOK)
                continue
            except OSError:  # a file system without locks
                return None
            with contextlib.suppress(OSError):  # who had the lock may have deleted the file
                if os.path.samestat(os.fstat(opened), os.stat(path)):  # noqa: PTH116
                    stack.enter_context(attempt.pop_all())
                    return True
    if waited and not make:
        raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), path)
    return None
