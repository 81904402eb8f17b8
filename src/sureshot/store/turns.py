"""Writers of an index take turns: what takes two commits is never half of one and half of another.

A turn is a lock on the folder of the index, which the system gives up when its process dies.
Readers take none. Object storage has no such lock: there what two writers mix up is found and
encoded again by the next `index`.
"""

import contextlib
import os
import time
from collections.abc import Iterator

from sureshot.errors import StoreError

try:
    import fcntl
except ImportError:  # no such lock on this system
    fcntl = None  # type: ignore[assignment]

_PATIENCE = 600.0  # seconds; a turn takes well below one
_PAUSE = 0.005  # seconds


@contextlib.contextmanager
def turn(location: str) -> Iterator[None]:
    """Hold the turn of an index in the block; not to be nested.

    Raises:
        StoreError: another process has held it for ten minutes.
    """
    with contextlib.ExitStack() as held:
        if "://" not in location and fcntl is not None:
            with contextlib.suppress(FileNotFoundError, PermissionError):
                opened = os.open(location, os.O_RDONLY)
                held.callback(os.close, opened)
                _wait(opened, location)
        yield


def _wait(opened: int, location: str) -> None:
    until = time.monotonic() + _PATIENCE
    while True:
        try:
            fcntl.flock(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise StoreError(
                    f"Another process has been writing to the index at {location} for ten minutes, "
                    f"or hangs. End it, then run the same command again."
                ) from None
            time.sleep(_PAUSE)
        except OSError:  # a file system without locks
            return
        else:
            return
