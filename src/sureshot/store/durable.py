"""What Lance has written, forced to the disk, which Lance itself leaves to the system."""

import contextlib
import errno
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

_AT_ONCE = 8  # files; the disk writes them together, so together they take the time of one or two
_HINT = "latest_version_hint.json"  # rewritten with every version, and needed by nobody


class Durable:
    """The files of local tables, forced to the disk once each.

    Args:
        tables: folders of the tables.
    """

    def __init__(self, tables: Sequence[Path]) -> None:
        self._tables = tables
        self._known: set[str] = set()

    def sync(self) -> int:
        """Wait until every file of the tables, and its name, is on the disk.

        Files that an earlier call waited for are left alone, as Lance never changes a file.

        Returns:
            How many files there were to wait for.

        Raises:
            OSError: the disk cannot take them.
        """
        files, below, folders = set(), set(), set()
        for table in self._tables:
            for folder, inside, names in os.walk(table):
                paths = {f"{folder}/{name}" for name in names if name != _HINT}
                within = {f"{folder}/{name}" for name in inside}
                files |= paths
                below |= within
                if not paths | within <= self._known:
                    folders.add(folder)
        fresh = files - self._known
        sync_paths(fresh | folders)
        self._known = files | below
        return len(fresh)


def sync_paths(paths: Iterable[str | Path]) -> None:
    """Wait until files and the names in folders are on the disk; those that are gone are left out.

    Raises:
        OSError: the disk cannot take them.
    """
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        list(pool.map(_sync, paths))


def _sync(path: str | Path) -> None:
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
