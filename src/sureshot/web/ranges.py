"""Files by parts: what players ask for when they seek."""

import os
import re
import stat
from dataclasses import dataclass
from pathlib import Path

from starlette.concurrency import run_in_threadpool
from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from sureshot.errors import reason_of
from sureshot.objects.path import ObjectPath
from sureshot.text import plain
from sureshot.web.replies import GoneError, error_reply

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
            raise GoneError(f"{plain(path)} is not a regular file any more.")
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
            raise GoneError(f"{plain(path)} cannot be opened: {reason_of(error)}.") from None
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
