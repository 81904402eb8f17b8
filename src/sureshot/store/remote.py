"""The tables of an index in object storage, as the objects that they are.

Lance has its own way to the storage. What it cannot say or do is here: whether tables are there at
all, what went wrong in words, how large they are, and how they go.
"""

import urllib.parse

from sureshot.objects.client import SCHEME, delete, lance_options
from sureshot.objects.path import ObjectPath, object_path

_VERSIONS = "_versions"


def is_remote(location: str) -> bool:
    """Whether a place is no folder.

    Examples:
        >>> is_remote("s3://films/index"), is_remote("/home/ann/index")
        (True, False)
    """
    return "://" in location


def table_address(location: str, name: str) -> str:
    """A table as Lance is to be told of it: it takes an address for one with percent signs."""
    if not location.startswith(SCHEME):
        return f"{location}/{name}.lance"
    return SCHEME + urllib.parse.quote(f"{location.removeprefix(SCHEME)}/{name}.lance")


def options(location: str) -> dict[str, str] | None:
    """What Lance is told of the storage; None for a folder.

    Raises:
        OSError: the storage cannot be asked, or there are no credentials.
    """
    return lance_options(location) or None


def table_is_there(location: str, name: str) -> bool:
    """Whether a table in S3 storage has a version that can be opened.

    Raises:
        OSError: the storage cannot be asked, or there is no such bucket.
    """
    return any((_place(location) / f"{name}.lance" / _VERSIONS).first())


def parts_of_table(location: str, name: str) -> set[str]:
    """What lies directly below a table in S3 storage; empty if there is nothing.

    Raises:
        OSError: the storage cannot be asked.
    """
    table = _place(location) / f"{name}.lance"
    keys = (one.key.removeprefix(f"{table.key}/") for one in table.below())
    return {key.partition("/")[0] for key in keys}


def bytes_of(location: str) -> int:
    """Size of all objects below a place.

    Raises:
        OSError: the storage cannot be asked.
    """
    return sum(one.size for one in _place(location).below())


def delete_tables(location: str, names: tuple[str, ...]) -> None:
    """Delete tables, what tells their versions first: ended midway, they are there or gone.

    Args:
        location: place of the index.
        names: tables, in the order in which they go.

    Raises:
        OSError: an object cannot be deleted.
    """
    for name in names:
        table = _place(location) / f"{name}.lance"
        keys = [one.key for one in table.below()]
        versions = f"{table.key}/{_VERSIONS}/"
        for some in (
            [key for key in keys if key.startswith(versions)],
            [key for key in keys if not key.startswith(versions)],
        ):
            delete(table.bucket, some)


def _place(location: str) -> ObjectPath:
    found = object_path(location)
    assert found is not None
    return found
