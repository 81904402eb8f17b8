"""Writers of an index take turns: what takes two commits is never half of one and half of another.

A turn is a lock that the system gives up when its process dies: on the folder of the index, which
one machine sees, and on a file in it, which all machines of a network file system see. Readers make
no file. Object storage has no such locks: there what two writers mix up is found and encoded again
by the next `index`.

Beside turns there is work whose files no version of the index names yet: videos encoded and not
committed, files being joined. Who has such work says so (`unfinished`), and nobody takes files for
left over while it goes on (`nobody_else`).
"""

import contextlib
from collections.abc import Iterator

from sureshot.errors import StoreError
from sureshot.store.locks import CAN_LOCK, acquire, open_lock
from sureshot.store.remote import is_remote

TURN, WORK = ".sureshot-turn", ".sureshot-work"  # names of the files that are locked
LOCKS = (TURN, WORK)
_PATIENCE = 600.0  # seconds; a turn takes well below one


@contextlib.contextmanager
def turn(location: str) -> Iterator[None]:
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
def unfinished(location: str) -> Iterator[None]:
    """Say in the block that files which no version of the index names are needed."""
    with contextlib.ExitStack() as stack:
        if _lockable(location):
            opened = open_lock(f"{location}/{WORK}", stack, make=True)
            if opened is not None:
                acquire(opened, shared=True, patience=_PATIENCE)
        yield


@contextlib.contextmanager
def nobody_else(location: str) -> Iterator[bool]:
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
