"""Sureshot finds the moment you describe in your own videos.

Importing this package is cheap: what needs numpy, torch or ffmpeg is imported at its first use.
"""

from typing import TYPE_CHECKING, Any

from sureshot.errors import SureshotError

if TYPE_CHECKING:
    from sureshot.library.answer import Answer as Answer
    from sureshot.library.answer import Hit as Hit
    from sureshot.library.search import Searcher as Searcher
    from sureshot.library.search import open_index as open_index

__version__ = "0.1.0"
__all__ = ["Answer", "Hit", "Searcher", "SureshotError", "__version__", "open_index"]

_HOMES = {
    "Answer": "sureshot.library.answer",
    "Hit": "sureshot.library.answer",
    "Searcher": "sureshot.library.search",
    "open_index": "sureshot.library.search",
}


def __getattr__(name: str) -> Any:
    """Import a public name from its home when it is first asked for."""
    if name in _HOMES:
        from importlib import import_module

        return getattr(import_module(_HOMES[name]), name)
    raise AttributeError(f"module 'sureshot' has no attribute {name!r}")


def __dir__() -> list[str]:
    """Names that can be asked for, imported yet or not."""
    return sorted(__all__)
