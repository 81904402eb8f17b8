"""Folders that may be indexed from the page: those below the roots that the server was given."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sureshot.errors import ArgumentError, SureshotError, reason_of
from sureshot.library.answer import JSON_SCHEMA
from sureshot.objects.path import ObjectPath
from sureshot.places import absolute
from sureshot.text import plain, printable
from sureshot.web.replies import UnknownError

_MOST = 1000  # folders of one that are shown


class Roots:
    """The roots, and what lies below them.

    Args:
        paths: folders.

    Raises:
        ArgumentError: one of them is no folder.
    """

    def __init__(self, paths: Sequence[str | Path]) -> None:
        self._roots = [absolute(path) for path in paths]
        for root in self._roots:
            if isinstance(root, ObjectPath) or not root.is_dir():
                raise ArgumentError(f"There is no folder {plain(root)} to index from.")

    def allowed(self, folder: str) -> Path:
        """A folder at or below a root, links in its name followed.

        Raises:
            UnknownError: it is somewhere else, or is no folder.
        """
        wrong = UnknownError(
            "This folder cannot be indexed from here; `sureshot serve --root DIR` says which may."
        )
        if "\0" in folder or not os.path.isabs(folder):  # noqa: PTH117 - text of a stranger
            raise wrong
        try:
            real = Path(folder).resolve(strict=True)
            inside = any(real.is_relative_to(root.resolve()) for root in self._roots)
            if not inside or not real.is_dir():
                raise wrong
        except (OSError, RuntimeError):  # a loop of links
            raise wrong from None
        return absolute(folder)

    def below(self, folder: str | None) -> dict[str, Any]:
        """The folders in one, or the roots, as plain values for JSON.

        Raises:
            UnknownError: it may not be looked into.
            SureshotError: it cannot be read.
        """
        if folder is None:
            return _values(None, None, self._roots)
        path = self.allowed(folder)
        try:
            with os.scandir(path) as entries:
                names = [entry.name for entry in entries if _shown(entry)]
        except OSError as error:
            raise SureshotError(f"{plain(path)} cannot be read: {reason_of(error)}.") from None
        inside = [path / name for name in sorted(names, key=str.casefold)[:_MOST]]
        above = None if path in self._roots else path.parent
        return _values(path, above, inside)


def _shown(entry: os.DirEntry[str]) -> bool:
    # A link may lead out, and a name that is not text cannot be sent back.
    if entry.name.startswith(".") or not entry.name.isprintable():
        return False
    return entry.is_dir(follow_symlinks=False)


def _values(path: Path | None, above: Path | None, folders: Sequence[Path]) -> dict[str, Any]:
    return {
        "schema": JSON_SCHEMA,
        "folder": None if path is None else printable(path),
        "above": None if above is None else printable(above),
        "folders": [
            {"path": printable(one), "name": printable(one if path is None else one.name)}
            for one in folders
        ],
    }
