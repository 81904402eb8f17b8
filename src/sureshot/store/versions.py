"""Versions of a local table: which ones there are, whether one is whole, broken ones moved aside.

A loss of power may leave the newest manifest, or the files that it names, empty or cut short. The
version before is untouched by that, as Lance never writes into a file that exists.
"""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

_LAST = 2**64 - 1  # Lance names the manifest of a version by what remains up to this
_MANIFEST = ".manifest"
ASIDE = ".broken-"  # in the name of a manifest that was moved out of its table


def numbers(table: Path) -> list[int]:
    """Numbers of the versions of a table, newest first.

    Raises:
        OSError: its folder cannot be read.
    """
    return sorted(_manifests(table), reverse=True)


def whole(table: Path, opened: Any) -> bool:
    """Whether the files that a version of a table names are there in full length."""
    if is_blank(opened):
        return False
    for fragment in opened.get_fragments():
        for part in fragment.data_files():
            size = _size(table / "data" / part.path)
            if size is None or (part.file_size_bytes and size != part.file_size_bytes):
                return False
        deleted = fragment.deletion_file()
        if deleted and not _size(table / deleted):
            return False
    return all(_size(table / "_indices" / name) for name in _indexed(table, opened))


def is_blank(opened: Any) -> bool:
    """Whether a manifest of zeros was opened, which Lance takes for a version 0 of nothing."""
    return bool(opened.version < 1)


def move_aside(table: Path, above: int) -> list[Path]:
    """Move manifests newer than a version out of a table, beside it; their new places.

    Raises:
        OSError: one cannot be moved.
    """
    newer = [(number, path) for number, path in _manifests(table).items() if number > above]
    moved = [path.rename(table.parent / f"{table.name}{ASIDE}{n}") for n, path in newer]
    # It says which version is newest, and is made anew with the next one.
    (table / "_versions" / "latest_version_hint.json").unlink(missing_ok=True)
    return moved


def _manifests(table: Path) -> dict[int, Path]:
    """The manifest of each version."""
    found = {}
    for path in (table / "_versions").iterdir():
        if path.suffix == _MANIFEST and path.stem.isdigit():
            number = int(path.stem)
            found[_LAST - number if len(path.stem) == len(str(_LAST)) else number] = path
    return found


def _size(path: Path) -> int | None:
    """Bytes of a file; None if there is none."""
    with contextlib.suppress(FileNotFoundError):
        return path.stat().st_size
    return None


def _indexed(table: Path, opened: Any) -> Iterator[str]:
    """Files of the indexes of a version, below their common folder."""
    if not (table / "_indices").is_dir():
        return
    for index in opened.describe_indices():
        for segment in index.segments:
            folder = table / "_indices" / str(segment.uuid)
            yield f"{segment.uuid}/index.idx"  # a loss of power may leave its folder empty
            if folder.is_dir():
                yield from (f"{segment.uuid}/{file.name}" for file in folder.iterdir())
