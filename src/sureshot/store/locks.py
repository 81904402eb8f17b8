"""Locks of an index, which the system gives up when the process that has one dies."""

import contextlib
import errno
import os
import time
from collections.abc import Iterator
from typing import Literal

from sureshot.errors import StoreError
from sureshot.paths import make_index_folder
from sureshot.store.remote import is_remote

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

_WRITE, _STAGING = ".sureshot-write", ".sureshot-staging"
LOCKS = (_WRITE, _STAGING)  # names of the files that are locked
_PATIENCE = 600.0  # seconds; a commit takes well below one
_PAUSE = 0.005  # seconds
_Make = Literal["file", "folder", ""]  # what is made where there is nothing


@contextlib.contextmanager
def write_lock(location: str, *, make: bool = False) -> Iterator[None]:
    """Be the only process that writes to an index in the block; not to be nested.

    ``make`` says whether the folder of the index is made if there is none.
    """
    with contextlib.ExitStack() as stack:
        # On network file systems only a file can be locked; in a folder that may not be written
        # to there may be none.
        for path in (location, f"{location}/{_WRITE}") if _lockable(location) else ():
            made: _Make = "folder" if make and path == location else ""
            if _acquire(path, stack, make=made, patience=_PATIENCE) is False:
                raise StoreError(
                    f"Another process has been writing to the index at {location} for ten minutes, "
                    f"or hangs. End it, then run the same command again."
                )
        yield


@contextlib.contextmanager
def staging_lock(location: str) -> Iterator[None]:
    """Keep files that are not yet committed from being deleted in the block; others may too."""
    with contextlib.ExitStack() as stack:
        if _lockable(location):
            _acquire(f"{location}/{_STAGING}", stack, make="file", shared=True, patience=_PATIENCE)
        yield


@contextlib.contextmanager
def exclusive(location: str, *, patience: float = 0.0) -> Iterator[bool | None]:
    """Whether no process is in `staging_lock`, nor can be in the block; None where unknown.

    ``patience`` is for how many seconds to wait for those that are.
    """
    with contextlib.ExitStack() as stack:
        place = f"{location}/{_STAGING}"
        yield _acquire(place, stack, patience=patience) if _lockable(location) else None


def make_locks(location: str) -> None:
    """Make the files that are locked, where they are missing and may be made."""
    for name in LOCKS if _lockable(location) else ():
        if (opened := _open(f"{location}/{name}", make="file")) is not None:
            os.close(opened)


def _lockable(location: str) -> bool:
    return not is_remote(location) and fcntl is not None


def _open(path: str, *, make: _Make) -> int | None:
    """A file or folder, opened; None where there is none to have."""
    if make == "folder":
        make_index_folder(path)
    # A lock of one's own on a network file system wants a file opened for writing.
    for way in (os.O_RDWR | (os.O_CREAT if make == "file" else 0), os.O_RDONLY):
        with contextlib.suppress(OSError):
            return os.open(path, way | os.O_CLOEXEC, 0o666)
    return None


def _acquire(
    path: str,
    stack: contextlib.ExitStack,
    *,
    make: _Make = "",
    shared: bool = False,
    patience: float,
) -> bool | None:
    """Lock a file or folder until the stack ends; whether it is locked, None where it cannot be.

    It is a FileNotFoundError if who had the lock has deleted it.
    """
    waited = False
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    until = time.monotonic() + patience
    while (opened := _open(path, make=make)) is not None:
        with contextlib.ExitStack() as attempt:
            attempt.callback(os.close, opened)
            try:
                fcntl.flock(opened, kind | fcntl.LOCK_NB)
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                waited = True
                time.sleep(_PAUSE)
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
