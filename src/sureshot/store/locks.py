"""Locks of an index, which the system gives up when the process that has one dies."""

import contextlib
import os
import time
from collections.abc import Iterator

from sureshot.errors import StoreError
from sureshot.store.remote import is_remote

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

_WRITE, _STAGING = ".sureshot-write", ".sureshot-staging"
LOCKS = (_WRITE, _STAGING)  # names of the files that are locked
_PATIENCE = 600.0  # seconds; a commit takes well below one
_PAUSE = 0.005  # seconds


@contextlib.contextmanager
def write_lock(location: str) -> Iterator[None]:
    """Be the only process that writes to an index in the block; not to be nested."""
    with contextlib.ExitStack() as stack:
        # On network file systems only a file can be locked; in a folder that may not be written
        # to there may be none.
        for path in (location, f"{location}/{_WRITE}") if _lockable(location) else ():
            opened = _open(path, stack)
            if opened is not None and _acquire(opened, patience=_PATIENCE) is False:
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
            opened = _open(f"{location}/{_STAGING}", stack, make=True)
            if opened is not None:
                _acquire(opened, shared=True, patience=_PATIENCE)
        yield


@contextlib.contextmanager
def exclusive(location: str) -> Iterator[bool]:
    """Whether no process is in `staging_lock`, nor can be in the block; unknown is no."""
    with contextlib.ExitStack() as stack:
        place = f"{location}/{_STAGING}"
        opened = _open(place, stack, make=True) if _lockable(location) else None
        yield opened is not None and _acquire(opened, patience=0.0) is True


def make_locks(location: str) -> None:
    """Make the files that are locked, where they are missing and may be made."""
    with contextlib.ExitStack() as stack:
        for name in LOCKS if _lockable(location) else ():
            _open(f"{location}/{name}", stack, make=True)


def _lockable(location: str) -> bool:
    return not is_remote(location) and fcntl is not None


def _open(path: str, stack: contextlib.ExitStack, *, make: bool = False) -> int | None:
    """A file or folder opened until the stack ends; None where there is none to have."""
    # A lock of one's own on a network file system wants a file opened for writing.
    for way in (os.O_RDWR | (os.O_CREAT if make else 0), os.O_RDONLY):
        with contextlib.suppress(OSError):
            opened = os.open(path, way | os.O_CLOEXEC, 0o666)
            stack.callback(os.close, opened)
            return opened
    return None


def _acquire(opened: int, *, shared: bool = False, patience: float) -> bool | None:
    """Lock an open file until it is closed; whether it is locked, None where that cannot be."""
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(opened, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                return False
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return None
        else:
            return True
