"""Videos over HTTP: what to play of them, the film itself, and a moment cut out to keep."""

import contextlib
import errno
import hashlib
import io
import os
import re
import threading
import time
import urllib.parse
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response, StreamingResponse

from sureshot.errors import QueryError, SureshotError, reason_of
from sureshot.files import remove_abandoned, replace_file
from sureshot.library.clips import Film, export_name, film_of, first_part, write_part
from sureshot.media.discover import open_regular
from sureshot.media.excerpt import MP4, cut
from sureshot.s3 import ObjectPath
from sureshot.store.rows import VideoRecord
from sureshot.text import plain
from sureshot.web.schema import (
    DiskFullError,
    FileGoneError,
    FilmReply,
    error_reply,
    errors,
    field,
    replies,
)
from sureshot.web.session import NO_ROOM, Session, SessionOf, of_app, queued

_CHUNK = 1 << 18  # bytes read at once
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")
_LONGEST = 600.0  # seconds that are cut out at once
CACHE_SIZE = 1_000_000_000  # bytes
_AGE = 14 * 86_400.0  # seconds


def has_it(request: Request, tag: str) -> bool:
    """Whether the client says that it has what has this tag, perhaps as a proxy has weakened it."""
    told = request.headers.get("if-none-match", "").split(",")
    return not {one.strip().removeprefix("W/") for one in told}.isdisjoint({tag, "*"})


def file_reply(request: Request, path: Path, media_type: str, name: str | None = None) -> Response:
    """A file, or the single range that the ``Range`` header asks for.

    Several ranges, and what is no range, get the whole, as HTTP permits. The file is opened once:
    what takes its name while it plays is never mixed into it. Where it is cut short meanwhile, the
    reply stays unfinished, so that the player sees that bytes are missing. With a name, a browser
    saves the file under it.
    """
    try:
        opened, size, tag = _open(path)
    except OSError as error:
        odd = "is no longer a regular file" if error.errno == errno.ENOTSUP else ""
        why = odd or f"cannot be opened: {reason_of(error)}"
        raise FileGoneError(f"{plain(path)} {why}.") from None
    headers = {"Accept-Ranges": "bytes", "Cache-Control": "private, no-cache", "ETag": tag}
    if has_it(request, tag):
        opened.close()
        return Response(None, 304, headers)
    if name is not None:
        headers["Content-Disposition"] = f"attachment; filename*=utf-8''{urllib.parse.quote(name)}"
    first, last, code = 0, size - 1, 200
    asked = request.headers.get("range", "") if request.headers.get("if-range", tag) == tag else ""
    match = _RANGE.fullmatch(asked.replace(" ", ""))
    if match is not None and (match[1] or match[2]):
        start = int(match[1]) if match[1] else max(size - int(match[2]), 0)
        end = min(int(match[2]), last) if match[1] and match[2] else last
        if start >= size:
            opened.close()
            beyond = {"Content-Range": f"bytes */{size}"}
            return error_reply("The range is beyond the end of the file.", 416, "range", beyond)
        if start <= end:
            first, last, code = start, end, 206
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
    headers["Content-Length"] = str(last - first + 1)
    if request.method == "HEAD":
        opened.close()
        return Response(None, code, headers, media_type)
    return StreamingResponse(_parts(opened, first, last + 1), code, headers, media_type)


def _open(path: Path) -> tuple[io.RawIOBase, int, str]:
    """An open file or object, its size, and its ETag; all three of the same content."""
    if isinstance(path, ObjectPath):
        reader = path.open("rb", buffering=0)
        return reader, reader.stored.size, f'"{reader.stored.mtime_ns:x}-{reader.stored.size:x}"'
    opened = open_regular(path)
    status = os.fstat(opened.fileno())
    tag = f'"{status.st_ino:x}-{status.st_size:x}-{status.st_mtime_ns:x}"'
    return opened, status.st_size, tag


async def _parts(opened: io.RawIOBase, at: int, end: int) -> AsyncIterator[bytes]:
    with opened:
        opened.seek(at)
        while at < end:
            data = b""
            with contextlib.suppress(OSError):  # an object was replaced, or its storage is gone
                data = await run_in_threadpool(opened.read, min(_CHUNK, end - at))
            if not data:
                raise EOFError("The file was cut short while it was sent.")
            at += len(data)
            yield data


class ClipCache:
    """Films that were made to be played, which this account alone can read.

    The name of a film begins with the id of its video, by which `sureshot.library.catalog` finds
    it, and ends with its length, so that what was cut short later is not served. Several servers
    may share its folder. Beyond so many bytes the oldest films are deleted, and in any case those
    that were not asked for in so many seconds.
    """

    def __init__(self, folder: Path, size: int = CACHE_SIZE, age: float = _AGE) -> None:
        self.folder = folder
        self._size = size
        self._age = age
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()
        remove_abandoned(folder)
        self._evict(size)

    def film(self, video: str, name: str, make: Callable[[Path], object]) -> Path:
        """The film of a name, of the video of an id, written once however many ask for it."""
        with self._guard:
            lock = self._locks[video + name]
        try:
            with lock:
                while (path := self.find(video, name)) is None:
                    self._make(_stem(video, name), make)
                with contextlib.suppress(OSError):
                    path.touch()  # used again: no longer the oldest
                return path
        finally:
            with self._guard:
                self._locks.pop(video + name, None)

    def find(self, video: str, name: str) -> Path | None:
        """The film of a name, if it is there as it was made."""
        for path in self.folder.glob(f"{_stem(video, name)}-*.mp4"):
            with contextlib.suppress(OSError):
                if path.stat().st_size == int(path.stem.rpartition("-")[2]):
                    return path
        return None

    def _make(self, stem: str, make: Callable[[Path], object]) -> None:
        """Write a film; with a full disk once more after all others are deleted."""
        while True:
            try:
                self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
                self.folder.chmod(0o700)
                with replace_file(self.folder / f"{stem}.mp4") as fresh:
                    make(fresh)
                    length = fresh.stat().st_size
                path = self.folder / f"{stem}-{length}.mp4"
                with contextlib.suppress(FileNotFoundError):  # another server has been quicker
                    (self.folder / f"{stem}.mp4").rename(path).chmod(0o600)
                self._evict(self._size, path)
                return
            except (SureshotError, OSError) as error:
                if not _is_full(error):
                    if isinstance(error, SureshotError):
                        raise
                    raise SureshotError(
                        f"A film to play cannot be written to {plain(self.folder)}: {error}."
                    ) from None
                if not self._evict(0):
                    raise DiskFullError(
                        f"There is no room for a film to play in {plain(self.folder)}; free some "
                        "space there."
                    ) from None

    def _evict(self, size: int, but: Path | None = None) -> bool:
        """Delete old films, and the oldest until so many bytes are left; whether any was."""
        kept = []
        with contextlib.suppress(OSError):
            for path in self.folder.glob("*.mp4"):
                with contextlib.suppress(OSError):  # another server deletes too
                    status = path.stat()
                    kept.append((status.st_mtime, status.st_size, path))
        total, has_deleted = sum(length for _, length, _ in kept), False
        for used, length, path in sorted(kept):
            if path != but and (total > size or time.time() - used > self._age):
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                    total, has_deleted = total - length, True
        return has_deleted


def _stem(video: str, name: str) -> str:
    """How the file of a film is called up to its length."""
    digest = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:32]
    return f"{video}-{digest}"


def _is_full(error: BaseException | None) -> bool:
    """Whether an error, or its cause, is that there is no room."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return True
        error = error.__cause__
    return False


CacheOf = Annotated[ClipCache, of_app("cache")]
Id = Annotated[str, InPath(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]
At = Annotated[float, field("Second that is looked for.", ge=0, le=1e7)]
Start = Annotated[float | None, field("Second at which the moment begins.", ge=0, le=1e7)]
End = Annotated[float | None, field("Second at which it ends.", ge=0, le=1e7)]
Converted = Annotated[bool, field("Convert it, for a browser that cannot play the file as it is.")]

router = APIRouter(tags=["media"])
_film_codes: dict[int | str, dict[str, Any]] = {
    200: {"content": {"video/*": {}}},
    206: {"content": {"video/*": {}}},
    **errors(400, 404, 409, 410, 507),
}


@router.get("/api/playing/{name}", responses=replies(FilmReply, 400, 404, 409, 410))
@queued("files")
def playing(
    session: SessionOf,
    cache: CacheOf,
    name: Id,
    at: At = 0.0,
    start: Start = None,
    end: End = None,
    converted: Converted = False,
) -> dict[str, Any]:
    """What `/api/media` plays so that a moment is seen, and at which second that begins."""
    asked = {"at": at, "start": start, "end": end, "converted": "true" if converted else None}
    query = urllib.parse.urlencode({k: v for k, v in asked.items() if v is not None})
    url = f"/api/media/{name}?{query}"
    record = session.file(name)
    film = _film(record, at, start, end, converted)
    values = film.to_dict() | {"url": url, "length": round(record.duration, 3), "first": None}
    first = first_part(film, at)
    if first is not None and not cache.find(name, _film_name(session, record, film)):
        values["first"] = {"url": f"{url}&first=true", "start": first.start, "end": first.end}
    return values


@router.head("/api/media/{name}", include_in_schema=False)
@router.get("/api/media/{name}", response_class=Response, responses=_film_codes)
async def media(
    request: Request,
    session: SessionOf,
    cache: CacheOf,
    name: Id,
    at: At = 0.0,
    start: Start = None,
    end: End = None,
    first: Annotated[
        bool, field("Of a film that must be made only the seconds seen first.")
    ] = False,
    converted: Converted = False,
) -> Response:
    """The video as it is, or the film that stands for it where browsers do not play it."""

    def find() -> tuple[VideoRecord, Film, bool]:
        record = session.file(name)
        film = _film(record, at, start, end, converted)
        early = first_part(film, at) if first else None
        return record, early or film, early is not None

    record, film, is_early = await session.files.run(request, find)
    if film.way == "direct":
        # To open it may hang, too, on a disk or in a storage that does not answer.
        kind = film.type
        return await session.files.run(request, lambda: file_reply(request, record.path, kind))

    def make() -> Path:
        rate = session.store().settings.frame_rate
        return cache.film(
            name,
            _film_name(session, record, film),
            lambda target: write_part(record, film, target, rate=rate),
        )

    path = await (session.previews if is_early else session.clips).run(request, make)
    return file_reply(request, path, film.type)


@router.head("/api/cut/{name}", include_in_schema=False)
@router.get("/api/cut/{name}", response_class=Response, responses=_film_codes)
async def cut_out(
    request: Request,
    session: SessionOf,
    cache: CacheOf,
    name: Id,
    start: Annotated[float, field("Seconds.", ge=0, le=1e7)],
    end: Annotated[float, field("Seconds.", gt=0, le=1e7)],
    rank: Annotated[int, field("First part of the file name.", ge=1, le=9999)] = 1,
) -> Response:
    """A moment as an mp4 to keep, cut to the frame."""
    check_length(start, end)
    record = await session.files.run(request, lambda: session.file(name))
    path = await session.clips.run(request, lambda: cut_film(session, cache, record, start, end))
    last = max(start, min(end, record.duration))
    return file_reply(request, path, MP4, export_name(record.path, start, last, rank))


def check_length(start: float, end: float) -> None:
    """QueryError if it is no time, or too long a time, to cut out."""
    if not 0 < end - start <= _LONGEST:
        raise QueryError(f"Cut out more than 0 and at most {_LONGEST:g} seconds at once.")


def cut_film(
    session: Session, cache: ClipCache, record: VideoRecord, start: float, end: float
) -> Path:
    """A moment as an mp4 in the cache."""
    rate = session.store().settings.frame_rate
    return cache.film(
        record.id,
        f"cut {start:.3f} {end:.3f} {rate} {stamp_of(record.path)}",
        lambda to: cut(record.path, start, end, to, frame_rate=rate, overwrite=True),
    )


def _film(
    record: VideoRecord, at: float, start: float | None, end: float | None, converted: bool
) -> Film:
    begins, ends = at if start is None else start, at if end is None else end
    return film_of(record, at=at, start=min(begins, at), end=max(ends, at), converted=converted)


def _film_name(session: Session, record: VideoRecord, film: Film) -> str:
    """Tells a film from every other one."""
    rate = session.store().settings.frame_rate
    way = f"{film.way} {film.start} {film.end}" if film.way == "clip" else "remux"
    return f"{way} {rate} {stamp_of(record.path)}"


def stamp_of(path: Path) -> str:
    """Tells a file from one that takes its place; empty where that is not known."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
