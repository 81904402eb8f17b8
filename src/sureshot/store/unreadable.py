"""Files of rows that hold no rows any more, taken out of a local index so that the rest is read.

A damaged file would else cost the whole index: nothing can be read past it. What its rows were
of is encoded again by whoever indexes.
"""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeVar

import lance
import pyarrow as pa

from sureshot.store.remote import is_remote
from sureshot.store.tables import NAMES, Name, Tables, plain_errors
from sureshot.store.turns import turn

Result = TypeVar("Result")

_AT_ONCE = 1024  # rows in memory
_MORE = 1 << 20  # bytes of a file at once
FAILED = (OSError, ValueError, RuntimeError, pa.ArrowException)


def past_unreadable(tables: Tables, act: Callable[[bool], Result]) -> Result:
    """What ``act`` makes of an index; again without the files by which it failed, if any.

    Args:
        tables: the index; the caller has no turn.
        act: gets whether files were taken out.
    """
    try:
        return act(False)
    except FAILED:
        if is_remote(tables.location):
            raise
        with turn(tables.location):
            if not sum(_drop_from(tables, name) for name in NAMES):
                raise
        return act(True)


def _drop_from(tables: Tables, name: Name) -> int:
    """Take files out of a table of which no rows can be made; how many.

    Raises:
        OSError: a file could not be read at all, as by a disk that is away: that proves nothing.
    """

    def act(table: Any) -> int:
        bad = [f.fragment_id for f in table.get_fragments() if not _readable(f)]
        for fragment in (table.get_fragment(number) for number in bad):
            for path in _files_of(fragment, Path(tables.location) / f"{name}.lance"):
                _read_bytes(path)
        if bad:
            operation = lance.LanceOperation.Delete([], bad, "damaged")
            lance.LanceDataset.commit(table, operation, read_version=table.version)
        return len(bad)

    return tables.change(name, act)


def _readable(fragment: Any) -> bool:
    """Whether all rows of a part of a table can be read, if need be at the second attempt."""
    for _ in range(2):
        try:
            with plain_errors():
                for _ in fragment.to_batches(batch_size=_AT_ONCE):
                    pass
            return True
        except FAILED:
            pass
    return False


def _files_of(fragment: Any, table: Path) -> Iterator[Path]:
    yield from (table / "data" / file.path for file in fragment.data_files())
    if fragment.deletion_file():
        yield table / fragment.deletion_file()


def _read_bytes(path: Path) -> None:
    """Read a file whose content does not matter, if it is there.

    Raises:
        OSError: it is there and cannot be read.
    """
    try:
        with path.open("rb") as file:
            while file.read(_MORE):
                pass
    except FileNotFoundError:
        pass
