"""Locks on a file or folder, which the system gives up when the process that has one dies."""

import contextlib
import os
import time
from collections.abc import Callable, Iterator

from sureshot.errors import StoreError
from sureshot.store.remote import is_remote

try:
    import fcntl
except ImportError:  # no such locks on this system
    fcntl = None  # type: ignore[assignment]

_PAUSE = 0.005  # seconds
CAN_LOCK = fcntl is not None


def acquire(
    opened: int,
    *,
    shared: bool = False,
    patience: float,
    held: Callable[[], Exception] | None = None,
) -> bool:
    """Lock an open file until it is closed.

    Args:
        opened: file descriptor; across the machines of a network file system it must be one of a
            file, and of one opened for writing unless the lock is shared.
        shared: whether others may share the lock.
        patience: seconds to wait for others to give theirs up.
        held: gives the error to raise where they do not.

    Returns:
        Whether it is locked; never on a file system without locks.
    """
    kind = fcntl.LOCK_SH if shared else fcntl.LOCK_EX
    until = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(opened, kind | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() <= until:
                time.sleep(_PAUSE)
                continue
            if held is not None:
                raise held() from None
            return False
        except OSError:  # a file system without locks
            return False
        return True


def open_lock(path: str, held: contextlib.ExitStack, *, make: bool = False) -> int | None:
    """A file or folder opened for a lock, closed with the stack; None where there is none to have.

    Args:
        path: place of the file or folder.
        held: stack that closes it.
        make: whether to make the file where it is missing.
    """
    ways = [os.O_RDWR | (os.O_CREAT if make else 0), os.O_RDONLY]  # a folder can only be read
    for way in ways:
        with contextlib.suppress(OSError):
            opened = os.open(path, way | os.O_CLOEXEC, 0o666)
            held.callback(os.close, opened)
            return opened
    return None


TURN, WORK = ".sureshot-turn", ".sureshot-work"  # names of the files that are locked
LOCKS = (TURN, WORK)
_PATIENCE = 600.0  # seconds; a turn takes well below one


@contextlib.contextmanager
def write_lock(location: str) -> Iterator[None]:
    """Hold the turn of an index in the block; not to be nested.

    Raises:
        StoreError: another process has held it for ten minutes.
    """

    def held() -> StoreError:
        return StoreError(
            f"Another process has been writing to the index at {location} for ten minutes, "
            f"or hangs. End it, then run the same command again."
        )

    with contextlib.ExitStack() as stack:
        for path in (location, f"{location}/{TURN}") if _lockable(location) else ():
            opened = open_lock(path, stack)
            if opened is not None:
                acquire(opened, patience=_PATIENCE, held=held)
        yield


@contextlib.contextmanager
def staging_lock(location: str) -> Iterator[None]:
    """Say in the block that files which no version of the index names are needed."""
    with contextlib.ExitStack() as stack:
        if _lockable(location):
            opened = open_lock(f"{location}/{WORK}", stack, make=True)
            if opened is not None:
                acquire(opened, shared=True, patience=_PATIENCE)
        yield


@contextlib.contextmanager
def exclusive(location: str) -> Iterator[bool]:
    """Whether, for the block, nobody needs files that no version of the index names.

    Never so in object storage, nor where a system has no locks.
    """
    with contextlib.ExitStack() as stack:
        opened = None
        if _lockable(location):
            opened = open_lock(f"{location}/{WORK}", stack, make=True)
        yield opened is not None and acquire(opened, patience=0.0)


def make_locks(location: str) -> None:
    """Make the files that are locked, where they are missing and may be made."""
    with contextlib.ExitStack() as stack:
        for name in LOCKS if _lockable(location) else ():
            open_lock(f"{location}/{name}", stack, make=True)


def _lockable(location: str) -> bool:
    return not is_remote(location) and CAN_LOCK
