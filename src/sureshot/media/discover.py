"""Find the videos at or below paths, on disk and in object storage."""

import contextlib
import errno
import os
import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fnmatch import translate
from functools import cache, lru_cache
from io import FileIO
from pathlib import Path
from stat import S_ISREG
from typing import Any, Literal

from sureshot.errors import QueryError, reason_of
from sureshot.paths import absolute, check_path
from sureshot.s3 import ObjectPath, is_plain_key
from sureshot.text import composed, plain

# fmt: off
VIDEO_SUFFIXES = frozenset({
    ".mp4", ".m4v", ".mov", ".qt", ".mkv", ".webm", ".avi", ".mpg", ".mpeg", ".mpe", ".m1v", ".m2v",
    ".vob", ".ts", ".mts", ".m2ts", ".wmv", ".asf", ".flv", ".f4v", ".ogv", ".ogm", ".3gp", ".3g2",
    ".gif", ".apng", ".mxf", ".rm", ".rmvb", ".divx", ".dv", ".y4m", ".nut", ".m2t", ".trp", ".tod",
    ".mod", ".wtv", ".dvr-ms", ".dav", ".insv", ".amv", ".ivf", ".m2p", ".h264", ".264", ".hevc",
    ".265", ".mjpeg",
})
# fmt: on
IMAGE_SUFFIXES = frozenset({".jpg", ".jpeg", ".png", ".webp", ".bmp"})
PHOTO_SUFFIXES = IMAGE_SUFFIXES | {".jpe", ".jfif", ".tif", ".tiff", ".avif", ".heic", ".heif"}
_TYPESCRIPT = frozenset({".ts", ".mts"})  # suffixes that program sources share with MPEG-TS
_PACKETS = (188, 192, 204)  # lengths of MPEG-TS packets, each of which has one sync byte
_MINUTE = 60.0
_REMEMBERED = 10_000  # objects
# What is said of a whole storage, and not of one of its objects.
_NO_STORAGE = {errno.ECONNREFUSED, errno.ECONNRESET, errno.ETIMEDOUT, errno.ENODEV}
# Whether an object was gone, and when that was asked; under a bucket that it cannot be asked.
_GONE: dict[str, tuple[bool, float]] = {}
_SILENT: dict[str, threading.Thread] = {}  # disks that do not answer, and what waits for them
_ANSWERED: dict[Path, float] = {}  # folders whose disk has answered, and when
_FRESH = 1.0  # seconds for which that counts
_PATIENCE = 10.0  # seconds that a disk gets for an answer; one that stood still needs some
# What systems say of a disk that was pulled or a share that is lost.
_DEAD = {errno.EIO, errno.ENODEV, errno.ENXIO, errno.ESTALE, errno.ENOTCONN, errno.EHOSTDOWN}
_FOR_DISKS = {"/media", "/run/media", "/mnt", "/Volumes"}  # folders in which disks appear
_BY_USER = {"/media", "/run/media"}  # or in a folder of the user there
_NUMBERED = re.compile(r"^(.*?)(\d+)\Z", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Source:
    """One video on disk: a file, or a folder of numbered frames."""

    path: Path  # absolute; symbolic links in it are kept, so results show what the user knows
    kind: Literal["file", "frames"]
    size: int = 0  # bytes, of all frames together
    mtime_ns: int = 0  # of the newest frame; neither counts where it is only read
    etag: str = field(default="", compare=False)  # of a listed object


@dataclass(frozen=True, slots=True)
class Unreadable:
    """A path that could not be read, and why."""

    path: Path
    reason: str


def discover(
    paths: Sequence[Path], leave_out: Callable[[Path], bool] = lambda path: False
) -> Iterator[Source | Unreadable]:
    """Every video at or below the paths, each once, folders in the order of their names.

    A file named directly is tried whatever its suffix; below a folder only known suffixes are, and
    what is no file or a TypeScript source is skipped. Hidden files and folders are left out.
    Symbolic links are followed, each real folder once, so a loop ends. A folder of at least two
    images whose names differ in one number is one video. ``leave_out`` says whether a file that may
    be a video, or a folder with all below it, is skipped.
    """
    seen: set[int] = set()
    objects: set[Path] = set()
    for path in paths:
        top = absolute(path)
        if leave_out(top):
            continue
        if isinstance(top, ObjectPath):
            for found in _objects(top, leave_out):
                if found.path not in objects:
                    objects.add(found.path)
                    yield found
            continue
        try:
            top.stat()
            if not (top.is_dir() or top.is_file()):
                yield Unreadable(top, "is not a regular file")
                continue
        except OSError as error:
            yield Unreadable(top, _reason(top, error))
        else:
            yield from _walk(top, seen, leave_out)


def is_gone(path: Path) -> bool:
    """Whether nothing is at a path, or its disk does not answer; without permission it is not gone.

    Storage is asked once per minute for an object, as a search asks this of each of its hits; one
    that fails, or does not answer, is not asked for any object for as long.
    """
    if isinstance(path, ObjectPath):
        return _is_object_gone(path)
    if is_silent(path):
        return True
    try:
        path.stat()
    except (FileNotFoundError, NotADirectoryError):
        return True
    except OSError as error:
        return error.errno in _DEAD
    return False


def _is_object_gone(path: ObjectPath) -> bool:
    asked = time.monotonic()
    for name in (str(path), path.bucket):
        gone, when = _GONE.get(name, (False, -_MINUTE))
        if asked - when < _MINUTE:
            return gone
    if len(_GONE) >= _REMEMBERED:
        _GONE.clear()
    if _asked(_ask, path):  # it is left behind
        _GONE[path.bucket] = False, time.monotonic()
    return _GONE.get(str(path), _GONE.get(path.bucket, (False, asked)))[0]


def _ask(path: ObjectPath) -> None:
    name, gone = str(path), False
    try:
        path.stat()
    except FileNotFoundError:
        gone = True
    except OSError as error:  # which does not say that it is gone
        if error.errno in _NO_STORAGE:
            name = path.bucket
    _GONE[name] = gone, time.monotonic()


def is_away(path: Path) -> bool:
    """Whether a video that is gone may come back: its folder, or its disk, is not there now."""
    if isinstance(path, ObjectPath):
        return False
    return is_silent(path) or not is_folder(path.parent) or is_unplugged(path)


def is_silent(path: Path) -> bool:
    """Whether the disk of a path does not answer, as a share on the network may for minutes.

    It is asked in a thread, which is left behind then; until that ends, the disk is silent.
    """
    if isinstance(path, ObjectPath):
        return False
    for place, asking in list(_SILENT.items()):
        if not asking.is_alive():
            _SILENT.pop(place, None)
        elif path.is_relative_to(place):
            return True
    folder, now = path.parent, time.monotonic()
    if now - _ANSWERED.get(folder, -_FRESH) < _FRESH:  # many paths of a folder are asked together
        return False
    if waiting := _asked(_look_at, path):
        known = [place for place in _places("/proc/self/mounts") if path.is_relative_to(place)]
        _SILENT[max(known, key=len, default=str(folder))] = waiting
        return True
    if len(_ANSWERED) >= _REMEMBERED:
        _ANSWERED.clear()
    _ANSWERED[folder] = now
    return False


def _look_at(path: Path) -> None:
    with contextlib.suppress(OSError):
        path.stat()


def _asked(look: Callable[[Any], None], path: Path) -> threading.Thread | None:
    """The thread that looks at a path, where there is no answer for long."""
    asking = threading.Thread(target=look, args=(path,), daemon=True)
    asking.start()
    asking.join(_PATIENCE)
    return asking if asking.is_alive() else None


def _places(table: str) -> list[str]:
    """The folders but / that a table of the system has disks for; none where it has no table."""
    try:
        lines = Path(table).read_text("utf-8", "replace").splitlines()
    except OSError:
        return []
    fields = [line.split() for line in lines if not line.lstrip().startswith("#")]
    places = (entry[1].replace(r"\040", " ") for entry in fields if len(entry) > 2)
    return [place for place in places if place.startswith("/") and place != "/"]


def is_unplugged(path: Path) -> bool:
    """Whether a path is on a disk that is known by its place and is not there now."""
    if isinstance(path, ObjectPath):
        return False
    here = next((parent for parent in path.parents if is_folder(parent)), Path("/"))
    # A link that leads nowhere leads to a disk, as far as anybody can tell.
    if here != path.parent and (here / path.relative_to(here).parts[0]).is_symlink():
        return True
    of_user = str(here.parent) in _BY_USER and here != path.parent
    if str(here) in _FOR_DISKS or of_user:
        return not os.path.ismount(here)
    is_for_disk = str(here.parent) in _FOR_DISKS or str(here.parent.parent) in _BY_USER
    if is_for_disk and not os.path.ismount(here):  # where one was mounted by hand, or another way
        with contextlib.suppress(OSError):
            return not os.listdir(here)  # noqa: PTH208
    return any(path.is_relative_to(place) and not os.path.ismount(place) for place in _mounts())


@cache
def _mounts() -> tuple[str, ...]:
    """Where disks belong that this system knows of, whether they are there or not."""
    return tuple(_places("/etc/fstab"))


def open_regular(path: Path) -> FileIO:
    """A regular file, opened without a buffer; OSError for a pipe, which would be waited for."""
    if isinstance(path, ObjectPath):
        return path.open("rb", buffering=0)
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        if not S_ISREG(os.fstat(descriptor).st_mode):
            raise OSError(errno.ENOTSUP, "is not a regular file", str(path))
        return os.fdopen(descriptor, "rb", buffering=0)
    except BaseException:
        os.close(descriptor)
        raise


def frame_files(folder: Path) -> list[Path]:
    """The images of a folder of frames in the order of their numbers; empty if it is not one.

    Object storage has none.
    """
    if isinstance(folder, ObjectPath):
        return []
    numbers = numbered_images(os.listdir(folder))  # noqa: PTH208 - names, and of most no paths
    names = sorted(numbers, key=lambda name: (numbers[name], name))
    # A pipe that calls itself an image would be waited for forever; a dead link shows nothing.
    images = [path for name in names if (path := folder / name).is_file()]
    return images if len(images) > 1 else []


def numbered_images(names: Iterable[str]) -> dict[str, int]:
    """The images among the names in a folder with their numbers, if they differ in nothing else."""
    found: dict[str, int] = {}
    prefixes = set()
    for name in names:
        stem, suffix = os.path.splitext(name)  # noqa: PTH122 - a name, not a path
        if suffix.lower() not in IMAGE_SUFFIXES or name.startswith("."):
            continue
        match = _NUMBERED.match(stem)
        prefixes.add(match and match[1])
        if match is None or len(prefixes) > 1:
            return {}
        found[name] = int(match[2])
    return found


def _walk(
    top: Path, seen: set[int], leave_out: Callable[[Path], bool]
) -> Iterator[Source | Unreadable]:
    """The videos at or below a path, without recursion: folders nest deeper than Python can."""
    todo: list[Iterator[Path]] = [iter([top])]
    while todo:
        path = next(todo[-1], None)
        if path is None:
            todo.pop()
            continue
        if not is_folder(path):
            yield from _file(path, seen)
            continue
        try:
            if not _is_new(path.stat(), seen):
                continue
            names = sorted(os.listdir(path))  # noqa: PTH208 - of a million names no paths are made
            if frames := frame_files(path):
                stats = [frame.stat() for frame in frames]
                size, newest = sum(s.st_size for s in stats), max(s.st_mtime_ns for s in stats)
                yield Source(path=path, kind="frames", size=size, mtime_ns=newest)
        except OSError as error:
            yield Unreadable(path, reason_of(error))
            continue
        entries = map(path.joinpath, names)
        todo.append(e for e in entries if worth_a_look(e) and not leave_out(e))


def _objects(top: ObjectPath, leave_out: Callable[[Path], bool]) -> Iterator[Source | Unreadable]:
    """The videos in object storage at or below a path, by one listing."""
    try:
        it = top.stat()
        if S_ISREG(it.st_mode):
            yield Source(path=top, kind="file", size=it.st_size, mtime_ns=it.st_mtime_ns)
            return
        for one in top.below():
            # No signature of a transport stream is looked for: that would be a request for each.
            name = one.key.rpartition("/")[2]
            if Path(name).suffix.lower() not in VIDEO_SUFFIXES or name.startswith("."):
                continue
            path = top.of_key(one.key)
            if not is_plain_key(one.key):
                shown = plain(one.key)
                yield Unreadable(path, f"is named {shown!r} in the bucket, like no path; rename it")
            elif not _left_out(path, top, leave_out):
                yield Source(path, "file", size=one.size, mtime_ns=one.mtime_ns, etag=one.etag)
    except OSError as error:
        yield Unreadable(top, reason_of(error))


def _left_out(path: ObjectPath, top: ObjectPath, leave_out: Callable[[Path], bool]) -> bool:
    """Whether an object or a folder around it, up to the one that is indexed, is hidden or out."""
    between = [path, *path.parents[: len(path.parts) - len(top.parts) - 1]]
    hidden = any(one.name.startswith(".") for one in between)
    return hidden or any(map(leave_out, reversed(between)))


def worth_a_look(entry: Path) -> bool:
    """Whether an entry of a folder is a folder or, by name and first bytes, a video; not hidden."""
    suffix = entry.suffix.lower()
    if entry.name.startswith("."):
        return False
    if suffix not in VIDEO_SUFFIXES:
        return is_folder(entry)
    if suffix == ".mod":  # of camcorders; the same ending has music, and what Go programs need
        return _head(entry, b"\0\0\1\xba").startswith(b"\0\0\1\xba")
    return suffix not in _TYPESCRIPT or _may_be_mpeg_ts(entry)


def _file(path: Path, seen: set[int]) -> Iterator[Source | Unreadable]:
    try:
        stat = path.stat()
    except OSError as error:
        yield Unreadable(path, _reason(path, error))
        return
    # Hard and symbolic links to one file are one video.
    if S_ISREG(stat.st_mode) and _is_new(stat, seen):
        yield Source(path=path, kind="file", size=stat.st_size, mtime_ns=stat.st_mtime_ns)


def _is_new(stat: os.stat_result, seen: set[int]) -> bool:
    """Whether a file or folder is met for the first time; it is remembered."""
    before = len(seen)
    seen.add(stat.st_dev << 64 | stat.st_ino)
    return len(seen) > before


def _reason(path: Path, error: OSError) -> str:
    """Why a path cannot be read; for a dead link, where it leads."""
    if isinstance(error, FileNotFoundError) and path.is_symlink():
        return f"is a link to {plain(path.readlink())}, which is not there"
    return reason_of(error)


def _head(path: Path, expected: bytes) -> bytes:
    """So many first bytes of a file as are expected; those, where the file cannot be read.

    Whoever decodes it meets the same error and reports it.
    """
    with contextlib.suppress(OSError), open_regular(path) as file:
        return file.read(len(expected)) or b""
    return expected


def _may_be_mpeg_ts(path: Path) -> bool:
    """Whether a file has a sync byte in each of its first packets, wherever they begin."""
    head = _head(path, bytes([0x47]) * 4 * max(_PACKETS))
    syncs = (head[first::length] for length in _PACKETS for first in range(length))
    return any(len(column) > 2 and set(column) == {0x47} for column in syncs)


def is_folder(path: Path) -> bool:
    """Whether there is a folder that can be looked at."""
    try:
        return path.is_dir()
    except OSError:  # a link into a folder we may not enter; `_file` reports it
        return False


def as_pattern(given: str | Path) -> str:
    """A pattern as an index stores it: a bare name as it is, anything else as an absolute path.

    Examples:
        >>> as_pattern("*.gif"), as_pattern("drafts/"), as_pattern("/films/../raw/*")
        ('*.gif', 'drafts', '/raw/*')
    """
    check_path(given)
    text = os.fspath(given)
    name = text.rstrip(os.sep)
    if not text.strip():
        raise QueryError("A pattern of what to leave out is empty; give a name, such as '*.gif'.")
    if os.sep not in name and not name.startswith("~") and name.strip("."):
        return name
    if not (pattern := str(absolute(name or text))).strip(os.sep):
        raise QueryError(f"{plain(text)} would leave out everything; give a folder in it.")
    return pattern


_ESCAPED = re.compile(r"\[([*?[])\]")  # a character that is no wildcard


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is left out of an index, by patterns as `as_pattern` gives them.

    A pattern without a slash matches names of files and folders at or below the path that is
    indexed. One with slashes matches a path and all below it. ``*``, ``?`` and ``[…]`` are those
    of the shell, but ``*`` matches slashes too.
    """

    patterns: tuple[str, ...] = ()

    def matches(self, path: Path, tops: Sequence[Path]) -> bool:
        """Whether a path is left out; names above the paths that are indexed do not count.

        Examples:
            >>> gifs = Excluded(("*.gif", "/v/raw"))
            >>> [gifs.matches(Path(p), [Path("/v")]) for p in ("/v/a.gif", "/v/raw/b.mp4", "/v/c")]
            [True, True, False]
        """
        if not self.patterns:
            return False
        literal, paths, names = _compiled(self.patterns)
        text = composed(str(path))
        while text:  # the path and all above it
            if text in literal or (paths and paths.match(text)):
                return True
            text = text.rpartition(os.sep)[0]
        if names is None:
            return False
        inside = (p for p in (path, *path.parents) if any(p.is_relative_to(top) for top in tops))
        return any(names.match(composed(p.name)) for p in inside)


@lru_cache(maxsize=8)
def _compiled(
    patterns: tuple[str, ...],
) -> tuple[frozenset[str], re.Pattern[str] | None, re.Pattern[str] | None]:
    """Paths without wildcards, and the other patterns of paths, and those of names, as one each."""
    literal, paths, names = set(), [], []
    for pattern in map(composed, patterns):
        if os.sep not in pattern:
            names.append(pattern)
        elif re.search(r"[*?[]", _ESCAPED.sub("", pattern)):
            paths.append(pattern)
        else:  # as `glob.escape` writes a path
            literal.add(_ESCAPED.sub(r"\1", pattern))
    together = ("|".join(map(translate, some)) for some in (paths, names))
    return frozenset(literal), *(re.compile(one) if one else None for one in together)  # type: ignore[return-value]
