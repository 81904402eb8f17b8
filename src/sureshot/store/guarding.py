"""What Lance, the disk and the storage say, as one sentence with the mend in it."""

import contextlib
from collections.abc import Iterator

import pyarrow as pa

from sureshot.errors import StoreError, option
from sureshot.objects.refusals import reason_in
from sureshot.store.remote import is_remote


@contextlib.contextmanager
def guard(location: str, doing: str) -> Iterator[None]:
    """Turn what Lance and the disk say into one sentence with the fix in it."""
    try:
        yield
    except (OSError, ValueError, RuntimeError, pa.ArrowException) as error:
        reason = reason_in(str(error)) if is_remote(location) else None
        reason = reason or _first_line(error)
        raise StoreError(
            f"Cannot {doing} the index at {location}: {reason}. {_fix(error, location, doing)}"
        ) from None


def _fix(error: Exception, location: str, doing: str) -> str:
    text = str(error).lower()

    def says(*parts: str) -> bool:
        return any(part in text for part in parts)

    if says("no space left", "os error 28", "quota", "file too large"):
        return "The disk is full: free some space and run the same command again."
    if says("permission denied", "read-only", "not permitted"):
        return f"Choose a place you may write to with {option('db')}."
    if says("not a directory", "file exists", "is not utf-8", "file name too long"):
        return f"Choose another place with {option('db')}."
    if says("conflict", "concurrent", "other processes"):
        return "Nothing that was indexed before is lost; run the same command again."
    if doing == "create":  # so nothing is there that could be damaged
        return f"Choose another place with {option('db')}."
    if is_remote(location):
        return "Check the address and your access to it, then run the same command again."
    return (
        "It may be damaged. `sureshot index FOLDER` encodes again what cannot be read; if that "
        "fails too, `sureshot reset` removes the index, and indexing makes it anew."
    )


def _first_line(error: Exception) -> str:
    """Lance's messages go on with the place in its source; the first sentence is enough."""
    return str(error).split("\n")[0].split(", /")[0].strip().rstrip(".")[:300] or repr(error)
