"""Patterns of what indexing leaves out, kept among the settings of the table of videos."""

from collections.abc import Sequence
from pathlib import Path

from sureshot.objects.path import object_path
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
    named = (to_text(object_path(pattern) or Path(pattern)) for pattern in patterns)
    values = {_EXCLUDED + name: "" if excluded else None for name in named}
    if values:
        tables.change("videos", lambda table: table.update_config(values))
