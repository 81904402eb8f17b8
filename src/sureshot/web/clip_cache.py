"""Films that were made to be played: a folder that is kept below a size."""

import contextlib
import errno
import hashlib
import threading
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from sureshot.errors import SureshotError
from sureshot.files import replace_file
from sureshot.text import plain
from sureshot.web.replies import FullError

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
        raise FullError(
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
