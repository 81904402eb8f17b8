"""Patterns of what indexing leaves out, kept among the settings of the table of videos."""

from collections.abc import Sequence
from pathlib import Path

from sureshot.store.rows import from_text, to_text
from sureshot.store.tables import Tables

_EXCLUDED = "sureshot.excluded."  # before each pattern


def stored_patterns(tables: Tables) -> tuple[str, ...]:
    """The patterns, in their order as texts."""
    settings = tables.use("videos", lambda table: table.config())
    kept = (name.removeprefix(_EXCLUDED) for name in settings if name.startswith(_EXCLUDED))
    return tuple(sorted(str(from_text(text)) for text in kept))


def store_patterns(tables: Tables, patterns: Sequence[str], *, excluded: bool) -> None:
    """Keep patterns from now on, or forget them."""
    values = {_EXCLUDED + to_text(Path(p)): "" if excluded else None for p in patterns}
    if values:
        tables.change("videos", lambda table: table.update_config(values))
