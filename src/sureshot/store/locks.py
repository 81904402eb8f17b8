"""Locks of an index, which the system gives up when the process that has one dies."""

import contextlib
import os
from collections.abc import Iterator

from sureshot.errors import StoreError
from sureshot.files import Making, lock, open_lock
from sureshot.store.remote import is_remote

_WRITE, _STAGING = ".sureshot-write", ".sureshot-staging"
LOCKS = (_WRITE, _STAGING)  # names of the files that are locked
_PATIENCE = 600.0  # seconds; a commit takes well below one


@contextlib.contextmanager
def write_lock(location: str, *, make: bool = False) -> Iterator[None]:
    """Be the only process that writes to an index in the block; not to be nested.

    ``make`` says whether the folder of the index is made if there is none.
    """
    with contextlib.ExitStack() as stack:
        # On network file systems only a file can be locked; in a folder that may not be written
        # to there may be none.
        for path in (location, f"{location}/{_WRITE}") if _lockable(location) else ():
            made: Making = "folder" if make and path == location else ""
            if lock(path, stack, make=made, patience=_PATIENCE) is False:
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
            lock(f"{location}/{_STAGING}", stack, make="file", shared=True, patience=_PATIENCE)
        yield


@contextlib.contextmanager
def exclusive(location: str, *, patience: float = 0.0) -> Iterator[bool | None]:
    """Whether no process is in `staging_lock`, nor can be in the block; None where unknown.

    ``patience`` is for how many seconds to wait for those that are.
    """
    with contextlib.ExitStack() as stack:
        place = f"{location}/{_STAGING}"
        yield lock(place, stack, patience=patience) if _lockable(location) else None


def make_locks(location: str) -> None:
    """Make the files that are locked, where they are missing and may be made."""
    for name in LOCKS if _lockable(location) else ():
        if (opened := open_lock(f"{location}/{name}", make="file")) is not None:
            os.close(opened)


def _lockable(location: str) -> bool:
    return not is_remote(location)
