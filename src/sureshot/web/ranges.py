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
            self._file = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
        except OSError as error:
            raise GoneError(f"{plain(path)} cannot be opened: {reason_of(error)}.") from None
        status = os.fstat(self._file)
        if not stat.S_ISREG(status.st_mode):
            os.close(self._file)
            raise GoneError(f"{plain(path)} is not a regular file any more.")
        self._size = status.st_size
        self._tag = f'"{status.st_ino:x}-{self._size:x}-{status.st_mtime_ns:x}"'

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
            os.close(self._file)

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
            data = await run_in_threadpool(os.pread, self._file, min(_CHUNK, end - at), at)
            if not data:
                return  # cut short meanwhile: an unfinished reply tells the player so
            at += len(data)
            body = {"type": "http.response.body", "body": data}
            await send({**body, "more_body": True})
        if at >= end:
            await send({"type": "http.response.body", "body": b"", "more_body": False})
