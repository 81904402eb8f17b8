"""Which rows of an index are meant, as SQL."""

from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from sureshot.store.rows import to_text


def path_is(path: Path) -> str:
    """Condition on a row: it belongs to the video at this path."""
    return f"path = {quoted(to_text(path))}"


@dataclass(frozen=True, slots=True)
class Among:
    """Some videos that a search looks at, and no others.

    Attributes:
        ids: ids of the videos.
        words: what they have in common, to be read by people.
    """

    ids: frozenset[str]
    words: str

    def __str__(self) -> str:
        return self.words


Under: TypeAlias = Path | Among  # which videos: those at or below a path, or some


def path_below(path: Under, column: str = "video") -> str:
    """Condition on a row: its video lies at or below this path, or is one of some.

    Args:
        path: folder or file that the videos lie at or below, or some of them by name.
        column: column that has the ids of videos.
    """
    if isinstance(path, Among):
        return (
            f"{column} IN ({', '.join(f'{quoted!r}' for quoted in sorted(path.ids)) or repr('')})"
        )
    folder = to_text(path).rstrip("/") + "/"
    return f"({path_is(path)} OR starts_with(path, {quoted(folder)}))"


def quoted(text: str) -> str:
    """Text as an SQL literal."""
    return "'" + text.replace("'", "''") + "'"
