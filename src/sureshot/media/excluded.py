"""Patterns of the files and folders that an index leaves out."""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from sureshot.errors import QueryError
from sureshot.places import absolute


def as_pattern(text: str) -> str:
    """A pattern as an index remembers it: a bare name as it is, anything else from / on.

    Raises:
        QueryError: it is empty.

    Examples:
        >>> as_pattern("*.gif"), as_pattern("drafts/"), as_pattern("/films/../raw/*")
        ('*.gif', 'drafts', '/raw/*')
    """
    stripped = text.rstrip(os.sep) if text.strip(os.sep) else text
    if not stripped.strip():
        raise QueryError("A pattern of what to leave out is empty; give a name, such as '*.gif'.")
    named = os.sep not in stripped and not stripped.startswith("~")
    return stripped if named else str(absolute(stripped))


@dataclass(frozen=True, slots=True)
class Excluded:
    """What is left out of an index.

    A pattern without a slash is about names: of files and folders at or below the path that is
    indexed. One with slashes is about a path and all below it. ``*``, ``?`` and ``[…]`` are those
    of the shell, but that ``*`` takes slashes too.

    Attributes:
        patterns: patterns as `as_pattern` gives them.
    """

    patterns: tuple[str, ...] = ()

    def matches(self, path: Path, tops: Sequence[Path]) -> bool:
        """Whether a path is left out.

        Args:
            path: an absolute path.
            tops: paths that are indexed; names above them do not count.

        Examples:
            >>> gifs = Excluded(("*.gif", "/v/raw"))
            >>> [gifs.matches(Path(p), [Path("/v")]) for p in ("/v/a.gif", "/v/raw/b.mp4", "/v/c")]
            [True, True, False]
        """
        chain = (path, *path.parents)
        inside = [p for p in chain if any(p.is_relative_to(top) for top in tops)]
        for pattern in self.patterns:
            named = os.sep not in pattern
            texts = [p.name for p in inside] if named else [str(p) for p in chain]
            if any(fnmatchcase(text, pattern) for text in texts):
                return True
        return False
