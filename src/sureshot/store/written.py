"""Whether files that Lance has just written are whole, before any version names them.

Lance does not look at how its last write to a file ends: on a disk that is just full it takes a
file that is cut short for written, and commits it.
"""

import errno
import os
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import Any

from sureshot.store.remote import is_remote

_END = b"LANC"  # the last bytes of every file of rows and of vectors


def check_written(paths: Iterable[Path]) -> None:
    """Look at the ends of new files.

    Raises:
        OSError: a file is cut short, as by a full disk. It is deleted.
    """
    short = [path for path in paths if not _is_whole(path)]
    for path in short:
        path.unlink()
    if short:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(short[0]))


def check_rows(
    location: str, name: str, fragments: Iterable[Any], before: Collection[str] = ()
) -> None:
    """Look at the ends of new files of rows; of a remote index they are its storage's care.

    Args:
        location: the index.
        name: the table.
        fragments: descriptions of what was written, as Lance gives them.
        before: names of files among them that are not new. They are left alone.

    Raises:
        OSError: a file is cut short, as by a full disk. It is deleted.
    """
    if not is_remote(location):
        data = Path(location) / f"{name}.lance" / "data"
        names = {file.path for fragment in fragments for file in fragment.files}
        check_written(data / name for name in sorted(names.difference(before)))


def _is_whole(path: Path) -> bool:
    with path.open("rb") as opened:
        size = opened.seek(0, os.SEEK_END)
        opened.seek(max(0, size - len(_END)))
        return opened.read() == _END
