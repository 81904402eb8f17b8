"""An object read as a file: by ranges, further ahead the longer it is read in order."""

import io
import os
import time

from sureshot.objects.client import SCHEME, StoredObject, read_range

_FIRST = 1 << 19  # bytes of the first request, and of the one after a jump
_MOST = 1 << 23  # bytes of one request; it doubles up to this
_KEPT = 4  # requests whose bytes are kept: the index at the end of a file, the place before a jump
_QUICK, _SLOW = 1.0, 4.0  # seconds of a request that makes the next one larger, or smaller


class ObjectReader(io.RawIOBase):
    """An open object; all that is read of it is of one content, or it is an error.

    Args:
        bucket: the bucket.
        key: the object.

    Attributes:
        name: its address.
        mode: ``rb``, as a file has it.
        stored: what the storage says of it.
        fetched: bytes read from the storage so far.
        requests: requests made so far.

    Raises:
        OSError: it cannot be read.
    """

    def __init__(self, bucket: str, key: str) -> None:
        super().__init__()
        self._bucket, self._key = bucket, key
        self.name, self.mode = f"{SCHEME}{bucket}/{key}", "rb"
        self._at = 0
        self._ahead = _FIRST
        self._parts: list[tuple[int, bytes]] = []
        self.fetched = self.requests = 0
        self.stored: StoredObject | None = None
        self._fetch(0, _FIRST)

    @property
    def size(self) -> int:
        """Bytes of the object."""
        return self.stored.size if self.stored else 0

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def tell(self) -> int:
        """Byte that is read next."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Go to a byte; nothing is read by that."""
        start = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.size}.get(whence)
        if start is None or start + offset < 0:
            raise OSError(22, "invalid argument")
        self._at = start + offset
        return self._at

    def read(self, count: int = -1) -> bytes:
        """The next bytes, up to so many; none at the end.

        Raises:
            OSError: they cannot be read, or the object has changed since it was opened.
        """
        if count < 0:
            return self.readall()
        if not count or self._at >= self.size:
            return b""
        data = self._known()[:count] or self._fetch(self._at, max(count, self._next_request()))
        data = data[:count]
        self._at += len(data)
        return bytes(data)

    def readinto(self, buffer: "memoryview | bytearray") -> int:  # type: ignore[override]
        """The next bytes into a buffer; how many."""
        data = self.read(len(buffer))
        buffer[: len(data)] = data
        return len(data)

    def _known(self) -> memoryview:
        """What is there already from the present place on."""
        for start, data in reversed(self._parts):
            if start <= self._at < start + len(data):
                return memoryview(data)[self._at - start :]
        return memoryview(b"")

    def _next_request(self) -> int:
        """How many bytes the next request asks for."""
        start, data = self._parts[-1]
        gap = self._at - start - len(data)
        # ffmpeg leaves streams out that nobody wants: a small gap is no jump.
        if not 0 <= gap <= self._ahead:
            self._ahead = _FIRST
        return self._ahead

    def _fetch(self, first: int, count: int) -> memoryview:
        began = time.monotonic()
        known = self.stored.etag if self.stored else ""
        data, self.stored = read_range(self._bucket, self._key, first, count, known)
        took = time.monotonic() - began
        self.requests += 1
        self.fetched += len(data)
        self._parts = [*self._parts[1 - _KEPT :], (first, data)]
        if took < _QUICK:
            self._ahead = min(self._ahead * 2, _MOST)
        elif took > _SLOW:
            self._ahead = max(self._ahead // 4, _FIRST // 8)
        return memoryview(data)
