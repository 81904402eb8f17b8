"""Videos over HTTP: what to play of them, the film itself, and a moment cut out to keep."""

import contextlib
import errno
import hashlib
import os
import re
import stat
import threading
import urllib.parse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Query, Request
from fastapi import Path as InPath
from starlette.concurrency import run_in_threadpool
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sureshot.errors import QueryError, SureshotError, reason_of
from sureshot.files import replace_file
from sureshot.library.clips import Film, cut, export_name, film_of, first_part, write_part
from sureshot.media.excerpt import MP4
from sureshot.s3 import ObjectPath
from sureshot.store.rows import VideoRecord
from sureshot.text import plain
from sureshot.web.schema import (
    DiskFullError,
    FileGoneError,
    FilmReply,
    error_reply,
    errors,
    json_reply,
)
from sureshot.web.session import Session

_CHUNK = 1 << 18  # bytes read at once
_RANGE = re.compile(r"bytes=(\d{0,18})-(\d{0,18})")


@dataclass(frozen=True, slots=True)
class Span:
    """A part of a file: its first byte, and how many."""

    first: int
    length: int


def span_of(header: str, size: int) -> Span | None:
    """The part that a header asks for; None for one beyond the end.

    What is no single range is the whole, as if nothing had been asked.

    Examples:
        >>> span_of("bytes=10-19", 100), span_of("bytes=-30", 100), span_of("bytes=90-", 100)
        (Span(first=10, length=10), Span(first=70, length=30), Span(first=90, length=10))
        >>> span_of("bytes=100-", 100), span_of("pages=1-2", 100)
        (None, Span(first=0, length=100))
    """
    match = _RANGE.fullmatch(header.replace(" ", ""))
    if match is None or match.group() == "bytes=-":
        return Span(0, size)
    low, high = match.groups()
    if not low:
        length = min(int(high), size)
        return Span(size - length, length) if length else None
    first, last = int(low), min(int(high or size), size - 1)
    if first >= size:
        return None
    return Span(first, last - first + 1) if first <= last else Span(0, size)


class _File:
    """An open file: its size, what tells it from others, and its bytes."""

    def __init__(self, path: Path) -> None:
        self._opened = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        status = os.fstat(self._opened)
        if not stat.S_ISREG(status.st_mode):
            self.close()
            raise FileGoneError(f"{plain(path)} is not a regular file any more.")
        self.size = status.st_size
        self.tag = f'"{status.st_ino:x}-{self.size:x}-{status.st_mtime_ns:x}"'

    def read(self, count: int, at: int) -> bytes:
        return os.pread(self._opened, count, at)

    def close(self) -> None:
        os.close(self._opened)


class _Object:
    """The same of an object."""

    def __init__(self, path: ObjectPath) -> None:
        self._opened = path.open("rb", buffering=0)
        self.size = self._opened.size
        self.tag = f'"{self.size:x}-{self._opened.stored.mtime_ns:x}"'

    def read(self, count: int, at: int) -> bytes:
        self._opened.seek(at)
        return bytes(self._opened.read(count))

    def close(self) -> None:
        self._opened.close()


class FilePart(Response):
    """A file, or the part of it that a request asks for.

    It is opened once and stays the same file, whatever takes its name meanwhile. Where it is cut
    short the connection ends.

    Args:
        request: who asks.
        path: an indexed video, or a film made of one.
        media_type: what to call it.

    Raises:
        GoneError: it cannot be opened.
    """

    def __init__(self, request: Request, path: Path, media_type: str) -> None:
        super().__init__(media_type=media_type)
        self._request = request
        try:
            self._file = _Object(path) if isinstance(path, ObjectPath) else _File(path)
        except OSError as error:
            raise FileGoneError(f"{plain(path)} cannot be opened: {reason_of(error)}.") from None
        self._size = self._file.size
        self._tag = self._file.tag

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it."""
        try:
            headers = self._request.headers
            same = headers.get("if-range", self._tag) == self._tag
            asked = headers.get("range", "") if same else ""
            part = span_of(asked, self._size) if asked else Span(0, self._size)
            if part is None:
                beyond = {"Content-Range": f"bytes */{self._size}"}
                reply = error_reply("The range lies beyond the end.", 416, "range", beyond)
                await reply(scope, receive, send)
                return
            await self._start(part, bool(asked), send)
            await self._send(part, send)
        finally:
            self._file.close()

    async def _start(self, part: Span, partial: bool, send: Send) -> None:
        partial = partial and part.length < self._size
        self.status_code = 206 if partial else 200
        self.headers["Content-Length"] = str(part.length)
        self.headers["Accept-Ranges"] = "bytes"
        self.headers["ETag"] = self._tag
        self.headers["Cache-Control"] = "private, no-cache"
        if partial:
            last = part.first + part.length - 1
            self.headers["Content-Range"] = f"bytes {part.first}-{last}/{self._size}"
        start = {"type": "http.response.start", "status": self.status_code}
        await send({**start, "headers": self.raw_headers})

    async def _send(self, part: Span, send: Send) -> None:
        at, end = part.first, part.first + part.length
        if self._request.method == "HEAD":
            at = end
        while at < end and not await self._request.is_disconnected():
            try:
                data = await run_in_threadpool(self._file.read, min(_CHUNK, end - at), at)
            except OSError:  # an object that was replaced meanwhile, or its storage is gone
                data = b""
            if not data:
                return  # cut short meanwhile: an unfinished reply tells the player so
            at += len(data)
            body = {"type": "http.response.body", "body": data}
            await send({**body, "more_body": True})
        if at >= end:
            await send({"type": "http.response.body", "body": b"", "more_body": False})


MOST = 1_000_000_000  # bytes
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT)


class ClipCache:
    """Films by what they show.

    Args:
        folder: where they are; made when the first one is. Several servers may share it.
        most: bytes that are kept; of more the oldest are thrown away.
    """

    def __init__(self, folder: Path, most: int = MOST) -> None:
        self.folder = folder
        self._most = most
        self._locks: defaultdict[str, threading.Lock] = defaultdict(threading.Lock)
        self._guard = threading.Lock()

    def film(self, name: str, make: Callable[[Path], None]) -> Path:
        """The film of a name, made if there is none; once, however many ask for it.

        Args:
            name: what tells it from every other film.
            make: writes it to a path.

        Raises:
            FullError: there is no room on the disk.
            SureshotError: what ``make`` raises.
        """
        path = self._path(name)
        key = path.stem
        with self._guard:
            lock = self._locks[key]
        with lock:
            try:
                path.touch(exist_ok=True) if path.stat().st_size else None
                return path
            except OSError:
                self._make(path, make)
        with self._guard:
            self._locks.pop(key, None)
        return path

    def has(self, name: str) -> bool:
        """Whether the film of a name is there already."""
        try:
            return self._path(name).stat().st_size > 0
        except OSError:
            return False

    def _path(self, name: str) -> Path:
        key = hashlib.sha256(name.encode("utf-8", "surrogateescape")).hexdigest()[:40]
        return self.folder / f"{key}.mp4"

    def _make(self, path: Path, make: Callable[[Path], None]) -> None:
        """Write a film; with a full disk once more after all others are thrown away."""
        for emptied in (False, True):
            try:
                self.folder.mkdir(parents=True, exist_ok=True)
                with replace_file(path) as fresh:
                    make(fresh)
                self._evict(self._most, path)
                return
            except (SureshotError, OSError) as error:
                if not _is_full(error):
                    if isinstance(error, SureshotError):
                        raise
                    raise SureshotError(
                        f"A film to play cannot be written to {plain(self.folder)}: {error}."
                    ) from None
                if emptied or not self._evict(0, path):
                    break
        raise DiskFullError(
            f"There is no room for a film to play in {plain(self.folder)}; free some space there."
        )

    def _evict(self, most: int, but: Path) -> int:
        """Throw the oldest films away until the rest has so many bytes; how many that were."""
        kept = []
        with contextlib.suppress(OSError):
            for path in self.folder.glob("*.mp4"):
                with contextlib.suppress(OSError):  # another server throws away too
                    status = path.stat()
                    kept.append((status.st_mtime, status.st_size, path))
        total, gone = sum(size for _, size, _ in kept), 0
        for _, size, path in sorted(kept):
            if total <= most:
                break
            if path != but:
                with contextlib.suppress(OSError):
                    path.unlink(missing_ok=True)
                    total, gone = total - size, gone + 1
        return gone


def _is_full(error: BaseException) -> bool:
    """Whether an error, or what it came of, is that there is no room."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, OSError) and cause.errno in _NO_ROOM:
            return True
        cause = cause.__cause__
    return False


_LONGEST = 600.0  # seconds that are cut out at once

Id = Annotated[str, InPath(description="Id of an indexed video.", pattern=r"^[0-9a-f]{32}$")]
At = Annotated[float, Query(description="Second that is looked for.", ge=0, le=1e7)]
Start = Annotated[
    float | None, Query(description="Second at which the moment begins.", ge=0, le=1e7)
]
End = Annotated[float | None, Query(description="Second at which it ends.", ge=0, le=1e7)]


class Media:
    """The addresses that play.

    Args:
        desk: the open index.
        cache: where films are kept that had to be made.
    """

    def __init__(self, desk: Session, cache: ClipCache) -> None:
        self._desk = desk
        self._cache = cache

    def routes(self) -> APIRouter:
        """The addresses."""
        router = APIRouter(tags=["media"])
        add = router.add_api_route
        told: dict[int | str, dict[str, Any]] = {200: {"model": FilmReply}}
        film: dict[int | str, dict[str, Any]] = {200: {"content": {"video/*": {}}}}
        part: dict[int | str, dict[str, Any]] = {206: {"content": {"video/*": {}}}}
        wrong = errors(400, 404, 409, 410)
        add("/api/playing/{name}", self.playing, responses=told | wrong)
        film_wrong = errors(400, 404, 409, 410, 416, 507)
        for address, call in (("/api/media/{name}", self.film), ("/api/cut/{name}", self.cut)):
            add(address, call, response_class=Response, responses=film | part | film_wrong)
            add(address, call, methods=["HEAD"], include_in_schema=False)
        return router

    async def playing(
        self, request: Request, name: Id, at: At = 0.0, start: Start = None, end: End = None
    ) -> Response:
        """What `/api/media` plays so that a moment is seen, and at which second that begins."""
        asked = {"at": at, "start": start, "end": end}
        query = urllib.parse.urlencode({k: v for k, v in asked.items() if v is not None})
        url = f"/api/media/{name}?{query}"

        def ask() -> dict[str, Any]:
            record = self._desk.file(name)
            film = self._film(record, at, start, end)
            first = first_part(film, at)
            if first is None or self._cache.has(self._stamp(record, film)):
                return film.to_dict() | {"url": url, "first": None}
            soon = {"url": f"{url}&first=true", "start": first.start, "end": first.end}
            return film.to_dict() | {"url": url, "first": soon}

        return json_reply(await self._desk.searches.run(request, ask))  # before pictures that wait

    async def film(
        self,
        request: Request,
        name: Id,
        at: At = 0.0,
        start: Start = None,
        end: End = None,
        first: Annotated[
            bool, Query(description="Of a film that must be made only the seconds seen first.")
        ] = False,
    ) -> Response:
        """The video as it is, or the film that stands for it where browsers do not play it."""

        def ask() -> tuple[VideoRecord, Film, bool]:
            record = self._desk.file(name)
            film = self._film(record, at, start, end)
            early = first_part(film, at) if first else None
            return record, early or film, early is not None

        record, film, soon = await self._desk.searches.run(request, ask)
        if film.how.way == "direct":
            return FilePart(request, record.path, film.how.type)
        lane = self._desk.firsts if soon else self._desk.clips
        path = await lane.run(request, lambda: self._made(record, film))
        return FilePart(request, path, film.how.type)

    async def cut(
        self,
        request: Request,
        name: Id,
        start: Annotated[float, Query(description="Seconds.", ge=0, le=1e7)],
        end: Annotated[float, Query(description="Seconds.", gt=0, le=1e7)],
        rank: Annotated[int, Query(description="First part of its name.", ge=1, le=9999)] = 1,
    ) -> Response:
        """A moment as an mp4 to keep, cut to the frame."""
        if not 0 < end - start <= _LONGEST:
            raise QueryError(f"Cut out more than 0 and at most {_LONGEST:g} seconds at once.")
        record = await self._desk.searches.run(request, lambda: self._desk.file(name))
        rate = self._desk.store().settings.frame_rate

        def make(target: Path) -> None:
            cut(record.path, start, end, target, frame_rate=rate, overwrite=True)

        stamp = f"cut {record.id} {start:.3f} {end:.3f} {_stamp(record.path)}"
        path = await self._desk.clips.run(request, lambda: self._cache.film(stamp, make))
        reply = FilePart(request, path, MP4)
        called = urllib.parse.quote(export_name(record.path, start, end, rank), safe="")
        reply.headers["Content-Disposition"] = f"attachment; filename*=UTF-8''{called}"
        return reply

    def _film(self, record: VideoRecord, at: float, start: float | None, end: float | None) -> Film:
        begins, ends = at if start is None else start, at if end is None else end
        return film_of(record, at=at, start=min(begins, at), end=max(ends, at))

    def _made(self, record: VideoRecord, film: Film) -> Path:
        rate = self._desk.store().settings.frame_rate
        return self._cache.film(
            self._stamp(record, film), lambda target: write_part(record, film, target, rate=rate)
        )

    def _stamp(self, record: VideoRecord, film: Film) -> str:
        """What tells a film from every other one."""
        rate = self._desk.store().settings.frame_rate
        way = f"{film.how.way} {film.start} {film.end}" if film.how.way == "clip" else "remux"
        return f"{way} {record.id} {rate} {_stamp(record.path)}"


def _stamp(path: Path) -> str:
    """What tells a file from one that takes its place."""
    try:
        status = path.stat()
    except OSError:
        return ""
    return f"{status.st_ino} {status.st_size} {status.st_mtime_ns}"
