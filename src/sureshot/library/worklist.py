"""Videos that are to be dealt with, kept in a file, so that a million of them take no memory."""

import contextlib
import json
import tempfile
from collections.abc import Iterator
from pathlib import Path

from sureshot.errors import SureshotError, reason_of
from sureshot.media.discover import Source
from sureshot.objects.path import ObjectPath
from sureshot.store.rows import from_text, to_text

PAGE = 4096  # videos looked up in an index at once


class Worklist:
    """A list of sources that is written once and then read, any number of times.

    Attributes:
        count: how many sources it has.
    """

    def __init__(self) -> None:
        self.count = 0
        self._objects: set[int] = set()
        try:
            self._file = tempfile.TemporaryFile("w+", encoding="ascii")  # noqa: SIM115
        except OSError as error:
            raise SureshotError(
                f"No file for the list of videos can be made in {tempfile.gettempdir()}: "
                f"{reason_of(error)}. Set TMPDIR to a folder with room."
            ) from None

    def add(self, source: Source) -> None:
        """Note a source.

        Raises:
            SureshotError: there is no room for it.
        """
        if isinstance(source.path, ObjectPath):
            self._objects.add(hash(source.path))
        values = [to_text(source.path), source.kind, source.size, source.mtime_ns]
        try:
            self._file.write(json.dumps(values) + "\n")
        except OSError as error:
            raise _no_room(error) from None
        self.count += 1

    def has_object(self, path: Path) -> bool:
        """Whether an object of a storage is listed: to ask the storage for each would take long."""
        return isinstance(path, ObjectPath) and hash(path) in self._objects

    def pages(self, size: int = PAGE) -> Iterator[list[Source]]:
        """The sources in their order, so many at once; nothing may be added meanwhile.

        Raises:
            SureshotError: there is no room for them.
        """
        try:
            self._file.seek(0)  # which writes what was held back
        except OSError as error:
            raise _no_room(error) from None
        page: list[Source] = []
        while line := self._file.readline():
            path, kind, length, mtime_ns = json.loads(line)
            page.append(Source(path=from_text(path), kind=kind, size=length, mtime_ns=mtime_ns))
            if len(page) == size:
                yield page
                page = []
        if page:
            yield page

    def close(self) -> None:
        """Let go of the file."""
        with contextlib.suppress(OSError):  # what it could not write, nobody needs any more
            self._file.close()

    def __enter__(self) -> "Worklist":
        return self

    def __exit__(self, *_error: object) -> None:
        self.close()


def _no_room(error: OSError) -> SureshotError:
    return SureshotError(
        f"The list of videos does not fit into {tempfile.gettempdir()}: {reason_of(error)}. Set "
        "TMPDIR to a folder with room, and run the same command again."
    )
